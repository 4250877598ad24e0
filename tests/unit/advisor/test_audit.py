# SPDX-License-Identifier: Apache-2.0
"""``novalite-manage audit``: several looks, each owner told, and what the exit code says."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from novalite import exception
from novalite.advisor import audit
from novalite.db import audit as db_audit
from novalite.db import compute_nodes, schema
from novalite.objects.audit import BookedClaim, FoundGuest, HostBooks, Kind
from novalite.objects.compute_node import ComputeNode
from novalite.objects.request_spec import Generation
from tests.unit.db import books as books_module

_al = schema.allocations


class Hosts:
    """The computes of a small cloud, which answer as they are told."""

    def __init__(self) -> None:
        self.books: dict[str, HostBooks] = {}
        self.errors: dict[str, Exception] = {}
        self.repaired: list[str] = []
        self.on_repair: Callable[[str], None] = lambda host: None

    def audit_books(self, context: Any, *, host: str, repair: bool, timeout: float) -> HostBooks:
        if host in self.errors:
            raise self.errors[host]
        if repair:
            self.repaired.append(host)
            self.on_repair(host)
        return self.books[host]


class Small:
    """One host with one server, whose books agree."""

    def __init__(self, directory: Path):
        self.books: Any = books_module.open_books(books_module.make_conf(directory))
        self.books.register("h1")
        self.server, _ = self.books.active()
        self.hosts = Hosts()
        self.pauses: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.hosts.books["h1"] = self.host_books()
        self.store(self.hosts.books["h1"].pictures[0])

    def host_books(self, **changes: Any) -> HostBooks:
        uuid = self.server.uuid
        claim = BookedClaim(uuid, "h1", 1, vcpus=1, memory_mb=64, disk_gb=1)
        node = ComputeNode(
            "h1",
            "h1",
            vcpus=8,
            vcpus_used=1,
            memory_mb_used=576,
            local_gb_used=1,
            running_vms=1,
            generation=Generation(1, 5),
        )
        books = HostBooks("h1", [node], [claim], [FoundGuest(uuid, "h1", 1)])
        return dataclasses.replace(books, **changes)

    def store(self, node: ComputeNode) -> None:
        self.books.write(compute_nodes.save, node)

    def drop_allocation(self) -> None:
        self.books.execute(sa.delete(_al).where(_al.c.consumer == self.server.uuid))

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.meanwhile()

    def audit(self, *, repair: bool = False) -> audit.Report:
        return audit.Auditor(self.books.database, self.hosts, 60.0, self.pause).run(repair=repair)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def kinds(report: audit.Report) -> list[Kind]:
    return [found.kind for found in report.differences]


def test_books_that_agree(small: Small) -> None:
    report = small.audit()
    assert (report.code, report.differences, small.pauses) == (0, [], [])
    assert report.lines() == [
        "1 servers, 1 allocations, 1 nodes; 1 of 1 hosts asked; 0 servers in work and left out",
        "0 differences are left",
    ]
    assert report.as_dict() == {
        "servers": 1,
        "allocations": 1,
        "nodes": 1,
        "in_work": 0,
        "hosts": {"h1": "checked"},
        "differences": [],
        "repaired": [],
    }


def test_a_difference_counts_if_every_look_finds_it(small: Small) -> None:
    small.drop_allocation()
    report = small.audit()
    assert (report.code, kinds(report)) == (audit.LEFT, [Kind.ALLOCATION_MISSING])
    assert len(small.pauses) == audit.LOOKS - 1
    assert small.books.held(small.server.uuid) == {}, "nothing is repaired that was not asked for"


def test_what_passes_is_no_difference(small: Small) -> None:
    """Two differences follow each other: neither is there all the time."""
    small.drop_allocation()

    def meanwhile() -> None:
        small.books.write(db_audit.settle, small.server.uuid)
        small.hosts.books["h1"].claims = []

    small.meanwhile = meanwhile
    assert small.audit().code == 0


def test_each_owner_repairs_what_is_his(small: Small) -> None:
    other, _ = small.books.active("h2", reservation_id="r2")
    small.books.register("h2")
    small.drop_allocation()
    broken = small.host_books(claims=[], guests=[FoundGuest(other.uuid, "h1", 1)])
    small.hosts.books["h1"] = broken
    claim = BookedClaim(other.uuid, "h2", 1, vcpus=1, memory_mb=64, disk_gb=1)
    second = dataclasses.replace(
        small.host_books().pictures[0], host="h2", hypervisor_hostname="h2"
    )
    small.store(second)
    guests = [FoundGuest(other.uuid, "h2", 1)]
    small.hosts.books["h2"] = HostBooks("h2", [second], [claim], guests)

    def on_repair(host: str) -> None:
        assert small.books.cleanups(other.uuid) == {"h1": 1}
        small.hosts.books["h1"] = small.host_books()

    small.hosts.on_repair = on_repair
    before = small.audit()
    assert sorted(kinds(before)) == [
        Kind.ALLOCATION_MISSING,
        Kind.CLAIM_MISSING,
        Kind.GUEST_MISSING,
        Kind.GUEST_ORPHAN,
        Kind.SUM_WRONG,
    ]
    report = small.audit(repair=True)
    assert small.hosts.repaired == ["h1"], "h2 has nothing to repair"
    assert (report.code, report.differences) == (0, [])
    assert [found.kind for found in report.repaired] == kinds(before)
    assert any(line.startswith("repaired: claim_missing: node h1") for line in report.lines())


def test_what_nobody_may_repair_is_left_and_said(small: Small) -> None:
    small.hosts.books["h1"] = small.host_books(guests=[])
    report = small.audit(repair=True)
    assert (report.code, kinds(report), report.repaired) == (audit.LEFT, [Kind.GUEST_MISSING], [])
    assert report.lines()[-2].endswith("has no guest of it (an administrator has to decide)")
    assert len(small.pauses) < audit.LOOKS_AFTER, "nobody is waited for"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (exception.BusUnavailable(), "it does not answer"),
        (exception.VersionUnsupported(), "its novalite-compute is too old to be asked"),
        (ZeroDivisionError(), "it failed: ZeroDivisionError"),
    ],
)
def test_a_host_that_cannot_be_asked(small: Small, error: Exception, reason: str) -> None:
    small.hosts.errors["h1"] = error
    report = small.audit()
    assert (report.code, report.hosts) == (audit.UNCHECKED, {"h1": reason})
    assert f"not asked: h1: {reason}" in report.lines()


def test_hosts_that_are_down_or_have_no_service(small: Small) -> None:
    small.books.active("h3", reservation_id="r3")
    small.books.clock.advance(61.0)
    report = small.audit()
    assert report.hosts == {"h1": "it is down", "h3": "it has no service"}
    assert report.code == audit.UNCHECKED
    small.drop_allocation()
    assert small.audit().code == audit.LEFT


def test_servers_that_only_a_host_names_are_looked_up(small: Small) -> None:
    uuid = small.server.uuid
    small.books.execute(
        sa.update(schema.instances)
        .where(schema.instances.c.uuid == uuid)
        .values(deleted=True, host=None)
    )
    small.drop_allocation()
    report = small.audit()
    assert sorted(kinds(report)) == [Kind.CLAIM_ORPHAN, Kind.GUEST_ORPHAN]
    assert all("a server that is deleted" in found.text for found in report.differences)
