# SPDX-License-Identifier: Apache-2.0
"""The sums of capacity, by example and by property."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects import capacity
from novalite.objects.capacity import Need, Resource
from novalite.objects.compute_node import ComputeNode
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import Generation, Limits
from novalite.scheduler.host_state import HostState
from tests.unit.scheduler import fakes

EVERY = tuple(Resource)
FILTERS = ("RamFilter", "DiskFilter", "CoreFilter")


def standard_host(**changes):
    values = {
        "vcpus": 8,
        "memory_mb": 16384,
        "local_gb": 200,
        "memory_mb_used": 512,
        "generation": Generation(3, 7),
    } | changes
    return ComputeNode(host="h1", hypervisor_hostname="n1", **values)


def flavor(vcpus=1, memory_mb=64, root_gb=0, ephemeral_gb=0, swap_mb=0):
    return Flavor("f", "f", vcpus, memory_mb, root_gb, ephemeral_gb, swap_mb)


def how_many(node, wanted, limited=EVERY):
    return capacity.fill(capacity.own_rooms(node), wanted, limited)


def charge(node, wanted, times=1):
    node.vcpus_used += wanted.vcpus * times
    node.memory_mb_used += wanted.memory_mb * times
    node.local_gb_used += wanted.disk_gb * times


@pytest.mark.parametrize(
    ("swap_mb", "gb"), [(0, 0), (1, 1), (1024, 1), (1025, 2), (2048, 2), (2049, 3)]
)
def test_swap_is_rounded_up_to_whole_gb(swap_mb, gb):
    assert capacity.need(flavor(root_gb=3, ephemeral_gb=4, swap_mb=swap_mb)).disk_gb == 7 + gb


def test_volume_backed_server_has_no_local_root_disk():
    wanted = capacity.need(flavor(root_gb=80, ephemeral_gb=10, swap_mb=1024), volume_backed=True)
    assert wanted == Need(memory_mb=64, disk_gb=11, vcpus=1)


def test_v01_negative_free_memory_stays_negative_and_room_is_left():
    node = standard_host(memory_mb=10240, memory_mb_used=0, vcpus=100, local_gb=1000)
    one = capacity.need(flavor(memory_mb=1024))
    for _ in range(13):
        assert capacity.own_rooms(node).fits(one)
        charge(node, one)
    assert (node.memory_mb_used, node.free_ram_mb) == (13312, -3072)
    room = capacity.memory_room(node)
    assert room.usable == 2048
    assert not room.fits(2049)
    assert room.refusal(2049) == "Free memory 2048.00 MB < requested 2049 MB"
    assert room.fits(2048)
    charge(node, Need(2048, 0, 1))
    assert (node.memory_mb_used, node.free_ram_mb) == (15360, -5120)
    assert capacity.memory_room(node).refusal(64) == "Free memory 0.00 MB < requested 64 MB"


def test_v02_the_sum_of_volume_backed_and_local_servers():
    node = standard_host(local_gb=100, vcpus=100, memory_mb=100000)
    shape = flavor(root_gb=80, ephemeral_gb=10, swap_mb=1024)
    charge(node, capacity.need(shape, volume_backed=True), times=3)
    assert (node.local_gb_used, node.free_disk_gb) == (33, 67)
    refusals = capacity.own_rooms(node).refusals(capacity.need(shape))
    assert refusals == ["Free disk 67.00 GB < requested 91 GB"]


def test_v03_reserving_more_than_there_is_leaves_what_the_ratio_allows():
    node = standard_host(memory_mb_used=20000)
    assert node.free_ram_mb == -3616
    assert capacity.memory_room(node).usable == 4576
    assert capacity.whole_gb(10240) == 10
    assert capacity.whole_gb(1025) == 2


def test_v04_one_server_may_not_overcommit_against_itself():
    a, b = capacity.need(flavor(vcpus=9)), capacity.need(flavor(vcpus=8))
    c, d = capacity.need(flavor(memory_mb=16385)), capacity.need(flavor(memory_mb=16384))
    node = standard_host()
    assert capacity.own_rooms(node).refusals(a) == ["Total vcpu 8 VCPU < requested 9 VCPU"]
    for _ in range(16):
        assert capacity.own_rooms(node).fits(b)
        charge(node, b)
    assert node.vcpus_used == 128
    refusals = capacity.own_rooms(node).refusals(capacity.need(flavor()))
    assert refusals == ["Free vcpu 0.00 VCPU < requested 1 VCPU"]
    node = standard_host()
    assert capacity.own_rooms(node).refusals(c) == ["Total memory 16384 MB < requested 16385 MB"]
    assert capacity.own_rooms(node).fits(d)
    charge(node, d)
    assert capacity.memory_room(node).usable == 7680
    assert not capacity.own_rooms(node).fits(d)


def test_what_a_guest_takes_beside_its_memory_counts():
    node = standard_host(guest_overhead_mb=64, memory_mb=1024, ram_allocation_ratio=1.0)
    room = capacity.memory_room(node)
    assert (room.usable, room.largest) == (512, 448)
    assert room.fits(448)
    assert room.refusal(449) == "Free memory 512.00 MB < requested 513 MB"
    assert how_many(node, Need(64, 0, 0)).count == 4
    assert capacity.memory_room(node, taken_mb=128, servers=2).used == 512 + 128 + 2 * 64
    assert capacity.claim_rooms(node, Limits(memory_mb=1024.0)).memory == room


def test_without_limits_everything_fits():
    node = standard_host(memory_mb_used=999999)
    huge = Need(10**6, 10**6, 10**3)
    assert capacity.claim_rooms(node, None).fits(huge)
    assert capacity.claim_rooms(node, Limits()).refusals(huge) == []
    assert not capacity.own_rooms(node).fits(huge)


def test_the_stale_limits_of_the_incident_refuse_what_the_own_total_allows():
    node = standard_host(local_gb=111710, local_gb_used=181, memory_mb=200000)
    wanted = capacity.need(flavor(root_gb=60))
    stale = Limits(memory_mb=130669.0, disk_gb=199.0)
    refusals = capacity.claim_rooms(node, stale).refusals(wanted)
    assert refusals == ["Free disk 18.00 GB < requested 60 GB"]
    assert capacity.own_rooms(node).fits(wanted)


def test_several_refusals_come_in_the_order_of_claiming():
    refusals = capacity.own_rooms(standard_host()).refusals(Need(16385, 201, 9))
    assert [text.split()[1] for text in refusals] == ["memory", "disk", "vcpu"]


def test_thin_disks_that_may_still_grow_lower_the_room():
    node = standard_host(local_gb_used=50, disk_available_least=18)
    assert capacity.disk_used_gb(node) == 182
    assert capacity.disk_room(node).refusal(60) == "Free disk 18.00 GB < requested 60 GB"
    node.disk_available_least = 190
    assert capacity.disk_room(node).usable == 150
    node.disk_available_least = -7
    assert capacity.disk_room(node).usable == -7


def test_a_host_that_tells_no_threads_is_not_limited_by_them():
    assert capacity.vcpu_room(standard_host(vcpus=0)).fits(64)
    assert capacity.vcpu_room(standard_host(vcpus=0)).limit is None


@pytest.mark.parametrize(
    ("resource", "default"), [(Resource.VCPU, 16.0), (Resource.MEMORY, 1.5), (Resource.DISK, 1.0)]
)
def test_ratio_zero_means_not_set(resource, default):
    assert capacity.effective_ratio(resource, 0.0) == default
    assert capacity.effective_ratio(resource, 0.5) == 0.5


amounts = st.integers(0, 200_000)
ratios = st.floats(0.01, 32.0, allow_nan=False)
nodes = st.builds(
    ComputeNode,
    host=st.just("h"),
    hypervisor_hostname=st.just("n"),
    vcpus=st.integers(0, 512),
    memory_mb=amounts,
    local_gb=amounts,
    vcpus_used=st.integers(0, 9000),
    memory_mb_used=amounts,
    local_gb_used=amounts,
    disk_available_least=st.none() | st.integers(-1000, 200_000),
    cpu_allocation_ratio=ratios,
    ram_allocation_ratio=ratios,
    disk_allocation_ratio=ratios,
    guest_overhead_mb=st.just(0) | st.integers(0, 300),
)
needs = st.builds(Need, amounts, amounts, st.integers(0, 600))


@given(nodes, needs)
def test_filter_and_claim_agree_for_the_same_picture(node, wanted):
    limits = fakes.pipeline(FILTERS).selection(HostState(node), forced=False, age=0.0).limits
    assert capacity.own_rooms(node).fits(wanted) == capacity.claim_rooms(node, limits).fits(wanted)
    assert capacity.own_rooms(node) == capacity.claim_rooms(node, limits)


@given(nodes, needs)
def test_verdict_and_words_say_the_same(node, wanted):
    rooms = capacity.own_rooms(node)
    assert rooms.fits(wanted) == (rooms.refusals(wanted) == [])
    for room, amount in zip(rooms, wanted, strict=True):
        assert room.fits(amount) == (room.refusal(amount) is None)
        within = room.limit is None or amount <= room.total
        assert room.fits(amount) == (amount <= room.usable - room.beside and within)


@given(nodes, needs)
def test_what_fits_still_fits_the_total(node, wanted):
    if capacity.own_rooms(node).fits(wanted):
        assert wanted.memory_mb <= node.memory_mb
        assert wanted.disk_gb <= node.local_gb
        assert wanted.vcpus <= node.vcpus or node.vcpus == 0


@given(nodes, st.integers(1, 5000))
def test_taken_is_used(node, taken):
    before = capacity.memory_room(node).usable
    assert capacity.memory_room(node, taken).usable == pytest.approx(before - taken)
    assert capacity.disk_room(node, taken).used == capacity.disk_used_gb(node) + taken


@given(amounts)
def test_whole_gb_is_the_ceiling(megabytes):
    assert capacity.whole_gb(megabytes) == math.ceil(megabytes / 1024)


@given(
    nodes,
    st.builds(Need, st.integers(0, 90_000), st.integers(0, 90_000), st.integers(0, 400)),
    st.sets(st.sampled_from(EVERY)),
)
def test_how_many_is_what_fits_one_after_the_other(node, wanted, limited):
    filled = how_many(node, wanted, limited)
    if filled.count is None:
        assert filled.binds == () and not any(filled.each.values())
        return
    rooms = {room.resource: room for room in capacity.own_rooms(node)}
    wants = dict(zip(rooms, wanted, strict=True))

    def after(servers):
        return {
            name: rooms[name]._replace(
                used=rooms[name].used + servers * (wants[name] + rooms[name].beside)
            )
            for name in limited
        }

    full = after(filled.count)
    refused = {name for name, room in full.items() if not room.fits(wants[name])}
    assert refused == set(filled.binds) != set()
    if filled.count:
        last = after(filled.count - 1)
        assert all(room.fits(wants[name]) for name, room in last.items())


@pytest.mark.parametrize("ratio", [1e12, 1e18, 1e255, 1e308])
def test_a_ratio_beyond_every_use_has_an_end(ratio):
    node = standard_host(
        cpu_allocation_ratio=ratio, ram_allocation_ratio=ratio, disk_allocation_ratio=ratio
    )
    assert all(room.limit <= capacity.MOST for room in capacity.own_rooms(node))
    assert how_many(node, Need(7, 3, 1)).count > 10**12
    assert math.isfinite(HostState(node).free_vcpus)


def test_how_many_tells_what_binds():
    node = standard_host()
    small = how_many(node, Need(1024, 1, 1))
    assert (small.count, small.binds) == (23, (Resource.MEMORY,))
    assert small.each == {Resource.MEMORY: 23, Resource.DISK: 200, Resource.VCPU: 128}
    assert how_many(node, Need(188, 1, 1)).binds == (Resource.MEMORY, Resource.VCPU)
    assert how_many(node, Need(64, 0, 9)) == capacity.Fill(
        0,
        (Resource.VCPU,),
        {Resource.MEMORY: 376, Resource.DISK: None, Resource.VCPU: 0},
    )
    nothing = how_many(node, Need(1024, 1, 1), [])
    assert (nothing.count, nothing.binds) == (None, ())
