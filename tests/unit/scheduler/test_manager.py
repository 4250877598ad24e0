# SPDX-License-Identifier: Apache-2.0
"""The scheduler's endpoint: batches, overlay, log lines, reload, spreading."""

import inspect
import logging
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from novalite import conf as conf_module
from novalite import context as context_module
from novalite import exception, log
from novalite.objects import base, capacity, selection
from novalite.objects.request_spec import Generation
from novalite.objects.selection import SelectRequest
from novalite.scheduler import host_manager, rpcapi
from novalite.scheduler import manager as manager_module
from novalite.scheduler.filters.base import Filter
from tests.unit.scheduler import fakes

CONTEXT = context_module.service_context()


class BrokenFilter(Filter):
    """Cannot cope with one project."""

    reads = ("project_id",)

    def examine(self, host, demand):
        if demand.project_id == "bad":
            raise RuntimeError("broken")
        return None


def make_conf(**overrides):
    conf = cfg.ConfigOpts()
    log.register_opts(conf)
    conf_module.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    for name, value in overrides.items():
        group, _, option = name.rpartition("__")
        conf.set_override(option, value, group=group or None)
    return conf


def make(load, unplaced=set, **overrides):
    return manager_module.SchedulerManager(make_conf(**overrides), load, unplaced, None, None)


def fixed(*records):
    """A load function for hosts that never change."""
    return lambda mark, known: (list(records) if mark is None else [], 1.0)


def one_host(**changes):
    return fixed((fakes.node("h1", **changes), fakes.service("h1")))


def ask(manager, *requests):
    return manager.select_destinations(CONTEXT, list(requests))


def request(key, *specs, **more):
    return SelectRequest(key, list(specs), context=CONTEXT.to_wire(), **more)


def test_rpcapi_and_endpoint_name_the_same():
    assert rpcapi.SchedulerAPI.TARGET.version == manager_module.SchedulerEndpoint.target.version
    for name, method in inspect.getmembers(rpcapi.SchedulerAPI, inspect.isfunction):
        if not name.startswith("_"):
            ours = inspect.signature(getattr(manager_module.SchedulerEndpoint, name))
            # How long the caller waits is not sent.
            theirs = [word for word in inspect.signature(method).parameters if word != "timeout"]
            assert list(ours.parameters) == theirs


def test_answers_come_in_order_and_survive_the_wire():
    manager = make(one_host())
    answers = ask(
        manager, request(7, fakes.spec("a"), fakes.spec("b")), request(3, fakes.spec("c"))
    )
    assert [(answer.key, len(answer.selections)) for answer in answers] == [(7, 2), (3, 1)]
    assert all(decision.took > 0 for answer in answers for decision in answer.decisions)
    assert base.decode(base.encode(answers)) == answers


def test_what_was_selected_counts_for_the_next():
    manager = make(one_host(memory_mb_used=24576 - 1000))
    assert ask(manager, request(0, fakes.spec("a", memory_mb=900)))[0].error is None
    (answer,) = ask(manager, request(0, fakes.spec("b", memory_mb=900)))
    assert answer.error == selection.NO_VALID_HOST
    assert answer.reason == "There are not enough hosts available. 1 host: RamFilter 1."
    assert ask(manager, request(0, fakes.spec("b", memory_mb=900), unused=["a"]))[0].error is None
    # The server's own former selection is not in its way.
    assert ask(manager, request(0, fakes.spec("b", memory_mb=1000)))[0].error is None


def test_what_was_placed_and_gone_between_two_looks_keeps_no_room():
    placed = set()
    manager = make(one_host(), unplaced=lambda uuids: set(uuids) - placed)
    assert ask(manager, request(0, fakes.spec("a", memory_mb=16000)))[0].error is None
    big = fakes.spec("b", memory_mb=16000)
    assert ask(manager, request(0, big))[0].error == selection.NO_VALID_HOST, "a is on its way"
    placed.add("a")
    assert ask(manager, request(0, big))[0].error is None, "a is looked up before a no is said"


