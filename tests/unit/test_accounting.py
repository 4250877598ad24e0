# SPDX-License-Identifier: Apache-2.0
"""The scheduler's sums and a host's books, side by side, for any hosts, flavors, ratios and orders.

What the one selects the other takes; what the one refuses for want of room the other refuses too;
what :mod:`novalite.objects.capacity` counts is what can be booted; and sums that are only ever
changed stay those of what is there.
"""

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

import novalite.conf
from novalite.compute.resource_tracker import ResourceTracker
from novalite.objects import agreement, capacity
from novalite.objects.capacity import Need, Resource
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import Limits, RequestSpec
from novalite.scheduler.host_state import HostState
from tests.unit.compute.doubles import Driver
from tests.unit.scheduler import fakes

FILTERS = ["RamFilter", "DiskFilter", "CoreFilter"]
OPTIONS = (
    "cpu_allocation_ratio",
    "ram_allocation_ratio",
    "disk_allocation_ratio",
    "reserved_host_cpus",
    "reserved_host_memory_mb",
    "reserved_host_disk_mb",
)

ratios = st.just(0.0) | st.sampled_from([1.0, 1.5, 16.0]) | st.floats(0.05, 4.0)
options = st.fixed_dictionaries(
    {
        "cpu_allocation_ratio": ratios,
        "ram_allocation_ratio": ratios,
        "disk_allocation_ratio": ratios,
        "reserved_host_cpus": st.integers(0, 3),
        "reserved_host_memory_mb": st.integers(0, 3000),
        "reserved_host_disk_mb": st.integers(0, 9000),
    }
)
sizes = st.fixed_dictionaries(
    {
        "vcpus": st.integers(0, 12),
        "memory_mb": st.integers(0, 9000),
        "local_gb": st.integers(0, 60),
        "disk_available_least": st.none() | st.integers(-5, 60),
        "guest_overhead_mb": st.just(0) | st.integers(1, 200),
    }
)
hosts = st.lists(st.tuples(options, sizes), min_size=1, max_size=3)
flavors = st.builds(
    Flavor,
    st.just("f"),
    st.just("f"),
    st.integers(1, 4),
    st.integers(1, 3000),
    st.integers(0, 12),
    st.integers(0, 4),
    st.integers(0, 3000),
)
steps = st.lists(
    st.tuples(st.just("boot"), flavors, st.booleans())
    | st.tuples(st.just("delete"), st.integers(0, 20), st.booleans())
    | st.tuples(st.just("change"), st.tuples(options, sizes), st.booleans()),
    max_size=14,
)


@pytest.fixture(scope="module")
def conf():
    made = cfg.ConfigOpts()
    novalite.conf.register_opts(made)
    made([], project="novalite", default_config_files=[], default_config_dirs=[])
    return made


class Node:
    """One host: its books, and the state that the scheduler has of it."""

    def __init__(self, conf, number, given):
        self.conf, self.driver = conf, Driver()
        self.least = None
        self.name = f"h{number}"
        self._set(*given)
        self.tracker = ResourceTracker(conf, self.driver)
        conf.set_override("host", self.name)
        self.tracker.start(1, {}, [])
        self.state = HostState(self.picture)
        self.state.up = True

    def _set(self, options, sizes):
        for name in OPTIONS:
            self.conf.set_override(name, options[name])
        self.least = sizes["disk_available_least"]
        self.options = options
        self.driver.resources = dataclasses.replace(self.driver.resources, **sizes)

    @property
    def picture(self):
        return self.tracker.picture("node1")

    def change(self, given):
        """The host, or its options, become others; what its thin disks hold stays promised."""
        self._set(*given)
        if self.least is not None:
            [book] = self.tracker._books.values()
            self.driver.resources.disk_available_least = self.least - book.used.disk_gb
        self.tracker.measure()

    def sync(self):
        """The scheduler hears of the host as it is: all that was selected for it is in there."""
        for uuid in list(self.state.selected):
            self.state.release(uuid)
        self.state.update(self.picture)

    def claim(self, uuid, need, limits):
        return self.tracker.claim("node1", uuid, need, limits, token="t", attempt=1)

    def takes(self, need):
        """Tell whether a claim under the host's own limits would stand."""
        limits = Limits(*[room.limit for room in capacity.own_rooms(self.picture)])
        stands = self.claim("trial", need, limits).reason is None
        self.tracker.release("node1", "trial", "t")
        return stands


