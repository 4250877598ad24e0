# SPDX-License-Identifier: Apache-2.0
"""How names in options become filters and weighers, ours and somebody else's."""

import re
from pathlib import Path

import pytest

from novalite import exception
from novalite.conf import scheduler as options
from novalite.scheduler import demand, filters, weights
from novalite.scheduler.filters import base as filters_base
from novalite.scheduler.weights import base as weights_base
from tests.unit.scheduler import fakes

HERE = __name__
ROOT = Path(__file__).parents[3]


class Picky(filters_base.Filter):
    reads = ("no_such_field",)

    def examine(self, host, demand):
        return None


class Needy(filters_base.Filter):
    def __init__(self, something):
        self.something = something

    def examine(self, host, demand):
        return None


class Mine(filters_base.Filter):
    options = ("max_instances_per_host",)

    def __init__(self, max_instances_per_host=0):
        self.most = max_instances_per_host

    def examine(self, host, demand):
        return None


class ByProject(weights_base.Weigher):
    reads = ("project_id",)
    option = "by_project"

    def weigh(self, host, demand):
        return float(len(demand.project_id) + len(host.host))


def default(name):
    return next(opt.default for opt in options.FILTER_OPTS if opt.dest == name)


def refusal(load, *args):
    with pytest.raises(exception.ConfigurationError) as caught:
        load(*args)
    return caught.value.message()


def test_defaults_are_those_of_the_options():
    assert tuple(default("enabled_filters")) == filters.DEFAULT
    assert default("weight_classes") == list(weights.ALL[:1])
    assert default("available_filters") == list(filters.ALL[:1])
    names = {opt.dest for opt in options.FILTER_OPTS}
    assert set(weights.WEIGHERS) <= names
    for made in filters.FILTERS.values():
        assert set(made.options) <= names
        assert set(made.reads) <= demand.READABLE


def test_the_guide_has_a_row_for_each():
    text = (ROOT / "docs" / "operators.md").read_text().partition("## Filters and weighers")[2]
    rows = [row for row in text.partition("\n## ")[0].splitlines() if row.startswith("| `")]
    told = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    ours = [*filters.FILTERS, *(made.__name__ for made in weights.WEIGHERS.values())]
    assert sorted(told) == sorted(ours)
    counts = f"{len(filters.FILTERS)} of Nova's filters and {len(weights.WEIGHERS)} of its weighers"
    assert counts in (ROOT / "README.md").read_text()


def test_every_filter_can_be_made_from_its_options_and_without():
    values = {opt.dest: opt.default for opt in options.FILTER_OPTS}
    for given in (values, None):
        made = filters.load(list(filters.FILTERS), given)
        assert [one.name for one in made] == list(filters.FILTERS)


@pytest.mark.parametrize(
    "name",
    [
        "nova.scheduler.filters.ram_filter.RamFilter",
        "novalite.scheduler.filters.ram_filter.RamFilter",
        "novalite.scheduler.filters.ram_filter:RamFilter",
        "RamFilter",
    ],
)
def test_ours_by_name_or_path(name):
    assert [type(one) for one in filters.load([name, "RamFilter"])] == [filters.RamFilter]


def test_filters_of_ones_own_get_options():
    made = filters.load([f"{HERE}:Mine", f"{HERE}.Mine"], {"max_instances_per_host": 7})
    assert [one.most for one in made] == [7]


def test_available_filters_may_be_named_by_the_class_alone():
    available = [filters.ALL[1], f"{HERE}.Mine"]
    assert [one.name for one in filters.load(["Mine", "RamFilter"], None, available)] == [
        "Mine",
        "RamFilter",
    ]
    assert "RamFilter" in refusal(filters.load, ["RamFilter"], None, [f"{HERE}.Mine"])
    own = ["nova.scheduler.filters.ram_filter.RamFilter"]
    assert filters.load(["RamFilter"], None, own)[0].name == "RamFilter"
    assert "no.such" in refusal(filters.load, ["RamFilter"], None, ["no.such.Filter"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("JsonFilter", "left out: users would write filters"),
        ("nova.scheduler.filters.trusted_filter.TrustedFilter", "left out: it needs"),
        (f"{HERE}:Picky", "a request has no no_such_field that it could read"),
        (f"{HERE}:Needy", "something"),
        (f"{HERE}:refusal", "it must derive from"),
        (f"{HERE}:Nobody", "Nobody"),
        ("no_such_module:Filter", "no_such_module"),
        ("module:", "module"),
        ("", "unknown filters"),
    ],
)
def test_what_cannot_be_a_filter_is_refused_with_the_reason(name, words):
    assert words in refusal(filters.load, [name])


def test_weighers_by_name_in_the_order_given():
    values = {option: 2.0 for option in weights.WEIGHERS} | {"by_project": 3.0}
    made = weights.load(values, ["DiskWeigher", f"{HERE}:ByProject", "RAMWeigher", "DiskWeigher"])
    assert [(one.name, one.multiplier) for one in made] == [
        ("DiskWeigher", 2.0),
        ("ByProject", 3.0),
        ("RAMWeigher", 2.0),
    ]
    for name in ("nova.scheduler.weights.all_weighers", "all_weighers"):
        assert [one.name for one in weights.load(values, [name])] == [
            made.__name__ for made in weights.WEIGHERS.values()
        ]
    assert weights.load({}, [f"{HERE}:ByProject"])[0].multiplier == 1.0
    assert "left out: there is one cell" in refusal(weights.load, {}, ["CrossCellWeigher"])


def test_a_weigher_of_ones_own_reads_what_it_declares():
    names = [f"{HERE}:ByProject"]
    hosts = [fakes.host_state("a"), fakes.host_state("longest"), fakes.host_state("mid")]
    pipeline = fakes.Pipeline([], weights.load({}, names))
    assert pipeline.schedule(hosts, [fakes.spec()]).hosts[0].host == "longest"