def test_who_asks_again_gets_pictures_that_are_not_older_than_the_question():
    rows, service = {"h1": fakes.node("h1")}, fakes.service("h1")
    manager = make(
        lambda mark, known: ([(rows["h1"], service)], 1.0), testing__refresh_delay=3600.0
    )
    big = fakes.spec("a", memory_mb=10000)
    assert ask(manager, request(0, big))[0].error is None
    rows["h1"] = fakes.node("h1", counter=2, memory_mb_used=20000)
    assert ask(manager, request(0, big))[0].error is None, "the look is held back"
    assert ask(manager, request(0, big, unused=["a"]))[0].error == selection.NO_VALID_HOST


def test_a_failure_of_one_request_does_not_touch_the_others():
    manager = make(one_host(), filter_scheduler__enabled_filters=[f"{__name__}:BrokenFilter"])
    bad = fakes.spec("bad")
    bad.project_id = "bad"
    answers = ask(
        manager, request(0, fakes.spec("a")), request(1, bad), request(2, fakes.spec("c"))
    )
    assert [answer.error for answer in answers] == [None, selection.FAILED, None]
    assert answers[1].reason == (
        "The scheduler could not decide: the filter BrokenFilter is broken (RuntimeError)."
    )


def test_an_unreadable_database_is_an_error_of_the_call():
    def load(mark, known):
        raise exception.DatabaseUnavailable()

    manager = make(load)
    manager.init_host()
    with pytest.raises(exception.DatabaseUnavailable):
        ask(manager, request(0, fakes.spec("a")))


@pytest.mark.parametrize(
    ("service", "spec", "only", "recent"),
    [
        ({"age": 70.0}, {}, True, True),
        ({"age": 170.0}, {}, True, False),
        ({"age": 1.0, "disabled": True}, {}, True, False),
        ({"age": 1.0}, {"memory_mb": 20000}, False, False),
        ({"age": 70.0}, {"force_host": "h1"}, False, True),
    ],
)
def test_whether_trying_again_makes_sense(service, spec, only, recent):
    manager = make(fixed((fakes.node("h1"), fakes.service("h1", **service))))
    (answer,) = ask(manager, request(0, fakes.spec("a", **spec)))
    assert answer.error == selection.NO_VALID_HOST
    assert (answer.only_compute_filter, answer.recently_seen) == (only, recent)


@pytest.mark.parametrize(
    ("age", "answered", "settling"),
    [
        (3600.0, 59.0, True),  # the bus is back, the host may be on its way
        (3600.0, 61.0, False),
        (1.0, 59.0, False),  # the host is up, and full
    ],
)
def test_hosts_that_were_not_heard_yet_may_come(age, answered, settling, monkeypatch):
    manager = make(fixed((fakes.node("h1"), fakes.service("h1", age=age))))
    monkeypatch.setattr(manager._heartbeat, "answered_for", lambda: answered)
    (answer,) = ask(manager, request(0, fakes.spec("a", memory_mb=20000)))
    assert (answer.error, answer.settling) == (selection.NO_VALID_HOST, settling)


def test_log_lines_of_no_valid_host(caplog):
    records = [(fakes.node(f"h{i}"), fakes.service(f"h{i}")) for i in range(4)]
    manager = make(
        fixed(*records), filter_scheduler__enabled_filters=["ComputeFilter", "RamFilter"]
    )
    with caplog.at_level(logging.INFO):
        ask(manager, request(0, fakes.spec("some-uuid", memory_mb=99999)))
    lines = [(r.name, r.levelname, r.getMessage()) for r in caplog.records if "ilter" in r.name]
    assert lines == [
        ("novalite.filters", "INFO", "Filter RamFilter returned 0 hosts"),
        (
            "novalite.filters",
            "INFO",
            "Filtering removed all hosts for the request with instance ID 'some-uuid'. Filter "
            "results: ['ComputeFilter: (start: 4, end: 4)', 'RamFilter: (start: 4, end: 0)']",
        ),
    ]


def test_log_line_of_a_selection(caplog):
    manager = make(one_host())
    with caplog.at_level(logging.INFO):
        ask(manager, request(0, fakes.spec("some-uuid")))
    (record,) = [r for r in caplog.records if r.getMessage().startswith("step=3")]
    assert record.getMessage() == "step=3 host h1 is selected, alternates []; 1 host: left 1"
    assert record.instance == "[instance: some-uuid] "