class Small:
    """A scheduler with some hosts; ``placed`` is what must be in the books."""

    def __init__(self, conf, given):
        self.nodes = [Node(conf, number, each) for number, each in enumerate(given)]
        self.pipeline = fakes.pipeline(FILTERS)
        self.placed = {}
        self.names = (f"server{number}" for number in itertools.count())

    def select(self, flavor):
        spec = RequestSpec(next(self.names), "p", "u", flavor)
        outcome = self.pipeline.schedule([node.state for node in self.nodes], [spec])
        if not outcome.found:
            return spec, None, None
        [[chosen, *_]] = outcome.selections
        [node] = [each for each in self.nodes if each.name == chosen.host]
        return spec, node, chosen.limits

    def boot(self, flavor):
        """Boot as conductor and compute do; a stale picture is forgiven once a host."""
        need = capacity.need(flavor)
        for _ in range(len(self.nodes) + 1):
            fresh = [
                node.state.picture.generation == node.picture.generation for node in self.nodes
            ]
            spec, node, limits = self.select(flavor)
            if node is None:
                if all(fresh):
                    assert not any(each.takes(need) for each in self.nodes)
                return
            current = node.state.picture.generation == node.picture.generation
            verdict = node.claim(spec.instance_uuid, need, limits)
            if verdict.reason is None:
                self.placed[spec.instance_uuid] = (node, need)
                return
            assert verdict.stale and not current, "a fresh selection was refused"
            node.state.release(spec.instance_uuid)
            node.sync()
        raise AssertionError("each host may be stale once only")

    def delete(self, number):
        if self.placed:
            uuid = sorted(self.placed)[number % len(self.placed)]
            node, _need = self.placed.pop(uuid)
            assert node.tracker.release_up_to(uuid, None)

    def check(self):
        """The kept sums are those of what is there, and nothing else is there."""
        for node in self.nodes:
            pictures, claims = node.tracker.books()
            assert list(agreement.compare_sums(pictures[0], claims)) == []
            assert node.tracker.recount() == []
            mine = {uuid: need for uuid, (home, need) in self.placed.items() if home is node}
            assert {claim.instance_uuid: claim.need for claim in claims} == mine


@settings(max_examples=60)
@given(hosts, steps)
def test_scheduler_and_claim_never_disagree_and_books_never_drift(conf, given_hosts, taken):
    small = Small(conf, given_hosts)
    for kind, what, told in taken:
        if kind == "boot":
            small.boot(what)
        elif kind == "delete":
            small.delete(what)
        else:
            small.nodes[0].change(what)
        small.check()
        if told:
            for node in small.nodes:
                node.sync()
    while small.placed:
        small.delete(0)
    small.check()
    for node in small.nodes:
        picture, held = node.picture, node.options
        assert picture.memory_mb_used == held["reserved_host_memory_mb"]
        assert picture.local_gb_used == capacity.whole_gb(held["reserved_host_disk_mb"])
        assert picture.vcpus_used == held["reserved_host_cpus"]


@settings(max_examples=40)
@given(st.tuples(options, sizes), flavors, st.lists(flavors, max_size=4))
def test_capacity_is_what_can_be_booted(conf, given_host, flavor, before):
    """One after the other by scheduler and claim, and all at once by the scheduler alone."""
    small = Small(conf, [given_host])
    [node] = small.nodes
    for other in before:
        small.boot(other)
        node.sync()
    filled = capacity.fill(capacity.own_rooms(node.picture), capacity.need(flavor))
    if filled.count is None or filled.count > 40:
        return
    assert filled.binds
    specs = [RequestSpec(f"s{n}", "p", "u", flavor) for n in range(filled.count)]
    together = small.pipeline.schedule([node.state], specs)
    assert together.found
    for spec in specs:
        node.state.release(spec.instance_uuid)
    more = [*specs, RequestSpec("more", "p", "u", flavor)]
    assert not small.pipeline.schedule([node.state], more).found
    already = len(small.placed)
    for _ in range(filled.count + 1):
        small.boot(flavor)
        node.sync()
    assert len(small.placed) - already == filled.count


def test_the_hosts_that_are_tried_can_be_filled(conf):
    """The tests above would say nothing of hosts that never take a server."""
    given = {
        "cpu_allocation_ratio": 16.0,
        "ram_allocation_ratio": 1.5,
        "disk_allocation_ratio": 1.0,
        "reserved_host_cpus": 0,
        "reserved_host_memory_mb": 512,
        "reserved_host_disk_mb": 0,
    }
    sizes_of = {
        "vcpus": 8,
        "memory_mb": 4096,
        "local_gb": 40,
        "disk_available_least": 40,
        "guest_overhead_mb": 64,
    }
    small = Small(conf, [(given, sizes_of)])
    flavor = Flavor("f", "f", 1, 512, 1)
    filled = capacity.fill(capacity.own_rooms(small.nodes[0].picture), Need(512, 1, 1))
    assert filled == capacity.Fill(
        9, (Resource.MEMORY,), {Resource.MEMORY: 9, Resource.DISK: 40, Resource.VCPU: 128}
    )
    specs = [RequestSpec(f"s{number}", "p", "u", flavor) for number in range(10)]
    assert not small.pipeline.schedule([small.nodes[0].state], specs).found
    assert small.pipeline.schedule([small.nodes[0].state.copy()], specs[:9]).found
    for _ in range(12):
        small.boot(flavor)
    assert len(small.placed) == 9
    small.check()
