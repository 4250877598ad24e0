# SPDX-License-Identifier: Apache-2.0
"""What is kept from request to request gives the answers of a plain loop, whatever happens."""

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from novalite.objects import decision, selection
from novalite.objects.aggregate import Aggregate
from novalite.objects.capacity import Need
from novalite.objects.reason import Reason
from novalite.objects.request_spec import InstanceGroup
from novalite.scheduler import filters, fleet, ranking, shortlist, weights
from novalite.scheduler.filters.base import Filter
from novalite.scheduler.fleet import Fleet
from novalite.scheduler.pipeline import Pipeline
from novalite.scheduler.weights.base import Weigher
from tests.unit.scheduler import fakes, plain, test_manager

# Few different values, so that there are many ties and ends of scales that go and come.
AGGREGATES = [
    (),
    (Aggregate(1, "a1", "left", "left"),),
    (Aggregate(2, "a2", "light", None, {"ram_weight_multiplier": "0.25"}),),
    (Aggregate(3, "a3", "stacked", "left", {"num_instances_weight_multiplier": "2"}),),
]
host_rows = st.builds(
    dict,
    memory_mb=st.sampled_from([8192, 16384]),
    memory_mb_used=st.sampled_from([512, 5000, 9000, 12288, 24000]),
    local_gb_used=st.sampled_from([0, 50, 199, 210]),
    vcpus_used=st.sampled_from([0, 8, 100, 130]),
    running_vms=st.integers(0, 3),
)
demands = st.builds(
    dict,
    vcpus=st.sampled_from([1, 2, 9]),
    memory_mb=st.sampled_from([512, 2048, 20000]),
    root_gb=st.sampled_from([0, 10, 200]),
    availability_zone=st.sampled_from([None, None, None, "left"]),
    ignore_hosts=st.sampled_from([[], [], ["h0", "h1"]]),
    instance_group=st.sampled_from(
        [None, None, None]
        + [
            InstanceGroup("g1", policy, {}, {"m1": "h0", "m2": "h2"})
            for policy in ("anti-affinity", "soft-affinity", "soft-anti-affinity")
        ]
    ),
)
multipliers = st.sampled_from(
    [
        dict.fromkeys(weights.WEIGHERS, 1.0),
        {"ram_weight_multiplier": 1.0},
        {"ram_weight_multiplier": -1.0, "cpu_weight_multiplier": 0.3, "disk_weight_multiplier": 2},
        {"ram_weight_multiplier": 1.0, "io_ops_weight_multiplier": -1.0},
        {},
    ]
)
changes = st.one_of(
    st.tuples(st.just("ask"), st.integers(0, 1), st.integers(1, 3)),
    st.tuples(st.just("ask"), st.integers(0, 1), st.just(1)),
    st.tuples(st.just("release"), st.integers(0, 30), st.none()),
    st.tuples(st.just("report"), st.integers(0, 20), host_rows),
    st.tuples(st.just("service"), st.integers(0, 20), st.booleans()),
    st.tuples(st.just("join"), st.integers(0, 20), st.sampled_from(AGGREGATES)),
    st.tuples(st.just("add"), st.none(), host_rows),
)


class Cloud:
    """A fleet, everything that may happen to it, and what it should answer."""

    def __init__(self, rows, pipeline, multipliers):
        self.fleet = Fleet(compare=True)
        for row in rows:
            self.add(row)
        self.pipeline = pipeline
        self.filters = filters.load(filters.DEFAULT)
        self.multipliers = multipliers
        self.counter = 1
        self.selected = []

    def add(self, row):
        name = f"h{len(self.fleet)}"
        self.fleet.add(fakes.host_state(name, **row))

    def happen(self, kind, number, value):
        if kind == "add":
            self.add(value)
            return
        if kind == "release":
            if self.selected:
                index, uuid = self.selected.pop(number % len(self.selected))
                self.fleet.release(index, uuid)
            return
        if not len(self.fleet):
            return
        index = number % len(self.fleet)
        host = self.fleet[index]
        self.counter += 1
        if kind == "report":
            self.fleet.report(index, fakes.node(host.node, counter=self.counter, **value))
        elif kind == "service":
            up = not host.up if value else host.up
            disabled = host.disabled if value else not host.disabled
            self.fleet.service(index, up=up, forced_down=False, disabled=disabled, reason="r")
        elif kind == "join":
            self.fleet.join(index, value)

    def ask(self, wanted, count):
        """Ask for servers; compare each decision with the plain loop on the same hosts."""
        specs = [fakes.spec(f"i{self.counter}.{n}", **wanted) for n in range(count)]
        self.counter += 1
        outcome = self.pipeline.schedule(self.fleet, specs, 0.0)
        chosen = [list(self.fleet).index(host) for host in outcome.hosts]
        if outcome.found:
            for index, spec in zip(chosen, specs, strict=True):
                self.fleet.release(index, spec.instance_uuid)
        for number, made in enumerate(outcome.decisions):
            # A request that fails shows its last decision only.
            if outcome.found or count == 1:
                self.compare(specs[number], made)
            if outcome.found:
                self.consume(chosen[number], specs[number])

    def compare(self, spec, made):
        demand = self.pipeline.demand(spec, self.fleet)
        running = weights.running(weights.load(self.multipliers), list(self.fleet))
        _order, expected = plain.decide(
            self.fleet, demand, self.filters, running, rooms=self.pipeline.rooms
        )
        assert made == expected.bound()

    def consume(self, index, spec):
        demand = self.pipeline.demand(spec, self.fleet)
        self.fleet.consume(
            index,
            spec.instance_uuid,
            demand.need,
            group=demand.group and demand.group.uuid,
            flavorid=spec.flavor.flavorid,
        )
        self.selected.append((index, spec.instance_uuid))


