# SPDX-License-Identifier: Apache-2.0
"""Each kind of difference between two books is planted, found and named; what is in work is not."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects import agreement, audit, base
from novalite.objects.audit import BookedClaim, Facts, FoundGuest, HostBooks, Kind, Owner, Record
from novalite.objects.capacity import Need
from novalite.objects.compute_node import NUMBERS, ComputeNode
from novalite.objects.request_spec import Generation

NEED = Need(memory_mb=512, disk_gb=3, vcpus=2)
HELD = {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 3}


def server(uuid="a", host="h1", **changes):
    values = {
        "node": host and f"{host}-node",
        "vm_state": "active",
        "busy": False,
        "need": NEED,
        "flavor": (2, 512),
        "counted": (2, 512),
        "attempt": 1,
    }
    return audit.Server(uuid, host, **(values | changes))


def picture(claims, host="h1", **changes):
    values = {
        "vcpus": 8,
        "memory_mb": 16384,
        "local_gb": 200,
        "reserved_host_cpus": 1,
        "reserved_host_disk_mb": 1025,
        "vcpus_used": 1 + sum(each.vcpus for each in claims),
        "memory_mb_used": 512 + sum(each.memory_mb for each in claims),
        "local_gb_used": 2 + sum(each.disk_gb for each in claims),
        "running_vms": len(claims),
        "generation": Generation(2, 7),
    }
    return ComputeNode(host, f"{host}-node", **(values | changes))


def claim(uuid="a", host="h1", need=NEED, **changes):
    amounts = {"vcpus": need.vcpus, "memory_mb": need.memory_mb, "disk_gb": need.disk_gb}
    return BookedClaim(uuid, f"{host}-node", 1, **(amounts | changes))


def guest(uuid="a", host="h1", attempt=1):
    return FoundGuest(uuid, f"{host}-node", attempt)


def host_books(claims=None, guests=None, host="h1", **changes):
    claims = [claim()] if claims is None else claims
    guests = [guest()] if guests is None else guests
    return HostBooks(host, [picture(claims, host)], claims, guests, **changes)


def record(of, host="h1", **changes):
    stored = dataclasses.replace(of)
    numbers = {name: getattr(stored, name) for name in NUMBERS} | changes
    return Record(host, stored, numbers)


def facts(*servers, allocations=None, records=None, cleanups=()):
    servers = servers or (server(),)
    if allocations is None:
        placed = [each for each in servers if each.placed]
        allocations = {each.uuid: {each.node: dict(HELD)} for each in placed}
    return Facts(
        {each.uuid: each for each in servers}, allocations, records or {}, frozenset(cleanups)
    )


def kinds(found):
    return [each.kind for each in found]


def one(found, kind, owner):
    [only] = found
    assert (only.kind, only.owner) == (kind, owner)
    return only


def test_books_that_agree_have_no_difference():
    books, known = host_books(), facts()
    assert agreement.compare_database(known) == []
    assert agreement.compare_host(books, known) == []
    node = books.pictures[0]
    assert agreement.compare_records(books, {"h1-node": record(node)}) == []


class TestDatabase:
    def test_an_allocation_that_is_missing(self):
        found = one(
            agreement.compare_database(facts(allocations={})),
            Kind.ALLOCATION_MISSING,
            Owner.DATABASE,
        )
        assert found.text == (
            "server a on node h1-node has no allocation; it needs VCPU 2, MEMORY_MB 512, DISK_GB 3"
        )
        assert (found.expected, found.found) == ({"h1-node": HELD}, {})

    @pytest.mark.parametrize(
        "held",
        [
            {"h1-node": HELD | {"DISK_GB": 4}},
            {"h2-node": HELD},
            {"h1-node": HELD, "h2-node": HELD},
            {"h1-node": {"VCPU": 2, "MEMORY_MB": 512}},
        ],
        ids=["amount", "node", "both", "class"],
    )
    def test_an_allocation_that_is_wrong(self, held):
        found = agreement.compare_database(facts(allocations={"a": held}))
        assert one(found, Kind.ALLOCATION_WRONG, Owner.DATABASE).found == held

    def test_nothing_needed_and_nothing_held_agree(self):
        bare = server(need=Need(512, 0, 2))
        held = {"a": {"h1-node": {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 0}}}
        assert agreement.compare_database(facts(bare, allocations=held)) == []

    @pytest.mark.parametrize(
        ("owner", "words"),
        [
            (None, "which is no server here"),
            (server(deleted=True), "a server that is deleted"),
            (server(host=None, vm_state="error"), "a server (error) that is on no host"),
        ],
        ids=["unknown", "deleted", "on no host"],
    )
    def test_an_allocation_of_nobody(self, owner, words):
        other = server("b")
        servers = (other,) if owner is None else (other, owner)
        held = {"b": {"h1-node": HELD}, "a": {"h1-node": HELD}}
        found = agreement.compare_database(facts(*servers, allocations=held))
        orphan = one(found, Kind.ALLOCATION_ORPHAN, Owner.DATABASE)
        assert orphan.text == (
            f"VCPU 2, MEMORY_MB 512, DISK_GB 3 on node h1-node is allocated to a, {words}"
        )

    def test_what_quotas_count_is_the_flavor(self):
        found = agreement.compare_database(facts(server(counted=(2, 256))))
        wrong = one(found, Kind.SIZE_WRONG, Owner.DATABASE)
        assert wrong.expected == {"vcpus": 2, "memory_mb": 512}
        assert wrong.text.startswith("server a counts as vcpus 2, memory_mb 256; its flavor has")

    def test_what_is_in_work_is_left_alone(self):
        working = server(busy=True, counted=(0, 0))
        assert agreement.compare_database(facts(working, allocations={})) == []
        held = {"a": {"h9-node": HELD}}
        assert agreement.compare_database(facts(working, allocations=held)) == []


class TestHost:
    def test_a_claim_that_is_missing(self):
        found = agreement.compare_host(host_books(claims=[]), facts())
        missing = one(found, Kind.CLAIM_MISSING, Owner.COMPUTE)
        assert missing.text == (
            "node h1-node counts nothing for server a, which needs VCPU 2, MEMORY_MB 512, DISK_GB 3"
        )

    def test_a_claim_that_is_wrong(self):
        found = agreement.compare_host(host_books([claim(memory_mb=64)]), facts())
        wrong = one(found, Kind.CLAIM_WRONG, Owner.COMPUTE)
        assert wrong.found == HELD | {"MEMORY_MB": 64}

    def test_a_claim_of_nobody(self):
        found = agreement.compare_host(host_books([claim(), claim("b")]), facts())
        orphan = one(found, Kind.CLAIM_ORPHAN, Owner.COMPUTE)
        assert orphan.instance_uuid == "b" and "which is no server here" in orphan.text

    def test_a_claim_of_a_server_that_is_elsewhere(self):
        books = host_books(guests=[])
        found = agreement.compare_host(books, facts(server(host="h2")))
        orphan = one(found, Kind.CLAIM_ORPHAN, Owner.COMPUTE)
        assert "a server (active) that is on node h2-node of host h2" in orphan.text

    def test_a_claim_on_another_node_of_the_host(self):
        books = host_books()
        books.claims[0].node = "other"
        books.pictures = [picture([])]
        found = agreement.compare_host(books, facts())
        assert kinds(found) == [Kind.CLAIM_ORPHAN, Kind.CLAIM_MISSING]

    def test_sums_that_are_not_those_of_the_claims(self):
        books = host_books()
        books.pictures[0].memory_mb_used += 7
        wrong = one(agreement.compare_host(books, facts()), Kind.SUM_WRONG, Owner.COMPUTE)
        assert (wrong.expected["memory_mb_used"], wrong.found["memory_mb_used"]) == (1024, 1031)
        assert wrong.node == "h1-node"

    def test_a_guest_that_is_missing_is_for_an_administrator(self):
        found = agreement.compare_host(host_books(guests=[]), facts())
        missing = one(found, Kind.GUEST_MISSING, Owner.NOBODY)
        assert missing.text == (
            "server a is ACTIVE on host h1, whose hypervisor has no guest of it"
        )

    def test_a_server_in_error_needs_no_guest(self):
        assert agreement.compare_host(host_books(guests=[]), facts(server(vm_state="error"))) == []
        assert agreement.compare_host(host_books(), facts(server(vm_state="error"))) == []

    @pytest.mark.parametrize(
        "owner",
        [server(deleted=True), server(host="h2"), server(host=None, vm_state="error")],
        ids=["deleted", "elsewhere", "on no host"],
    )
    def test_a_guest_of_a_server_that_is_not_here(self, owner):
        found = agreement.compare_host(host_books(claims=[]), facts(owner))
        orphan = one(found, Kind.GUEST_ORPHAN, Owner.CLEANUP)
        assert (orphan.host, orphan.node, orphan.attempt) == ("h1", "h1-node", 1)

    def test_a_guest_that_another_attempt_has_made(self):
        found = agreement.compare_host(
            host_books(guests=[guest(attempt=1)]), facts(server(attempt=2))
        )
        assert kinds(found) == [Kind.GUEST_ORPHAN, Kind.GUEST_MISSING]
        assert found[0].text.endswith("of a, a server that attempt 2 has built")

    def test_a_guest_that_the_database_does_not_know(self):
        found = agreement.compare_host(host_books(guests=[guest(), guest("b")]), facts())
        unknown = one(found, Kind.GUEST_UNKNOWN, Owner.NOBODY)
        assert unknown.instance_uuid == "b"

    @pytest.mark.parametrize("where", ["open action", "in hand", "clean-up"])
    def test_what_is_in_work_is_left_alone(self, where):
        busy = where == "open action"
        known = facts(
            server(busy=busy, host="h2"), cleanups=[("a", "h1")] if where == "clean-up" else []
        )
        books = host_books(busy=["a"] if where == "in hand" else [])
        assert agreement.compare_host(books, known) == []
        quiet = facts(server(host="h2"), cleanups=[("a", "h9")])
        assert len(agreement.compare_host(host_books(), quiet)) == 2

    def test_a_claim_of_a_build_is_left_alone(self):
        assert (
            agreement.compare_host(host_books([claim(), claim("b", settled=False)]), facts()) == []
        )


class TestRecords:
    def test_a_record_that_is_missing_or_of_another_host(self):
        books = host_books()
        one(agreement.compare_records(books, {}), Kind.RECORD_MISSING, Owner.COMPUTE)
        records = {"h1-node": record(books.pictures[0], host="h9")}
        one(agreement.compare_records(books, records), Kind.RECORD_MISSING, Owner.COMPUTE)

    def test_numbers_beside_the_picture(self):
        books = host_books()
        found = agreement.compare_records(
            books, {"h1-node": record(books.pictures[0], memory_mb_used=3)}
        )
        wrong = one(found, Kind.RECORD_WRONG, Owner.COMPUTE)
        assert wrong.text == (
            "the record of node h1-node says memory_mb_used 3; its host says memory_mb_used 1024"
        )

    def test_the_stored_picture(self):
        books = host_books()
        stored = dataclasses.replace(books.pictures[0], running_vms=5)
        row = Record("h1", stored, {n: getattr(books.pictures[0], n) for n in NUMBERS})
        found = agreement.compare_records(books, {"h1-node": row})
        assert "stored picture" in one(found, Kind.RECORD_WRONG, Owner.COMPUTE).text

    def test_a_record_that_moves_on_is_not_the_same_difference(self):
        books = host_books()
        keys = []
        for counter in (3, 4):
            old = dataclasses.replace(
                books.pictures[0], running_vms=9, generation=Generation(2, counter)
            )
            [wrong] = agreement.compare_records(books, {"h1-node": record(old)})
            keys.append(wrong.key)
        assert keys[0] != keys[1]
        newer = dataclasses.replace(books.pictures[0], running_vms=9, generation=Generation(3, 1))
        assert agreement.compare_records(books, {"h1-node": record(newer)}) == []

    def test_a_node_that_its_host_does_not_have(self):
        books = host_books()
        node = books.pictures[0]
        records = {"h1-node": record(node), "old": record(node), "h2-node": record(node, host="h2")}
        gone = one(agreement.compare_records(books, records), Kind.NODE_GONE, Owner.NOBODY)
        assert gone.node == "old"


def test_a_difference_as_json():
    [found] = agreement.compare_database(facts(allocations={}))
    assert found.as_dict() == {
        "kind": "allocation_missing",
        "instance_uuid": "a",
        "host": "h1",
        "node": "h1-node",
        "expected": {"h1-node": HELD},
        "found": {},
        "text": found.text,
        "repaired_by": "database",
    }


def test_books_cross_the_bus():
    books = host_books(busy=["b"], corrected=["x"])
    assert base.decode(base.pack(books)) == books


@given(
    st.lists(st.sampled_from("abcdef"), unique=True),
    st.lists(st.sampled_from("abcdef"), unique=True),
)
def test_exactly_the_claims_that_differ_are_named(kept, claimed):
    servers = tuple(server(uuid) for uuid in "abcdef")
    servers = tuple(
        each if each.uuid in kept else dataclasses.replace(each, host=None, vm_state="error")
        for each in servers
    )
    books = host_books([claim(uuid) for uuid in claimed], [guest(uuid) for uuid in kept])
    found = agreement.compare_host(books, facts(*servers))
    named = {(each.kind, each.instance_uuid) for each in found}
    missing = {(Kind.CLAIM_MISSING, uuid) for uuid in set(kept) - set(claimed)}
    assert named == missing | {(Kind.CLAIM_ORPHAN, uuid) for uuid in set(claimed) - set(kept)}
