# SPDX-License-Identifier: Apache-2.0
"""Questions about hosts: the answers are what would really happen, and nothing changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects import base
from novalite.objects.reason import Reason
from novalite.scheduler import inquiry
from novalite.scheduler.filters.base import Filter
from tests.unit.scheduler import fakes

RESOURCES = ("ComputeFilter", "RamFilter", "DiskFilter", "CoreFilter")


class AtMostFive(Filter):
    """Counts servers instead of sizes."""

    def examine(self, host, demand):
        return Reason("too_many") if host.num_instances >= 5 else None


def counted(host, spec, names=RESOURCES):
    pipeline = fakes.pipeline(names)
    return inquiry.capacity_of(pipeline, host, pipeline.demand(spec))


def booted(host, spec, names):
    """How many servers the pipeline itself puts on the host before it says no."""
    pipeline, made = fakes.pipeline(names), 0
    while made < 200:
        spec.instance_uuid = f"i{made}"
        if not pipeline.schedule([host], [spec]).found:
            return made
        made += 1
    return made


@given(
    total=st.tuples(st.integers(0, 4000), st.integers(0, 40), st.integers(0, 8)),
    used=st.tuples(st.integers(0, 5000), st.integers(0, 50), st.integers(0, 40)),
    ratios=st.tuples(*[st.integers(1, 60).map(lambda share: share / 20)] * 3),
    need=st.tuples(st.integers(64, 900), st.integers(0, 9), st.integers(1, 3)),
    least=st.none() | st.integers(-5, 40),
    selected=st.integers(0, 3),
    beside=st.integers(0, 200),
    extra=st.sampled_from([(), (f"{__name__}:AtMostFive",)]),
)
def test_as_many_fit_as_can_really_be_placed(
    total, used, ratios, need, least, selected, beside, extra
):
    host = fakes.host_state(
        memory_mb=total[0],
        local_gb=total[1],
        vcpus=total[2],
        memory_mb_used=used[0],
        local_gb_used=used[1],
        vcpus_used=used[2],
        ram_allocation_ratio=ratios[0],
        disk_allocation_ratio=ratios[1],
        cpu_allocation_ratio=ratios[2],
        disk_available_least=least,
        guest_overhead_mb=beside,
    )
    spec = fakes.spec("new", memory_mb=need[0], root_gb=need[1], vcpus=need[2])
    for number in range(selected):
        host.consume(f"old{number}", fakes.pipeline(()).demand(spec).need)
    before = (host.rooms, dict(host.selected))
    names = (*RESOURCES, *extra)
    found = counted(host, spec, names)
    assert (host.rooms, dict(host.selected)) == before
    really = booted(host, spec, names)
    assert found.count == really or really == 200
    assert found.binds, "what binds is told"
    assert base.decode(base.encode(found)) == found


def test_what_binds_is_the_refusal_of_the_next_server():
    host = fakes.host_state(memory_mb=2048, ram_allocation_ratio=1.0)
    found = counted(host, fakes.spec(memory_mb=512))
    assert found.count == 3
    assert found.each == {"memory": 3, "disk": 200, "vcpu": 128}
    [(name, why)] = found.binds
    assert (name, why.code, why.need, why.have) == ("RamFilter", "not_enough_memory", 512, 0)
    assert [each.code for each in found.room] == ["enough_memory", "enough_disk", "enough_vcpu"]
    assert found.room[0].used == 512


def test_a_host_that_is_down_has_room_for_none():
    found = counted(fakes.host_state(up=False), fakes.spec())
    assert found.count == 0
    assert [(name, why.code) for name, why in found.binds] == [("ComputeFilter", "host_down")]


def test_without_limits_there_is_no_number():
    found = counted(fakes.host_state(), fakes.spec(), ("ComputeFilter",))
    assert (found.count, found.binds) == (None, [])
    assert {each.code for each in found.room} == {
        "unlimited_memory",
        "unlimited_disk",
        "unlimited_vcpu",
    }


def test_a_filter_that_counts_servers_binds():
    names = (*RESOURCES, f"{__name__}:AtMostFive")
    found = counted(fakes.host_state(running_vms=3), fakes.spec(), names)
    assert (found.count, [name for name, _why in found.binds]) == (2, ["AtMostFive"])


def hosts():
    return [
        fakes.host_state("h1", memory_mb=8192),
        fakes.host_state("h2", memory_mb_used=24500),
        fakes.host_state("n3", host="H3", up=False, memory_mb_used=24500),
        fakes.host_state("h4"),
    ]


def examined(spec, made, names=RESOURCES):
    examiner = inquiry.Examiner(fakes.pipeline(names), made, spec)
    return examiner, [examiner.verdict(index) for index in range(len(made))]


def test_every_filter_says_what_it_thinks_and_survivors_are_ranked():
    examiner, verdicts = examined(fakes.spec(), hosts())
    assert [found.rank for found in verdicts] == [2, None, None, 1]
    assert [found.fits for found in verdicts] == [True, False, False, True]
    assert [name for name, _why in verdicts[2].reasons] == ["ComputeFilter", "RamFilter"]
    assert verdicts[2].passed == ["DiskFilter", "CoreFilter"]
    assert verdicts[1].room[0].code == "not_enough_memory"
    assert verdicts[3].weighed[0].total > verdicts[0].weighed[0].total
    assert verdicts[3].picture == "1.1"
    decision = examiner.examination([]).decision
    assert (decision.host, decision.hosts, decision.survivors) == ("h4", 4, 2)
    for found in verdicts:
        assert base.decode(base.encode(found)) == found


def test_the_verdict_is_that_of_the_pipeline():
    made = hosts()
    _examiner, verdicts = examined(fakes.spec(), made)
    outcome = fakes.pipeline(RESOURCES).schedule(made, [fakes.spec()])
    assert outcome.hosts[0].node == next(found.node for found in verdicts if found.rank == 1)
    removed = {miss.node: miss.reasons for miss in outcome.decisions[0].misses}
    assert removed == {found.node: found.reasons for found in verdicts if not found.fits}


def test_a_forced_host_skips_filters_but_is_told_what_they_think():
    _examiner, verdicts = examined(fakes.spec(force_host="h2"), hosts())
    assert [found.fits for found in verdicts] == [False, True, False, False]
    assert all(found.skipped for found in verdicts)
    assert [name for name, _why in verdicts[1].reasons] == ["RamFilter"]
    assert verdicts[0].reasons[0][1].code == "not_forced_host"


def test_a_requested_host_has_no_competitors():
    _examiner, verdicts = examined(fakes.spec(requested_host="h1"), hosts())
    assert [found.rank for found in verdicts] == [1, None, None, None]
    assert not verdicts[0].skipped


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([], ([0, 1, 2, 3], [])),
        (["H1", "h3", "nobody"], ([0, 2], ["nobody"])),
        (["n3"], ([2], [])),
        (["N3"], ([], ["N3"])),
    ],
)
def test_names_of_hosts_have_no_case_and_names_of_nodes_have(names, found):
    assert inquiry.named(hosts(), names) == found