@settings(max_examples=50)
@given(
    st.lists(host_rows, max_size=25),
    st.lists(demands, min_size=2, max_size=2),
    multipliers,
    st.lists(changes, min_size=20, max_size=40),
    st.sampled_from([1, 3, 256]),
)
def test_kept_answers_are_those_of_a_plain_loop(rows, wanted, multipliers, steps, front):
    # Short fronts run out of hosts as long ones do in a large cloud.
    with (
        mock.patch.object(ranking, "_FRONT", front),
        mock.patch.object(shortlist, "_FRONT", max(front, decision.NEAREST)),
        mock.patch.object(fleet, "_MOST_CHANGED", 1.1),
    ):
        cloud = Cloud(rows, fakes.pipeline(multipliers=multipliers), multipliers)
        for kind, number, value in steps:
            if kind == "ask":
                cloud.ask(wanted[number], value)
            else:
                cloud.happen(kind, number, value)


# -- what is kept


class Counted(Filter):
    """Counts what it is asked, and breaks when it is told to."""

    reads = ()

    def __init__(self):
        self.asked = 0
        self.broken = False

    def examine(self, host, demand):
        self.asked += 1
        if self.broken:
            raise RuntimeError("broken")
        return None if host.largest_memory_mb >= demand.memory_mb else Reason("full")


def fleet_of(count, **changes):
    return Fleet([fakes.host_state(f"h{number}") for number in range(count)], **changes)


def ask(pipeline, hosts, **wanted):
    """Ask for one server and give it back."""
    outcome = pipeline.schedule(hosts, [fakes.spec("x", **wanted)])
    for host in outcome.hosts:
        hosts.release(list(hosts).index(host), "x")
    return outcome


def test_only_changed_hosts_are_examined_again():
    counted, hosts = Counted(), fleet_of(50)
    pipeline = Pipeline([counted], weights.load({"ram_weight_multiplier": 1.0}))
    asked = []
    for _ in range(4):
        before = counted.asked
        assert ask(pipeline, hosts).found
        asked.append(counted.asked - before)
    # Kept from the second time on; the one that was taken and given back is examined again.
    assert asked == [50, 50, 1, 1]
    hosts.report(7, fakes.node("h7", counter=2, memory_mb_used=600))
    hosts.service(8, up=False, forced_down=False, disabled=False, reason=None)
    hosts.service(8, up=False, forced_down=False, disabled=False, reason=None)
    hosts.join(9, AGGREGATES[1])
    hosts.join(10, ())
    hosts.release(11, "unknown")
    before = counted.asked
    ask(pipeline, hosts)
    assert counted.asked - before == 1 + 3


def test_servers_of_one_request_are_examined_once():
    counted, hosts = Counted(), fleet_of(50)
    pipeline = Pipeline([counted], weights.load({"ram_weight_multiplier": 1.0}))
    pipeline.schedule(hosts, [fakes.spec(f"i{number}") for number in range(10)])
    assert counted.asked == 50 + 9


def test_demands_that_come_once_do_not_drive_out_others():
    counted, hosts = Counted(), fleet_of(10)
    pipeline = Pipeline([counted], [])
    for _ in range(2):
        ask(pipeline, hosts)
    for size in range(2 * fleet._SHORTLISTS):
        ask(pipeline, hosts, memory_mb=1000 + size)
    before = counted.asked
    ask(pipeline, hosts)
    assert counted.asked - before < 10


def test_the_shortlist_asked_for_longest_ago_goes_first():
    counted, hosts = Counted(), fleet_of(10)
    pipeline = Pipeline([counted], [])
    with mock.patch.object(fleet, "_SHORTLISTS", 2):
        for size in (1, 1, 2, 2, 1, 3, 3):
            ask(pipeline, hosts, memory_mb=size)
        before = counted.asked
        ask(pipeline, hosts, memory_mb=1)
        assert counted.asked - before < 10
        ask(pipeline, hosts, memory_mb=2)
        assert counted.asked - before > 10