def test_unknown_filters_refuse_the_start():
    with pytest.raises(exception.ConfigurationError, match="RamFilterr"):
        make(one_host(), filter_scheduler__enabled_filters=["RamFilterr"])


def test_reload_takes_other_filters_and_a_wrong_one_keeps_the_former():
    manager = make(one_host())
    too_large = fakes.spec("a", memory_mb=99999)
    assert ask(manager, request(0, too_large))[0].error == selection.NO_VALID_HOST
    manager.conf.set_override("enabled_filters", ["ComputeFilter"], group="filter_scheduler")
    manager.reload()
    (answer,) = ask(manager, request(0, too_large))
    assert answer.error is None
    assert answer.selections[0][0].limits.as_dict() == {}
    manager.conf.set_override("enabled_filters", ["Nonsense"], group="filter_scheduler")
    with pytest.raises(exception.ConfigurationError):
        manager.reload()
    assert ask(manager, request(0, too_large))[0].error is None


def test_every_option_of_the_scheduler_has_its_effect():
    conf = make_conf(
        scheduler__max_attempts=2,
        filter_scheduler__ram_weight_multiplier=0.0,
        filter_scheduler__cpu_weight_multiplier=2.0,
        filter_scheduler__disk_weight_multiplier=-1.0,
        scheduler__host_refresh_interval=0.5,
        scheduler__host_sweep_interval=9.0,
        testing__refresh_delay=2.0,
        service_down_time=33,
        default_availability_zone="here",
    )
    hosts = [fakes.host_state(f"h{i}") for i in range(4)]
    outcome = manager_module.make_pipeline(conf).schedule(hosts, [fakes.spec()])
    assert len(outcome.selections[0]) == 2
    assert outcome.decisions[0].weighers == [
        ("CPUWeigher", 2.0),
        ("DiskWeigher", -1.0),
        ("IoOpsWeigher", -1.0),
        ("BuildFailureWeigher", -1000000.0),
    ]
    made = manager_module._settings(conf)
    assert (made.refresh_interval, made.sweep_interval) == (2.5, 9.0)
    assert (made.service_down_time, made.default_zone) == (33.0, "here")


class Cloud:
    """Equal hosts whose claims arrive some time after the selection."""

    def __init__(self, count):
        self.nodes = {f"h{i:02d}": fakes.node(f"h{i:02d}") for i in range(count)}
        self.changed = set(self.nodes)

    def load(self, mark, known):
        found = [(self.picture(name), fakes.service(name)) for name in sorted(self.changed)]
        self.changed.clear()
        for node in self.nodes.values():
            node.instances = []
        return found, 1.0

    def picture(self, name):
        return base.decode(base.encode(self.nodes[name]))

    def claim(self, name, uuid, wanted):
        node = self.nodes[name]
        node.memory_mb_used += wanted.memory_mb
        node.local_gb_used += wanted.disk_gb
        node.vcpus_used += wanted.vcpus
        node.running_vms += 1
        node.instances.append(uuid)
        node.generation = Generation(1, node.generation.counter + 1)
        self.changed.add(name)


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_a_hundred_parallel_creates_spread_over_twenty_hosts(seed):
    """Concurrency 10, claims in any order, requests alone or together: 5 each, one more or less.

    Builds that go on do not count here: they would keep requests away from hosts that build.
    """
    rng, cloud = random.Random(seed), Cloud(20)
    manager = make(
        cloud.load,
        scheduler__host_refresh_interval=0.0,
        filter_scheduler__io_ops_weight_multiplier=0.0,
    )
    wanted = capacity.need(fakes.spec().flavor)
    flying, asked, landed = [], 0, Counter()
    while sum(landed.values()) < 100:
        room = min(10 - len(flying), 100 - asked)
        if room and (not flying or rng.random() < 0.5):
            batch = rng.randint(1, room)
            uuids = [f"i{asked + number}" for number in range(batch)]
            asked += batch
            answers = ask(manager, *(request(n, fakes.spec(u)) for n, u in enumerate(uuids)))
            chosen = [answer.selections[0][0].host for answer in answers]
            flying.extend(zip(uuids, chosen, strict=True))
        else:
            uuid, host = flying.pop(rng.randrange(len(flying)))
            cloud.claim(host, uuid, wanted)
            landed[host] += 1
    assert len(landed) == 20
    assert set(landed.values()) <= {4, 5, 6}


