# SPDX-License-Identifier: Apache-2.0
"""One side's settings: what is read of a real nova.conf, what is left out, what is refused."""

from pathlib import Path

import pytest

from novalite.advisor.whatif import settings
from novalite.conf.files import ConfigError
from tests.unit.advisor.whatif.sides import side

DATA = Path(__file__).parents[3] / "data"


def test_a_real_nova_conf_is_read() -> None:
    found = settings.load([str(DATA / "nova-controller.conf")])
    assert found.explicit == {"cpu_allocation_ratio": 8.0}
    assert found.notes == ["NUMATopologyFilter is left out: guests have no NUMA topology"]
    assert "NUMATopologyFilter" not in found.values["[filter_scheduler] enabled_filters"]


def test_weighers_that_are_left_out(tmp_path: Path) -> None:
    path = "nova.scheduler.weights.metrics.MetricsWeigher"
    text = f"[filter_scheduler]\nweight_classes = nova.scheduler.weights.ram.RAMWeigher,{path}\n"
    found = side(tmp_path, text)
    assert found.notes == ["MetricsWeigher is left out: no compute reports metrics"]
    assert [weigher.name for weigher in found.pipeline.weighers] == ["RAMWeigher"]


def test_a_wrong_value_that_matters_is_told() -> None:
    words = r"nova-master.conf, line 33: \[filter_scheduler\] host_subset_size = 0: not valid"
    with pytest.raises(ConfigError, match=words):
        settings.load([str(DATA / "nova-master.conf")])
    with pytest.raises(ConfigError, match="nova-compute.conf, line 65: a section is written"):
        settings.load([str(DATA / "nova-compute.conf")])
    with pytest.raises(ConfigError, match="none.conf"):
        settings.load([str(DATA / "none.conf")])
