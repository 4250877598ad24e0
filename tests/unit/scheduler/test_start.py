# SPDX-License-Identifier: Apache-2.0
"""What novalite-scheduler checks before it connects to anything."""

import pytest

from novalite.cmd import scheduler
from novalite.conf.files import ConfigError
from novalite.scheduler import filters
from tests.unit.scheduler.test_manager import make_conf


@pytest.mark.parametrize(
    ("names", "unknown"),
    [
        (["RamFilter", "num_instances_filter"], "num_instances_filter"),
        (["RamFilter", "RetryFilterr"], "RetryFilterr"),
        (["ramfilter"], "ramfilter"),
        (["One", "RamFilter", "Two"], "One, Two"),
    ],
)
def test_v37_every_unknown_filter_is_named_with_the_option(names, unknown):
    with pytest.raises(ConfigError) as caught:
        scheduler.check_filters(make_conf(filter_scheduler__enabled_filters=names))
    assert str(caught.value) == (
        f"[filter_scheduler] enabled_filters: unknown filters: {unknown}; valid: "
        f"{', '.join(filters.FILTERS)}, or module:Class for a filter of your own"
    )


def test_unknown_weighers_are_named_with_the_option():
    with pytest.raises(ConfigError) as caught:
        scheduler.check_filters(make_conf(filter_scheduler__weight_classes=["RAMWeigherr"]))
    text = str(caught.value)
    assert text.startswith("[filter_scheduler] weight_classes: unknown weighers: RAMWeigherr; ")


def test_v37_no_filter_at_all_is_a_warning():
    conf = make_conf(filter_scheduler__enabled_filters=[])
    assert scheduler.check_filters(conf) == [
        "[filter_scheduler] enabled_filters is empty: hosts are not filtered at all"
    ]


@pytest.mark.parametrize("names", [["RetryFilter"], ["RamFilter", "RamFilter"]])
def test_v37_valid_lists(names):
    assert scheduler.check_filters(make_conf(filter_scheduler__enabled_filters=names)) == []


def test_default_filters_pass():
    assert scheduler.check_filters(make_conf()) == []