def test_reload_takes_over_every_option_of_the_pipeline():
    manager = make(one_host())
    conf = manager.conf
    conf.set_override("enabled_filters", ["RamFilter"], "filter_scheduler")
    conf.set_override("host_subset_size", 4, "filter_scheduler")
    conf.set_override("shuffle_best_same_weighed_hosts", True, "filter_scheduler")
    conf.set_override("max_attempts", 6, "scheduler")
    conf.set_override("weight_classes", ["RAMWeigher", "BuildFailureWeigher"], "filter_scheduler")
    for name in ("ram", "build_failure"):
        conf.set_override(f"{name}_weight_multiplier", -2.0, "filter_scheduler")
    conf.set_override(
        "available_filters", ["nova.scheduler.filters.all_filters"], "filter_scheduler"
    )
    conf.set_override("service_down_time", 44)
    conf.set_override("host_refresh_interval", 0.25, "scheduler")
    conf.set_override("refresh_delay", 0.5, "testing")
    conf.set_override("host_sweep_interval", 70.0, "scheduler")
    conf.set_override("default_availability_zone", "other")
    manager.reload()
    pipeline = manager._pipeline
    assert [type(one).__name__ for one in pipeline._filters] == ["RamFilter"]
    assert [one.multiplier for one in pipeline._weighers] == [-2.0, 2.0]
    assert (pipeline._subset, pipeline._shuffle, pipeline._attempts) == (4, True, 6)
    assert manager._hosts._settings == host_manager.Settings(44.0, 0.75, 70.0, "other")


@pytest.mark.parametrize(
    ("host", "words"),
    [(None, "Node N1 was not found."), ("h1", "Node N1 was not found on host h1.")],
)
def test_a_forced_node_that_is_not_there_is_named(host, words):
    manager = make(one_host())
    spec = fakes.spec("a", force_host=host, force_node="N1")
    (answer,) = ask(manager, request(0, spec))
    assert answer.reason.endswith(words)


@pytest.mark.parametrize(
    ("name", "ignored", "words"),
    [
        ("undefined", [], "1 host: force_hosts 1. Host undefined was not found."),
        ("H1", [], "1 host: force_hosts 1. Host H1 is down."),
        ("h1", ["h1"], "Only host h1 was asked for, and the build failed there."),
    ],
)
def test_a_forced_host_that_cannot_be_had_is_named_v10(name, ignored, words):
    manager = make(fixed((fakes.node("h1"), fakes.service("h1", age=500.0))))
    spec = fakes.spec("a", force_host=name, ignore_hosts=ignored)
    (answer,) = ask(manager, request(0, spec))
    assert answer.error == selection.NO_VALID_HOST
    assert answer.reason.endswith(words)


def test_questions_change_nothing_and_do_not_count_the_servers_own_selection():
    manager = make(one_host(memory_mb=2048), scheduler__host_refresh_interval=0.0)
    first = fakes.spec("a", memory_mb=1500)
    assert ask(manager, request(0, first))[0].error is None
    counted = manager.count_capacity(fakes.spec("", memory_mb=500), ["H1", "nobody"])
    assert (counted.total, counted.unknown, counted.hosts[0].selected) == (2, ["nobody"], 1)
    examined = manager.examine_hosts(first, [])
    assert (examined.hosts[0].fits, examined.hosts[0].selected) == (True, 0)
    assert examined.decision.host == "h1"
    other = manager.examine_hosts(fakes.spec("b", memory_mb=1500), [])
    assert not other.hosts[0].fits
    assert manager._hosts.selected() == ["a"]
    assert manager.count_capacity(fakes.spec("", memory_mb=500), []).total == 2
    assert base.decode(base.pack(examined)) == examined