def test_the_journal_stays_short():
    hosts = fleet_of(10)
    pipeline = fakes.pipeline()
    for size in (512, 512, 600, 600):
        ask(pipeline, hosts, memory_mb=size)
    for number in range(1500):
        hosts.service(
            number % 10, up=bool(number // 10 % 2), forced_down=False, disabled=False, reason=None
        )
        if number % 5 == 0:
            assert ask(pipeline, hosts, memory_mb=512).decisions == (
                fakes.pipeline().schedule([h.copy() for h in hosts], [fakes.spec("x")]).decisions
            )
        assert len(hosts._journal) <= 2 * 10 + 1000
    # One shortlist was asked for all the time, the other one has seen too little.
    assert len(hosts._kept) == 1


def test_aggregates_that_switch_a_weigher_on_are_seen():
    hosts = fleet_of(3)
    pipeline = fakes.pipeline(multipliers={"num_instances_weight_multiplier": 0.0})
    for _ in range(3):
        assert ask(pipeline, hosts).decisions[0].weighers == []
    hosts.join(2, AGGREGATES[3])
    assert [name for name, _ in ask(pipeline, hosts).decisions[0].weighers] == [
        "NumInstancesWeigher"
    ]


class Undeclared(Counted):
    """Has no reads of its own."""


class Volatile(Counted):
    volatile = True


class Bare(Filter):
    def examine(self, host, demand):
        return None


class BareWeigher(Weigher):
    def weigh(self, host, demand):
        return 1.0


class DeclaredWeigher(BareWeigher):
    reads = ("project_id",)


@pytest.mark.parametrize(
    ("added", "weigher", "keeps"),
    [
        (Counted, None, True),
        (Undeclared, None, True),
        (Volatile, None, False),
        (Bare, None, False),
        (None, BareWeigher, False),
        (None, DeclaredWeigher, True),
        (None, None, True),
    ],
)
def test_nothing_is_kept_for_filters_that_do_not_say_what_they_read(added, weigher, keeps):
    using = filters.load(list(filters.FILTERS)) + ([added()] if added else [])
    weighing = weights.load({}) + ([weigher()] if weigher else [])
    assert Pipeline(using, weighing).keeps is keeps


def test_a_filter_that_promises_nothing_is_asked_about_every_host_each_time():
    counted, hosts = Volatile(), fleet_of(20)
    pipeline = Pipeline([counted], [])
    for _ in range(3):
        ask(pipeline, hosts)
    assert counted.asked == 60


def test_a_filter_whose_answers_change_by_themselves_is_found_out():
    class Moody(Counted):
        def examine(self, host, demand):
            super().examine(host, demand)
            return Reason("mood") if self.asked > 40 and host.host == "h3" else None

    hosts, pipeline = fleet_of(10, compare=True), Pipeline([Moody()], [])
    with pytest.raises(RuntimeError, match="A kept shortlist differs from a fresh one"):
        for _ in range(10):
            ask(pipeline, hosts)


def test_the_option_lets_a_scheduler_compare():
    class Moody(Counted):
        def examine(self, host, demand):
            super().examine(host, demand)
            return Reason("mood") if self.asked > 3 else None

    records = [(fakes.node(f"h{n}"), fakes.service(f"h{n}")) for n in range(3)]
    for compare, errors in ((False, [None] * 3), (True, [None, None, selection.FAILED])):
        made = test_manager.make(test_manager.fixed(*records), testing__compare_shortlists=compare)
        moody = Moody()
        made._pipeline = Pipeline([moody], [])
        answers = []
        for number in range(3):
            moody.asked = 0
            (answer,) = test_manager.ask(made, test_manager.request(number, fakes.spec("x")))
            answers.append(answer.error)
        assert answers == errors


def test_an_error_in_the_middle_of_an_update_leaves_nothing_half_done():
    counted, hosts = Counted(), fleet_of(10)
    pipeline = Pipeline([counted], [])
    for _ in range(2):
        ask(pipeline, hosts)
    counted.broken = True
    with pytest.raises(RuntimeError, match="broken"):
        ask(pipeline, hosts)
    counted.broken = False
    hosts.report(0, fakes.node("h0", counter=2, memory_mb_used=24000))
    assert ask(pipeline, hosts, memory_mb=1000).decisions[0].survivors == 9


def test_groups_know_their_members_on_the_way():
    hosts = fleet_of(3)
    hosts.consume(1, "m1", Need(1, 1, 1), group="g")
    hosts.consume(2, "m2", Need(1, 1, 1), group="g")
    hosts.consume(2, "other", Need(1, 1, 1))
    assert hosts.members("g") == {"m1": "h1", "m2": "h2"}
    assert Fleet(hosts).members("g") == hosts.members("g")
    hosts.release(1, "m1")
    assert hosts.members("g") == {"m2": "h2"}
    assert hosts.members("unknown") == {}
