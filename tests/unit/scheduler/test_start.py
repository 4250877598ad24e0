# SPDX-License-Identifier: Apache-2.0
"""What novalite-scheduler checks before it connects to anything."""

import pytest

from novalite.cmd import scheduler
from novalite.conf.files import ConfigError
from tests.unit.scheduler.test_manager import make_conf


def test_unknown_filters_are_named_with_their_option():
    conf = make_conf(filter_scheduler__enabled_filters=["RamFilter", "RamFilterr"])
    with pytest.raises(ConfigError) as caught:
        scheduler.check_filters(conf)
    assert str(caught.value).startswith(
        "[filter_scheduler] enabled_filters: unknown filters: RamFilterr; valid: ComputeFilter, "
    )


def test_default_filters_pass():
    assert scheduler.check_filters(make_conf()) == []
