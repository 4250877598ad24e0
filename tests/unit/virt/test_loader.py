# SPDX-License-Identifier: Apache-2.0
"""The driver that a service gets."""

import pytest

from novalite import exception
from novalite.virt import loader


def test_the_driver_is_named_as_the_host(make_conf, tmp_path):
    driver = loader.load_driver(make_conf(), "host9")
    driver.init_host()
    assert driver.nodes() == ["host9"]
    assert driver.host_resources("host9").vcpus == 8
    assert (tmp_path / "fake_libvirt-host9.db").exists()


def test_contradicting_options_are_refused_before_anything_is_touched(make_conf, tmp_path):
    with pytest.raises(exception.ConfigurationError):
        loader.load_driver(make_conf(libvirt__cpu_models=["EPYC"]), "host9")
    assert list(tmp_path.iterdir()) == []


def test_a_state_path_that_cannot_be_used_is_named(make_conf, tmp_path):
    (tmp_path / "file").write_text("")
    conf = make_conf(state_path=str(tmp_path / "file"))
    with pytest.raises(exception.ConfigurationError) as caught:
        loader.load_driver(conf, "host9").init_host()
    assert "state_path" in caught.value.message()
