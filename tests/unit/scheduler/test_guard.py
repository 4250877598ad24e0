# SPDX-License-Identifier: Apache-2.0
"""Filters and weighers of somebody else that raise or answer nonsense are told by their names."""

import math
import sys

import pytest

from novalite import exception
from novalite.objects.reason import Reason
from novalite.scheduler import filters, inquiry, weights
from novalite.scheduler.filters import base as filters_base
from novalite.scheduler.weights import base as weights_base
from tests.unit.scheduler import fakes

HERE = __name__


class Odd(filters_base.Filter):
    """Answers with what a test puts here; a class is raised."""

    reads = ("project_id",)
    answer: object = None

    def examine(self, host, demand):
        if isinstance(self.answer, type):
            raise self.answer("boom")
        return self.answer


class OddWeigher(weights_base.Weigher):
    reads = ()
    answer: object = 1.0

    def weigh(self, host, demand):
        if isinstance(self.answer, type):
            raise self.answer("boom")
        return self.answer


class OddColumn(weights_base.Weigher):
    reads = ()

    def column(self, hosts, demand):
        return [1.0]


class Bossy(weights_base.Weigher):
    reads = ()

    def weigh(self, host, demand):
        return 1.0

    def multiplier_on(self, host):
        return None


class Unmakeable(filters_base.Filter):
    def __init__(self):
        sys.exit(4)

    def examine(self, host, demand):
        return None


@pytest.fixture
def hosts():
    return [fakes.host_state("a"), fakes.host_state("b")]


def broken(call):
    with pytest.raises(exception.SchedulerExtensionBroken) as caught:
        call()
    return caught.value.message()


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (RuntimeError, "RuntimeError"),
        (SystemExit, "SystemExit"),
        ("no", "None or a Reason, not with str"),
        (True, "None or a Reason, not with bool"),
        (False, "None or a Reason, not with bool"),
        (Reason(5), "must be text"),
        (Reason("x", detail=object()), "must be text"),
        (Reason("x", need=math.nan), "must be finite"),
        (Reason("x", need=1.0, have="q"), "must be finite"),
    ],
)
def test_a_filter_that_is_wrong_is_named_to_whoever_asks(hosts, monkeypatch, answer, what):
    monkeypatch.setattr(Odd, "answer", answer)
    pipeline = fakes.Pipeline(filters.load([f"{HERE}:Odd"]), [])
    demand = pipeline.demand(fakes.spec())
    for ask in (
        lambda: pipeline.schedule(hosts, [fakes.spec()]),
        lambda: inquiry.Examiner(pipeline, hosts, fakes.spec()),
        lambda: inquiry.capacity_of(pipeline, hosts[0], demand),
    ):
        text = broken(ask)
        assert text.startswith("The scheduler could not decide: the filter Odd is broken (")
        assert what in text
        assert "boom" not in text


def test_a_filter_that_is_right_is_as_it_was(hosts, monkeypatch):
    made = filters.load([f"{HERE}:Odd"])
    assert isinstance(made[0], Odd)
    pipeline = fakes.Pipeline(made, [])
    assert pipeline.keeps
    assert pipeline.schedule(hosts, [fakes.spec()]).hosts[0].host == "a"
    monkeypatch.setattr(Odd, "answer", Reason("too_loud", need=1, have=0.5, detail="very"))
    outcome = pipeline.schedule([fakes.host_state("c")], [fakes.spec()])
    assert outcome.decisions[0].filters[0].codes == {"too_loud": 1}


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (KeyError, "(KeyError)."),
        (SystemExit, "(SystemExit)."),
        ("x", "not with str)."),
        (None, "not with NoneType)."),
        (math.nan, "not with nan)."),
        (math.inf, "not with inf)."),
        (10**400, "not with int)."),
    ],
)
def test_a_weigher_that_is_wrong_is_named(hosts, monkeypatch, answer, what):
    monkeypatch.setattr(OddWeigher, "answer", answer)
    pipeline = fakes.Pipeline([], weights.load({}, [f"{HERE}:OddWeigher"]))
    text = broken(lambda: pipeline.schedule(hosts, [fakes.spec()]))
    assert text.startswith("The scheduler could not decide: the weigher OddWeigher is broken (")
    assert text.endswith(what)


def test_every_method_that_others_define_is_checked(hosts):
    column, bossy = weights.load({}, [f"{HERE}:OddColumn", f"{HERE}:Bossy"])
    pipeline = fakes.Pipeline([], [column])
    assert "one item for each host" in broken(lambda: pipeline.schedule(hosts, [fakes.spec()]))
    assert "finite numbers" in broken(lambda: bossy.multiplier_on(hosts[0]))


def test_a_module_or_class_that_ends_the_process_is_refused(tmp_path, monkeypatch):
    (tmp_path / "ends_the_process.py").write_text("import sys\nsys.exit(7)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("ends_the_process:Filter", f"{HERE}:Unmakeable"):
        with pytest.raises(exception.ConfigurationError, match="SystemExit"):
            filters.load([name])


def test_an_empty_name_is_told():
    with pytest.raises(exception.ConfigurationError, match="unknown filters: an empty name;"):
        filters.load(["RamFilter", ""])
