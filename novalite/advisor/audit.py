# SPDX-License-Identifier: Apache-2.0
"""The audit of a whole cloud: proves that all books agree, or names every difference.

Called by ``novalite-manage audit``. It reads the database and asks every compute that is up over
the bus. Nothing stands still meanwhile, so a difference counts only if every look of several finds
it. With *repair* each owner is told to put right what is his: the database in transactions that
look again, computes their claims and records, conductors the guests that nobody needs.
"""

import functools
import time
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any, Protocol

from novalite import context as context_module
from novalite import exception
from novalite.db import audit as db_audit
from novalite.db import services
from novalite.db.engine import Database
from novalite.objects import agreement, audit
from novalite.objects.audit import Difference, HostBooks, Owner

# Exit codes: differences are left; none is, but not every host could be asked.
LEFT = 3
UNCHECKED = 4
LOOKS = 3
# After a repair: a clean-up goes from a conductor to a host and back.
LOOKS_AFTER = 15
PAUSE = 1.0
# Seconds for one host's answer, and hosts that are asked at one time.
TIMEOUT = 10.0
AT_ONCE = 8


class Compute(Protocol):
    """What the audit asks of computes; see ``compute.rpcapi.ComputeAPI``."""

    def audit_books(
        self, context: context_module.RequestContext, *, host: str, repair: bool, timeout: float
    ) -> HostBooks:
        """Return what the host says of its nodes, claims and guests."""


@dataclass(slots=True)
class Report:
    """What one audit has found. ``hosts`` tells why a host was not asked, or None.

    ``repaired`` are the differences that were there and are not any more.
    """

    servers: int = 0
    allocations: int = 0
    nodes: int = 0
    in_work: int = 0
    hosts: dict[str, str | None] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    repaired: list[Difference] = field(default_factory=list)

    @property
    def unchecked(self) -> dict[str, str]:
        """The hosts that could not be asked, and why."""
        return {host: reason for host, reason in self.hosts.items() if reason is not None}

    @property
    def code(self) -> int:
        """The exit code."""
        if self.differences:
            return LEFT
        return UNCHECKED if self.unchecked else 0

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "servers": self.servers,
            "allocations": self.allocations,
            "nodes": self.nodes,
            "in_work": self.in_work,
            "hosts": {host: reason or "checked" for host, reason in self.hosts.items()},
            "differences": [found.as_dict() for found in self.differences],
            "repaired": [found.as_dict() for found in self.repaired],
        }

    def lines(self) -> list[str]:
        """Return it for people."""
        asked = len(self.hosts) - len(self.unchecked)
        lines = [
            f"{self.servers} servers, {self.allocations} allocations, {self.nodes} nodes; "
            f"{asked} of {len(self.hosts)} hosts asked; {self.in_work} servers in work and left out"
        ]
        lines += [f"not asked: {host}: {reason}" for host, reason in self.unchecked.items()]
        lines += [f"repaired: {found.kind}: {found.text}" for found in self.repaired]
        for found in self.differences:
            hint = "" if found.owner is not Owner.NOBODY else " (an administrator has to decide)"
            lines.append(f"{found.kind}: {found.text}{hint}")
        lines.append(f"{len(self.differences)} differences are left")
        return lines


class Auditor:
    """One audit.

    :param down_time: seconds after which a host that does not report is not asked
    :param pause: waits so many seconds
    """

    def __init__(
        self,
        database: Database,
        compute: Compute,
        down_time: float,
        pause: Callable[[float], None] = time.sleep,
    ):
        self._database = database
        self._compute = compute
        self._down_time = down_time
        self._pause = pause

    def run(self, *, repair: bool) -> Report:
        """Look until there is no difference or each was found by every look; then repair."""
        report = self._confirmed(LOOKS)
        if not (repair and report.differences):
            return report
        found = {each.key: each for each in report.differences}
        self._repair(report.differences)
        after = self._confirmed(LOOKS_AFTER)
        left = {each.key for each in after.differences}
        after.repaired = [each for key, each in found.items() if key not in left]
        return after

    def _confirmed(self, looks: int) -> Report:
        report = self._look()
        for number in range(1, looks):
            owners = {found.owner for found in report.differences}
            if not owners or (number >= LOOKS and owners == {Owner.NOBODY}):
                break
            self._pause(PAUSE)
            former = {found.key for found in report.differences}
            report = self._look()
            report.differences = [each for each in report.differences if each.key in former]
        return report

    def _look(self) -> Report:
        facts = self._database.read(db_audit.read)
        hosts = self._hosts(facts)
        asked = [host for host, reason in hosts.items() if reason is None]
        with futures.ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(functools.partial(self._ask, repair=False), asked))
        found = agreement.compare_database(facts)
        every: list[HostBooks] = []
        for host, answer in zip(asked, answers, strict=True):
            if isinstance(answer, str):
                hosts[host] = answer
            else:
                every.append(answer)
        facts = self._with_named(facts, every)
        for books in every:
            found += agreement.compare_host(books, facts)
            found += agreement.compare_records(books, facts.records)
        live = [server for server in facts.servers.values() if not server.deleted]
        return Report(
            servers=len(live),
            allocations=sum(len(nodes) for nodes in facts.allocations.values()),
            nodes=len(facts.records),
            in_work=sum(server.busy for server in live),
            hosts=hosts,
            differences=found,
        )

    def _hosts(self, facts: audit.Facts) -> dict[str, str | None]:
        """Return every host that is named anywhere, with why it cannot be asked."""
        known = self._database.read(lambda conn: services.list_all(conn, "nova-compute"))
        hosts: dict[str, str | None] = {}
        for service in known:
            # Forced down or not: a host that reports can be asked.
            up = service.age is not None and abs(service.age) <= self._down_time
            hosts[service.host] = None if up else "it is down"
        named = {str(server.host) for server in facts.servers.values() if server.placed}
        for host in sorted(named | {record.host for record in facts.records.values()}):
            hosts.setdefault(host, "it has no service")
        return hosts

    def _ask(self, host: str, *, repair: bool) -> HostBooks | str:
        context = context_module.service_context()
        try:
            return self._compute.audit_books(context, host=host, repair=repair, timeout=TIMEOUT)
        except exception.VersionUnsupported:
            return "its novalite-compute is too old to be asked"
        except exception.BusUnavailable:
            return "it does not answer"
        except Exception as error:
            return f"it failed: {type(error).__name__.removesuffix('_Remote')}"

    def _with_named(self, facts: audit.Facts, every: list[HostBooks]) -> audit.Facts:
        """Add the servers that only hosts know of: deleted ones, and those made meanwhile."""
        names = {guest.instance_uuid for books in every for guest in books.guests}
        names |= {claim.instance_uuid for books in every for claim in books.claims}
        missing = names - facts.servers.keys()
        if not missing:
            return facts
        more = self._database.read(lambda conn: db_audit.named(conn, missing))
        servers = {**facts.servers, **more}
        return audit.Facts(servers, facts.allocations, facts.records, facts.cleanups)

    def _repair(self, differences: list[Difference]) -> None:
        database = self._database
        for found in differences:
            if found.owner is Owner.DATABASE:
                uuid = str(found.instance_uuid)
                database.transaction(functools.partial(db_audit.settle, uuid=uuid))
            elif found.owner is Owner.CLEANUP:
                database.transaction(functools.partial(db_audit.clean_up, found=found))
        computes = {str(each.host) for each in differences if each.owner is Owner.COMPUTE}
        for host in sorted(computes):
            self._ask(host, repair=True)
