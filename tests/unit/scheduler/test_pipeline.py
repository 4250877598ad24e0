# SPDX-License-Identifier: Apache-2.0
"""Selections, limits, alternates and forced hosts; and the core against a plain oracle."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects import capacity
from novalite.objects.request_spec import Generation
from novalite.scheduler import filters, weights
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters.base import Filter
from novalite.scheduler.pipeline import Pipeline
from novalite.scheduler.shortlist import Shortlist
from tests.unit.scheduler import fakes


def names(outcome):
    return [[selection.host for selection in picked] for picked in outcome.selections]


def specs(count, **wanted):
    return [fakes.spec(f"i{number}", **wanted) for number in range(count)]


def test_best_host_first_then_alternates():
    hosts = [fakes.host_state(f"h{i}", memory_mb_used=512 + 1000 * i) for i in (3, 1, 2, 0)]
    outcome = fakes.pipeline().schedule(hosts, specs(1), 0.2)
    assert names(outcome) == [["h0", "h1", "h2"]]
    decision = outcome.decisions[0]
    assert (decision.host, decision.hosts, decision.survivors) == ("h0", 4, 4)
    assert decision.picture_age == 0.2
    assert [row.host for row in decision.weights] == ["h0", "h1", "h2", "h3"]
    assert decision.weights[0].total == 3.0


def test_limits_carry_the_generation_and_age_of_the_picture():
    hosts = [fakes.host_state("h1", epoch=4, counter=9)]
    (selection,) = fakes.pipeline().schedule(hosts, specs(1), 0.25).selections[0]
    assert selection.limits.as_dict() == {"memory_mb": 24576.0, "disk_gb": 200.0, "vcpu": 128.0}
    assert selection.limits.generation == Generation(4, 9)
    assert selection.limits.age == 0.25
    assert (selection.node, selection.zone) == ("h1", "nova")


@pytest.mark.parametrize(
    ("enabled", "limits"),
    [
        (["RamFilter"], {"memory_mb": 24576.0}),
        (["CoreFilter", "DiskFilter"], {"disk_gb": 200.0, "vcpu": 128.0}),
        (["ComputeFilter"], {}),
    ],
)
def test_only_enabled_filters_set_limits(enabled, limits):
    outcome = fakes.pipeline(enabled).schedule([fakes.host_state()], specs(1))
    assert outcome.selections[0][0].limits.as_dict() == limits
    assert {reason.code for reason in outcome.decisions[0].room} == {
        {"memory_mb": "enough_memory", "disk_gb": "enough_disk", "vcpu": "enough_vcpu"}[name]
        for name in limits
    }


def test_equal_hosts_keep_their_order():
    hosts = [fakes.host_state(name) for name in ("c", "a", "b", "d")]
    assert names(fakes.pipeline().schedule(hosts, specs(1))) == [["c", "a", "b"]]


def test_servers_of_one_request_see_each_other():
    hosts = [fakes.host_state(name) for name in ("h1", "h2", "h3")]
    outcome = fakes.pipeline().schedule(hosts, specs(6))
    assert Counter(picked[0] for picked in names(outcome)) == {"h1": 2, "h2": 2, "h3": 2}
    assert hosts[0].free_ram_mb == 16384 - 512 - 2 * 512


def test_all_or_nothing():
    hosts = [fakes.host_state("h1"), fakes.host_state("h2", memory_mb_used=24576)]
    before = hosts[0].largest_memory_mb
    outcome = fakes.pipeline().schedule(hosts, specs(3, memory_mb=10000))
    assert not outcome.found
    assert (outcome.selections, outcome.hosts) == ([], [])
    assert len(outcome.decisions) == 1
    assert hosts[0].largest_memory_mb == before
    assert outcome.decisions[0].reason_text() == (
        "There are not enough hosts available. 2 hosts: RamFilter 2."
    )


def test_a_filter_that_breaks_leaves_nothing_consumed():
    class Breaks(Filter):
        def examine(self, host, demand):
            if host.num_instances > 1:
                raise RuntimeError("broken")
            return None

    hosts = [fakes.host_state("h1")]
    before = hosts[0].largest_memory_mb
    with pytest.raises(RuntimeError, match="broken"):
        Pipeline([Breaks()], []).schedule(hosts, specs(4))
    assert hosts[0].largest_memory_mb == before


def test_no_hosts_at_all():
    decision = fakes.pipeline().schedule([], specs(1)).decisions[0]
    assert (decision.hosts, decision.misses) == (0, [])
    assert not decision.only("ComputeFilter")
    assert decision.reason_text() == "There are not enough hosts available. 0 hosts."


def test_alternates_are_on_other_service_hosts():
    hosts = [fakes.host_state(f"n{i}", host="h1", memory_mb_used=512 + i) for i in range(8)]
    hosts += [fakes.host_state("n8", host="h2", memory_mb_used=5000)]
    (picked,) = fakes.pipeline().schedule(hosts, specs(1)).selections
    assert [(s.host, s.node) for s in picked] == [("h1", "n0"), ("h2", "n8")]


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_a_selection_is_as_long_as_max_attempts(attempts):
    hosts = [fakes.host_state(f"h{i}") for i in range(20)]
    outcome = fakes.pipeline(max_attempts=attempts).schedule(hosts, specs(1))
    assert len(outcome.selections[0]) == attempts


def test_hosts_where_the_server_failed_are_left_out():
    hosts = [fakes.host_state(f"h{i}") for i in range(3)]
    outcome = fakes.pipeline().schedule(hosts, [fakes.spec(ignore_hosts=["h0", "h2"])])
    assert names(outcome) == [["h1"]]
    counts = {count.filter: count for count in outcome.decisions[0].filters}
    assert counts["RetryFilter"].codes == {"already_tried": 2}
    assert (counts["RetryFilter"].start, counts["RetryFilter"].end) == (3, 1)


def test_subset_draws_among_the_best():
    hosts = [fakes.host_state(f"h{i}", memory_mb_used=512 + 100 * i) for i in range(6)]
    seen = Counter()
    for seed in range(60):
        made = fakes.pipeline(host_subset_size=3, rng=random.Random(seed))
        outcome = made.schedule(hosts, specs(1))
        seen[outcome.selections[0][0].host] += 1
        assert len({selection.host for selection in outcome.selections[0]}) == 3
        for host in outcome.hosts:
            host.release("i0")
    assert set(seen) == {"h0", "h1", "h2"}


def test_shuffle_draws_among_those_that_share_the_best_weight():
    hosts = [fakes.host_state(f"h{i}") for i in range(9)]
    hosts += [fakes.host_state("full", memory_mb_used=9000)]
    seen = set()
    for seed in range(100):
        made = fakes.pipeline(shuffle=True, rng=random.Random(seed))
        outcome = made.schedule(hosts, specs(1))
        seen.add(outcome.selections[0][0].host)
        for host in outcome.hosts:
            host.release("i0")
    assert seen == {f"h{i}" for i in range(9)}


def test_negative_multiplier_fills_hosts_up():
    hosts = [fakes.host_state("h1"), fakes.host_state("h2", memory_mb_used=8000)]
    made = fakes.pipeline(multipliers={"ram_weight_multiplier": -1.0})
    assert names(made.schedule(hosts, specs(1))) == [["h2", "h1"]]


class TestForcedHost:
    def force(self, hosts, **forced):
        return fakes.pipeline().schedule(hosts, [fakes.spec(memory_mb=10**6, **forced)])

    def test_filters_are_skipped_and_no_limits_set(self):
        hosts = [fakes.host_state("h1"), fakes.host_state("h2", disabled=True)]
        outcome = self.force(hosts, force_host="h2")
        (picked,) = outcome.selections
        assert [selection.host for selection in picked] == ["h2"]
        assert picked[0].limits.as_dict() == {}
        decision = outcome.decisions[0]
        assert decision.forced
        assert decision.room == []
        assert [tuple(count) for count in decision.filters] == [
            ("force_hosts", 2, 1, {"not_forced_host": 1})
        ]

    def test_host_names_without_case_node_names_exactly(self):
        hosts = [fakes.host_state("Node1", host="Host1"), fakes.host_state("Node2", host="Host1")]
        assert names(self.force(hosts, force_host="hOST1")) == [["Host1"]]
        assert self.force(hosts, force_host="host1", force_node="Node2").hosts == [hosts[1]]
        assert self.force(hosts, force_node="Node2").hosts == [hosts[1]]
        assert not self.force(hosts, force_host="host1", force_node="node2").found

    @pytest.mark.parametrize("host", ["h2", "nowhere"])
    def test_down_or_unknown_is_no_valid_host(self, host):
        hosts = [fakes.host_state("h1"), fakes.host_state("h2", up=False)]
        outcome = self.force(hosts, force_host=host)
        assert not outcome.found
        assert not outcome.decisions[0].only("ComputeFilter")
        assert "force_hosts 2" in outcome.decisions[0].reason_text()

    def test_the_filters_are_asked_all_the_same(self):
        hosts = [fakes.host_state("h1"), fakes.host_state("h2", disabled=True)]
        decision = self.force(hosts, force_host="h2").decisions[0]
        found = {name: reason.code for name, reason in decision.violated}
        assert found == {"ComputeFilter": "host_disabled", "RamFilter": "larger_than_host_memory"}
        small = fakes.spec(memory_mb=64, force_host="h1")
        agreed = fakes.pipeline().schedule(hosts, [small]).decisions[0]
        assert agreed.forced and agreed.violated == []
        asked = fakes.pipeline().schedule(hosts, [fakes.spec(memory_mb=64)]).decisions[0]
        assert asked.violated == [], "only a forced host is taken against them"

    def test_it_is_tried_once(self):
        hosts = [fakes.host_state("h1"), fakes.host_state("h2")]
        outcome = self.force(hosts, force_host="h2", ignore_hosts=["h2"])
        assert not outcome.found
        (count,) = outcome.decisions[0].filters
        assert count.codes == {"not_forced_host": 1, "already_tried": 1}

    def test_many_servers_go_to_the_one_host(self):
        hosts = [fakes.host_state("h1"), fakes.host_state("h2")]
        outcome = fakes.pipeline().schedule(hosts, specs(3, memory_mb=9**6, force_host="h2"))
        assert names(outcome) == [["h2"]] * 3


class TestRequestedHost:
    def ask(self, hosts, **asked):
        return fakes.pipeline().schedule(hosts, [fakes.spec(memory_mb=1024, **asked)])

    def test_it_is_chosen_with_limits_and_without_alternates(self):
        hosts = [fakes.host_state("h1"), fakes.host_state("h2", memory_mb_used=8000)]
        outcome = self.ask(hosts, requested_host="H2")
        assert names(outcome) == [["h2"]]
        assert outcome.selections[0][0].limits.as_dict()["memory_mb"] == 24576.0
        assert not outcome.decisions[0].forced
        assert tuple(outcome.decisions[0].filters[0]) == (
            *("requested_destination", 2, 1),
            {"not_requested_host": 1},
        )

    def test_a_node_with_and_without_its_host(self):
        hosts = [fakes.host_state("n1", host="h1"), fakes.host_state("n2", host="h1")]
        assert self.ask(hosts, requested_node="n2").hosts == [hosts[1]]
        assert self.ask(hosts, requested_host="h1", requested_node="n2").hosts == [hosts[1]]
        assert not self.ask(hosts, requested_host="h2", requested_node="n2").found
        assert not self.ask(hosts, requested_node="N2").found

    def test_the_filters_hold_there(self):
        hosts = [fakes.host_state("h1"), fakes.host_state("h2", memory_mb_used=10**6)]
        outcome = self.ask(hosts, requested_host="h2")
        assert not outcome.found
        assert "RamFilter 1" in outcome.decisions[0].reason_text()
        assert outcome.decisions[0].misses[0].host == "h2"

    def test_a_host_that_is_down_for_a_moment_is_waited_for(self):
        hosts = [fakes.host_state("h1"), fakes.host_state("h2", up=False)]
        outcome = self.ask(hosts, requested_host="h2")
        assert outcome.decisions[0].only("ComputeFilter")
        assert not self.ask(hosts, requested_host="nowhere").decisions[0].only("ComputeFilter")

    def test_requests_for_different_hosts_do_not_mix(self):
        hosts = [fakes.host_state("h1"), fakes.host_state("h2")]
        wanted = [fakes.spec("a", requested_host="h1"), fakes.spec("b", requested_host="h2")]
        assert names(fakes.pipeline().schedule(hosts, wanted)) == [["h1"], ["h2"]]


def test_decision_names_nearest_misses_with_all_their_reasons():
    hosts = [
        fakes.host_state("far", memory_mb_used=24576),
        fakes.host_state("down", up=False, memory_mb_used=24576),
        fakes.host_state("near", memory_mb_used=24576 - 1900, local_gb_used=199),
        fakes.host_state("disk", local_gb_used=191),
    ]
    outcome = fakes.pipeline().schedule(hosts, specs(1, memory_mb=2000, root_gb=10))
    decision = outcome.decisions[0]
    found = [(miss.host, [(n, r.code) for n, r in miss.reasons]) for miss in decision.misses]
    assert found == [
        ("near", [("RamFilter", "not_enough_memory"), ("DiskFilter", "not_enough_disk")]),
        ("disk", [("DiskFilter", "not_enough_disk")]),
        ("far", [("RamFilter", "not_enough_memory")]),
        ("down", [("ComputeFilter", "host_down"), ("RamFilter", "not_enough_memory")]),
    ]
    assert decision.summary() == "4 hosts: ComputeFilter 1, RamFilter 2, DiskFilter 1"


def test_only_the_compute_filter():
    hosts = [fakes.host_state("h1", up=False), fakes.host_state("h2", disabled=True)]
    assert fakes.pipeline().schedule(hosts, specs(1)).decisions[0].only("ComputeFilter")
    hosts.append(fakes.host_state("h3", memory_mb_used=24576))
    assert not fakes.pipeline().schedule(hosts, specs(1)).decisions[0].only("ComputeFilter")


def test_v04_on_the_standard_host():
    hosts = [fakes.host_state()]
    schedule = fakes.pipeline().schedule
    assert not schedule(hosts, [fakes.spec(vcpus=9, memory_mb=64, root_gb=0)]).found
    outcome = schedule(hosts, specs(16, vcpus=8, memory_mb=64, root_gb=0))
    assert outcome.found
    assert not schedule(hosts, [fakes.spec("one more", memory_mb=64, root_gb=0)]).found
    hosts = [fakes.host_state()]
    assert not schedule(hosts, [fakes.spec(memory_mb=16385, root_gb=0)]).found
    assert schedule(hosts, [fakes.spec(memory_mb=16384, root_gb=0)]).found
    assert not schedule(hosts, [fakes.spec("second", memory_mb=16384, root_gb=0)]).found


# -- properties

host_lists = st.lists(
    st.builds(
        dict,
        up=st.booleans(),
        disabled=st.integers(0, 5).map(lambda n: n == 0),
        zone=st.sampled_from(["left", "right"]),
        memory_mb_used=st.integers(0, 30000),
        local_gb_used=st.integers(0, 220),
        vcpus_used=st.integers(0, 140),
        disk_available_least=st.none() | st.integers(-10, 200),
        supported_instances=st.sampled_from([fakes.PLATFORMS, [["aarch64", "kvm", "hvm"]], []]),
    ),
    max_size=12,
)
requests = st.builds(
    fakes.spec,
    vcpus=st.integers(1, 9),
    memory_mb=st.integers(1, 17000),
    root_gb=st.integers(0, 210),
    availability_zone=st.sampled_from([None, None, "left"]),
    ignore_hosts=st.lists(st.sampled_from(["h0", "h1", "h2"]), max_size=2),
    properties=st.sampled_from([None, {"hw_architecture": "x86_64"}]),
)


def made_hosts(rows):
    return [fakes.host_state(f"h{number}", **row) for number, row in enumerate(rows)]


@given(host_lists, requests)
def test_core_and_plain_oracle_agree(rows, request):
    hosts = made_hosts(rows)
    expected = fakes.plain_order(hosts, request)
    outcome = fakes.pipeline(max_attempts=20).schedule(hosts, [request])
    picked = [s.node for s in outcome.selections[0]] if outcome.found else []
    assert picked[:1] == expected[:1] or _weights_tie(outcome.decisions[0])
    assert sorted(picked) == sorted(expected)


def _weights_tie(decision):
    """Sums of floats in another order may fall the other way by the last bit."""
    return abs(decision.weights[0].total - decision.weights[1].total) < 1e-6


@given(host_lists, requests)
def test_every_host_is_accounted_for_once(rows, request):
    hosts = made_hosts(rows)
    decision = fakes.pipeline().schedule(hosts, [request]).decisions[0]
    removed = sum(count.start - count.end for count in decision.filters)
    assert removed + decision.survivors == decision.hosts == len(hosts)
    left = len(hosts)
    for count in decision.filters:
        assert count.start == left
        left = count.end
        assert sum(count.codes.values()) == count.start - count.end
    assert left == decision.survivors
    assert len({miss.node for miss in decision.misses}) == len(decision.misses)


@given(host_lists, requests)
def test_what_is_selected_is_accepted_by_the_claim(rows, request):
    hosts = made_hosts(rows)
    outcome = fakes.pipeline().schedule(hosts, [request])
    wanted = capacity.need(request.flavor, request.volume_backed)
    pictures = {host.node: host.picture for host in hosts}
    for selection in outcome.selections[0] if outcome.found else ():
        rooms = capacity.claim_rooms(pictures[selection.node], selection.limits)
        assert rooms.fits(wanted)


@given(host_lists, requests, st.lists(st.tuples(st.integers(0, 11), st.booleans()), max_size=15))
def test_updated_shortlist_equals_a_fresh_one(rows, request, changes):
    hosts = made_hosts(rows)
    made = filters.load(filters.DEFAULT)
    weighers = weights.load(dict.fromkeys(fakes.ROOM, 1.0))
    demand = fakes.pipeline().demand(request)
    kept = Shortlist(hosts, demand, made, weighers)
    rng = random.Random(0)
    for step, (index, takes) in enumerate(changes):
        if index >= len(hosts):
            continue
        if takes:
            hosts[index].consume(f"x{step}", demand.need)
        else:
            hosts[index].up = not hosts[index].up
        kept.update(index)
        fresh = Shortlist(hosts, demand, made, weighers)
        order = fresh.best(5, rng=rng)
        assert kept.best(5, rng=rng) == order
        assert kept.decision(order) == fresh.decision(order)


@given(host_lists, st.lists(st.tuples(requests, st.booleans()), max_size=5))
def test_a_request_that_finds_nothing_changes_nothing(rows, wanted):
    hosts = made_hosts(rows)
    before = [(host.rooms, host.num_instances) for host in hosts]
    asked = [request for request, _ in wanted]
    for number, request in enumerate(asked):
        request.instance_uuid = f"i{number}"
    asked.append(fakes.spec("too large", memory_mb=10**7))
    assert not fakes.pipeline().schedule(hosts, asked).found
    assert [(host.rooms, host.num_instances) for host in hosts] == before


def test_demand_is_all_a_filter_gets():
    seen = []

    class Looks(Filter):
        def examine(self, host, demand):
            seen.append(demand)
            return None

    Pipeline([Looks()], []).schedule([fakes.host_state()], specs(1))
    assert type(seen[0]) is Demand
