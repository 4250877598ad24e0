# SPDX-License-Identifier: Apache-2.0
"""The books of a node."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite import context, exception
from novalite.compute.books import Books, Claim, Policy
from novalite.compute.resource_tracker import ResourceTracker
from novalite.objects.build import Kept
from novalite.objects.capacity import Need
from novalite.objects.flavor import Flavor
from novalite.objects.instance import Instance
from novalite.objects.request_spec import Generation, Limits
from novalite.virt.driver import HostResources
from tests.unit.compute.doubles import Driver

NEED = Need(512, 1, 1)


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def make_tracker(make_conf, driver):
    def make(*, epoch=3, kept=(), **options):
        tracker = ResourceTracker(make_conf(**options), driver)
        tracker.start(epoch, {"node1": "node-uuid"}, list(kept))
        return tracker

    return make


@pytest.fixture
def tracker(make_tracker):
    return make_tracker()


def claim(tracker, uuid, need=NEED, limits=None, *, token="t", attempt=1):
    return tracker.claim("node1", uuid, need, limits, token=token, attempt=attempt)


def used(tracker):
    picture = tracker.picture("node1")
    return picture.memory_mb_used, picture.local_gb_used, picture.vcpus_used


def test_a_picture_is_absolute_and_complete(make_tracker, driver):
    driver.resources.hypervisor_version = 9000000
    tracker = make_tracker(
        reserved_host_cpus=1, reserved_host_disk_mb=1025, cpu_allocation_ratio=4.0, my_ip="10.0.0.1"
    )
    claim(tracker, "a")
    picture = tracker.picture("node1")
    assert (picture.host, picture.hypervisor_hostname, picture.uuid) == (
        "host1",
        "node1",
        "node-uuid",
    )
    assert (picture.memory_mb, picture.local_gb, picture.vcpus) == (16384, 200, 8)
    assert used(tracker) == (1024, 2 + 1, 1 + 1)
    assert picture.cpu_allocation_ratio == 4.0 and picture.reserved_host_disk_mb == 1025
    assert picture.stats == {
        "num_instances": 1,
        "io_workload": 1,
        "failed_builds": 0,
        "flavorids": [],
    }
    assert (picture.running_vms, picture.current_workload) == (1, 1)
    assert (picture.hypervisor_version, picture.host_ip) == (9000000, "10.0.0.1")
    assert picture.generation == Generation(3, 2)


def test_free_memory_may_be_negative(make_tracker, driver):
    driver.resources = HostResources(vcpus=64, memory_mb=10240, local_gb=200)
    tracker = make_tracker(reserved_host_memory_mb=0)
    limits = Limits(memory_mb=15360.0, generation=Generation(9, 9))
    for number in range(13):
        assert claim(tracker, str(number), Need(1024, 1, 1), limits).reason is None
    assert tracker.picture("node1").free_ram_mb == -3072
    assert claim(tracker, "x", Need(2049, 1, 1), limits).reason is not None
    assert claim(tracker, "x", Need(2048, 1, 1), limits).reason is None
    assert tracker.picture("node1").free_ram_mb == -5120
    assert claim(tracker, "y", Need(64, 1, 1), limits).reason is not None
    for uuid in [str(number) for number in range(13)] + ["x"]:
        assert tracker.release("node1", uuid, "t")
    assert tracker.picture("node1").free_ram_mb == 10240


def test_what_is_left_of_the_same_server_is_not_counted(tracker):
    limits = Limits(memory_mb=1024.0, generation=Generation(9, 9))
    assert claim(tracker, "a", limits=limits).reason is None
    assert claim(tracker, "a", limits=limits, token="t2", attempt=2).reason is None
    assert used(tracker) == (1024, 1, 1)
    assert claim(tracker, "b", limits=limits).reason is not None
    tracker.release("node1", "a", "t")
    assert used(tracker) == (1024, 1, 1)
    tracker.release("node1", "a", "t2")
    assert used(tracker) == (512, 0, 0)


def test_a_refused_claim_changes_nothing(tracker):
    before = tracker.picture("node1")
    assert claim(tracker, "a", limits=Limits(memory_mb=1.0)).reason is not None
    assert tracker.picture("node1") == before


def test_the_generation_grows_with_every_change_and_only_then(tracker):
    seen = [tracker.picture("node1").generation]

    def grew():
        seen.append(tracker.picture("node1").generation)
        return seen[-1].newer_than(seen[-2])

    claim(tracker, "a")
    assert grew()
    tracker.settle("node1", "a", "t")
    assert grew()
    tracker.settle("node1", "a", "t")
    assert not grew()
    tracker.measure()
    assert grew(), "the measured disk takes the claim in"
    tracker.measure()
    assert not grew()
    tracker.release("node1", "a", "t")
    assert grew()
    assert not tracker.release("node1", "a", "t")
    assert not grew()


def test_stale_is_said_only_to_limits_of_an_older_picture(tracker):
    small = Limits(memory_mb=600.0, generation=tracker.picture("node1").generation)
    assert not claim(tracker, "a", limits=small).stale
    claim(tracker, "b", Need(0, 0, 1))
    assert claim(tracker, "a", limits=small).stale


def test_what_guests_take_beside_their_memory_is_in_the_books(tracker, driver):
    driver.resources.guest_overhead_mb = 40
    tracker.measure()
    generation = tracker.picture("node1").generation
    limits = Limits(memory_mb=512 + 2 * (512 + 40.0), generation=generation)
    first = claim(tracker, "a", limits=limits)
    assert first.reason is None
    assert first.resources()["MEMORY_MB"] == 512, "the server itself holds its flavor"
    assert first.numbers()["memory"]["requested"] == 552
    assert tracker.picture("node1").memory_mb_used == 512 + 552
    # The same server once more is not counted twice, the next one is.
    assert claim(tracker, "a", limits=limits, token="t2").reason is None
    assert tracker.picture("node1").memory_mb_used == 512 + 552
    assert claim(tracker, "b", limits=limits).reason is None
    assert claim(tracker, "c", Need(1, 0, 0), limits).reason == (
        "Insufficient compute resources: Free memory 0.00 MB < requested 41 MB."
    )
    driver.resources.guest_overhead_mb = 0
    tracker.measure()
    assert tracker.picture("node1").memory_mb_used == 512 + 2 * 512


def test_nothing_is_stale_where_tests_say_so(make_tracker):
    tracker = make_tracker(testing__ignore_generations=True)
    small = Limits(memory_mb=600.0, generation=tracker.picture("node1").generation)
    claim(tracker, "b", Need(0, 0, 1))
    refused = claim(tracker, "a", limits=small)
    assert refused.reason is not None and not refused.stale


def test_totals_that_shrank_bind_a_claim_with_older_limits(tracker, driver):
    limits = Limits(memory_mb=24576.0, generation=tracker.picture("node1").generation)
    claim(tracker, "b")
    assert claim(tracker, "a", Need(4096, 1, 1), limits).reason is None
    tracker.release("node1", "a", "t")
    driver.resources.memory_mb = 2048
    tracker.measure()
    refused = claim(tracker, "a", Need(4096, 1, 1), limits)
    assert refused.reason is not None and refused.stale
    # Limits made from the new picture are believed as they are.
    new = Limits(memory_mb=24576.0, generation=tracker.picture("node1").generation)
    assert claim(tracker, "c", Need(2048, 1, 1), new).reason is None


def test_a_new_start_orders_its_pictures_behind_all_former_ones(make_tracker):
    before = make_tracker(epoch=3)
    for number in range(50):
        claim(before, str(number))
    after = make_tracker(epoch=4)
    assert after.picture("node1").generation.newer_than(before.picture("node1").generation)


def test_a_second_registration_keeps_what_is_in_hand(tracker):
    claim(tracker, "a")
    tracker.start(4, {}, [kept("b")])
    assert used(tracker) == (512 + 512 + 2048, 1 + 20, 1 + 1)
    assert tracker.picture("node1").current_workload == 1


def kept(uuid, *, node="node1", image_ref="image", attempt=1):
    flavor = Flavor("2", "m1.small", 1, 2048, 20, ephemeral_gb=0, swap_mb=0)
    instance = Instance(uuid, "p", "u", uuid, flavor, node=node, image_ref=image_ref)
    return Kept(instance, attempt)


def test_what_is_kept_is_in_the_books_and_is_no_workload(make_tracker):
    tracker = make_tracker(kept=[kept("a"), kept("b")])
    assert used(tracker) == (512 + 4096, 40, 2)
    assert tracker.picture("node1").current_workload == 0
    assert tracker.picture("node1").running_vms == 2


def test_a_volume_backed_server_has_no_local_root_disk(make_tracker):
    tracker = make_tracker(kept=[kept("a", image_ref="")])
    assert used(tracker)[1] == 0


def test_a_server_kept_on_a_node_that_is_gone_is_told(make_tracker, caplog):
    tracker = make_tracker(kept=[kept("a", node="node9")])
    assert used(tracker) == (512, 0, 0)
    assert "which this host does not have any more" in caplog.text


def test_release_up_to_a_bound(tracker):
    claim(tracker, "a", token="t1", attempt=1)
    claim(tracker, "a", token="t2", attempt=2)
    assert tracker.release_up_to("a", 1)
    assert used(tracker) == (1024, 1, 1)
    assert not tracker.release_up_to("a", 1)
    assert tracker.release_up_to("a", None)
    assert used(tracker) == (512, 0, 0)


def test_an_unknown_node_is_an_error(tracker):
    with pytest.raises(exception.ComputeHostNotFound):
        tracker.claim("node9", "a", NEED, None, token="t", attempt=1)
    assert not tracker.release("node9", "a", "t")
    tracker.settle("node9", "a", "t")


def test_disk_that_can_still_be_taken_follows_claims_between_audits(make_tracker, driver):
    driver.resources.disk_available_least = 50
    tracker = make_tracker()
    claim(tracker, "a", Need(64, 20, 1))
    assert tracker.picture("node1").disk_available_least == 30
    driver.resources.disk_available_least = 31
    tracker.measure()
    assert tracker.picture("node1").disk_available_least == 31
    tracker.release("node1", "a", "t")
    assert tracker.picture("node1").disk_available_least == 51


def test_a_ratio_of_zero_is_said_once_and_is_the_default(make_tracker, caplog):
    caplog.set_level(logging.INFO)
    tracker = make_tracker(ram_allocation_ratio=0.0)
    assert tracker.picture("node1").ram_allocation_ratio == 1.5
    tracker.measure()
    lines = [r.getMessage() for r in caplog.records if "ratio" in r.getMessage()]
    assert lines == ["ram_allocation_ratio is 0.0 (not set): 1.5 is used"]


def test_a_reservation_above_the_total_is_warned_of(make_tracker, caplog):
    tracker = make_tracker(reserved_host_memory_mb=20000)
    assert (
        "reserved_host_memory_mb = 20000 is more than the 16384 MB that node node1 has in all"
        in caplog.text
    )
    assert tracker.picture("node1").free_ram_mb == -3616
    fresh = Limits(memory_mb=24576.0, generation=Generation(9, 9))
    assert claim(tracker, "a", Need(4577, 0, 1), fresh).reason is not None
    assert claim(tracker, "a", Need(4576, 0, 1), fresh).reason is None


def test_the_lines_of_the_audit(tracker, caplog):
    caplog.set_level(logging.INFO)
    claim(tracker, "a")
    tracker.update_available_resource(context.service_context())
    assert [(r.name, r.getMessage()) for r in caplog.records] == [
        ("novalite.compute.resource_tracker", text)
        for text in (
            "Total usable vcpus: 8, total allocated vcpus: 1",
            "Final resource view: name=node1 phys_ram=16384MB used_ram=1024MB phys_disk=200GB "
            "used_disk=1GB total_vcpus=8 used_vcpus=1 pci_stats=[]",
            "Compute_service record updated for host1:node1",
        )
    ]


class Unread(dict):
    """A dict that may be asked for one key and for its length, but never read through."""

    def _refuse(self, *_):
        raise AssertionError("read through")

    __iter__ = keys = values = items = _refuse


def test_a_claim_costs_the_same_however_many_servers_are_there(tracker):
    book = tracker._books["node1"]
    book.servers = Unread()
    for number in range(300):
        claim(tracker, str(number))
    tracker.settle("node1", "7", "t")
    tracker.release("node1", "8", "t")
    tracker.release_up_to("9", None)
    tracker.picture("node1")
    assert len(book.servers) == 298


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["claim", "settle", "release", "upto"]),
            st.integers(0, 3),
            st.integers(0, 3),
            st.tuples(st.integers(0, 4096), st.integers(0, 20), st.integers(0, 4)),
        ),
        max_size=40,
    )
)
def test_the_kept_sums_always_equal_the_sum_of_the_claims(moves):
    resources = HostResources(vcpus=8, memory_mb=16384, local_gb=200)
    policy = Policy(16.0, 1.5, 1.0, 0, 512, 0, "127.0.0.1")
    book = Books("host1", "node1", "", resources, policy, epoch=1)
    for move, server, attempt, need in moves:
        uuid, token = f"s{server}", f"t{attempt}"
        found = book.servers.get(uuid, {})
        if move == "claim" and token not in found:
            book.put(uuid, token, Claim(attempt, Need(*need)))
        elif move == "settle" and token in found and not found[token].settled:
            found[token].settled = True
            book.building -= 1
        elif move == "release" and token in found:
            book.remove(uuid, [token])
        elif move == "upto" and found:
            book.remove(uuid, list(found))
        largest = [
            [max(column) for column in zip(*(c.need for c in claims.values()), strict=True)]
            for claims in book.servers.values()
        ]
        sums = [sum(column) for column in zip(*largest, strict=True)] or [0, 0, 0]
        assert list(book.used) == sums
        assert book.disk_since == sums[1]
        open_claims = [c for claims in book.servers.values() for c in claims.values()]
        assert book.building == sum(not claim.settled for claim in open_claims)
    assert all(book.servers.values())


def stats(tracker):
    return tracker.picture("node1").stats


def test_flavors_on_the_node_are_those_of_its_claims(make_tracker):
    flavor = Flavor("small", "s", 1, 512, 1)
    kept = Kept(Instance("k", "p", "u", "k", flavor, node="node1"), 1)
    tracker = make_tracker(kept=[kept])
    for uuid, flavorid in (("a", "small"), ("b", "large"), ("c", "large")):
        tracker.claim("node1", uuid, NEED, None, token="t", attempt=1, flavorid=flavorid)
    assert stats(tracker)["flavorids"] == ["large", "small"]
    tracker.release("node1", "b", "t")
    tracker.release_up_to("k", None)
    assert stats(tracker)["flavorids"] == ["large", "small"]
    tracker.release("node1", "c", "t")
    assert stats(tracker)["flavorids"] == ["small"]


def test_failed_builds_are_counted_until_one_succeeds(tracker):
    before = tracker.picture("node1").generation
    tracker.note_failure("node1")
    tracker.note_failure("node1")
    assert stats(tracker)["failed_builds"] == 2
    assert tracker.picture("node1").generation.newer_than(before)
    tracker.start(4, {"node1": "node-uuid"}, [])
    assert stats(tracker)["failed_builds"] == 2, "a second registration forgets nothing"
    claim(tracker, "a")
    assert stats(tracker)["failed_builds"] == 2, "a claim is not yet a success"
    tracker.settle("node1", "a", "t")
    assert stats(tracker)["failed_builds"] == 0
    tracker.note_failure("no such node")
