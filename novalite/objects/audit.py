# SPDX-License-Identifier: Apache-2.0
"""What an audit looks at, and what it finds: servers, allocations, records, claims, guests.

``novalite-manage audit`` and the audits of conductors and computes fill these in;
:mod:`novalite.objects.agreement` compares them. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from novalite.objects import base
from novalite.objects.capacity import Need
from novalite.objects.compute_node import ComputeNode

# consumer -> node -> resource class -> used
Allocations = Mapping[str, Mapping[str, Mapping[str, int]]]


class Owner(StrEnum):
    """Who repairs a difference: the one that writes the books in which it is."""

    DATABASE = "database"  # in a transaction that looks again
    COMPUTE = "compute"  # the tracker, under its locks
    CLEANUP = "cleanup"  # a conductor tells the host, which looks again under the server's lock
    NOBODY = "nobody"  # an administrator has to decide


class Kind(StrEnum):
    """What kind of difference it is."""

    ALLOCATION_MISSING = "allocation_missing"
    ALLOCATION_WRONG = "allocation_wrong"
    ALLOCATION_ORPHAN = "allocation_orphan"
    SIZE_WRONG = "size_wrong"
    CLAIM_MISSING = "claim_missing"
    CLAIM_WRONG = "claim_wrong"
    CLAIM_ORPHAN = "claim_orphan"
    SUM_WRONG = "sum_wrong"
    GUEST_MISSING = "guest_missing"
    GUEST_ORPHAN = "guest_orphan"
    GUEST_UNKNOWN = "guest_unknown"
    RECORD_MISSING = "record_missing"
    RECORD_WRONG = "record_wrong"
    NODE_GONE = "node_gone"


_OWNERS = {
    Kind.ALLOCATION_MISSING: Owner.DATABASE,
    Kind.ALLOCATION_WRONG: Owner.DATABASE,
    Kind.ALLOCATION_ORPHAN: Owner.DATABASE,
    Kind.SIZE_WRONG: Owner.DATABASE,
    Kind.CLAIM_MISSING: Owner.COMPUTE,
    Kind.CLAIM_WRONG: Owner.COMPUTE,
    Kind.CLAIM_ORPHAN: Owner.COMPUTE,
    Kind.SUM_WRONG: Owner.COMPUTE,
    Kind.RECORD_MISSING: Owner.COMPUTE,
    Kind.RECORD_WRONG: Owner.COMPUTE,
    Kind.GUEST_ORPHAN: Owner.CLEANUP,
}


@dataclass(frozen=True, slots=True)
class Difference:
    """Two books that do not agree on one server or one node.

    ``expected`` and ``found`` are the numbers, ``text`` says all in words. ``attempt`` is that of
    the guest that has to go; ``mark`` tells apart what else may follow each other on one node.
    """

    kind: Kind
    text: str
    expected: Any = None
    found: Any = None
    instance_uuid: str | None = None
    host: str | None = None
    node: str | None = None
    attempt: int | None = None
    mark: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same difference when it is looked at again."""
        named = (self.instance_uuid, self.host, self.node, self.mark)
        return (str(self.kind), *(name or "" for name in named))

    @property
    def owner(self) -> Owner:
        """Who may repair it."""
        return _OWNERS.get(self.kind, Owner.NOBODY)

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "kind": str(self.kind),
            "instance_uuid": self.instance_uuid,
            "host": self.host,
            "node": self.node,
            "expected": self.expected,
            "found": self.found,
            "text": self.text,
            "repaired_by": str(self.owner),
        }


@base.register
@dataclass(slots=True)
class BookedClaim:
    """What a tracker counts for one server on one node; ``settled``: no build of it runs."""

    VERSION: ClassVar[str] = "1.0"

    instance_uuid: str
    node: str
    attempt: int
    vcpus: int
    memory_mb: int
    disk_gb: int
    settled: bool = True

    @property
    def need(self) -> Need:
        """The amounts as a need."""
        return Need(self.memory_mb, self.disk_gb, self.vcpus)


@base.register
@dataclass(slots=True)
class FoundGuest:
    """A guest that a hypervisor has, and the attempt that made it."""

    VERSION: ClassVar[str] = "1.0"

    instance_uuid: str
    node: str
    attempt: int


@base.register
@dataclass(slots=True)
class HostBooks:
    """What a compute says of itself: its nodes' pictures, claims and guests.

    ``busy`` are the servers of which something is in hand. ``corrected`` tells what the compute
    has just put right.
    """

    VERSION: ClassVar[str] = "1.0"

    host: str
    pictures: list[ComputeNode] = field(default_factory=list)
    claims: list[BookedClaim] = field(default_factory=list)
    guests: list[FoundGuest] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    corrected: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Server:
    """A server as the database has it. ``counted`` are its vcpus and MB that quotas count.

    ``busy``: it has an open action. ``attempt`` is the one that built it, None if none has.
    """

    uuid: str
    host: str | None
    node: str | None
    vm_state: str
    busy: bool
    need: Need
    flavor: tuple[int, int]
    counted: tuple[int, int]
    attempt: int | None = None
    deleted: bool = False

    @property
    def placed(self) -> bool:
        """Tell whether it holds something on a host."""
        return self.host is not None and not self.deleted


@dataclass(frozen=True, slots=True)
class Record:
    """A node's row: whose it is, the picture in it and the numbers beside the picture."""

    host: str
    picture: ComputeNode
    numbers: Mapping[str, Any]


@dataclass(slots=True)
class Facts:
    """What was read of the database. ``servers`` has deleted ones too where others name them."""

    servers: Mapping[str, Server]
    allocations: Allocations
    records: Mapping[str, Record]
    # (server, host) that are being cleaned up
    cleanups: frozenset[tuple[str, str]] = frozenset()


def resources(need: Need) -> dict[str, int]:
    """Return amounts by resource class, without what is nothing."""
    named = {"VCPU": need.vcpus, "MEMORY_MB": need.memory_mb, "DISK_GB": need.disk_gb}
    return {name: amount for name, amount in named.items() if amount}


def words(amounts: Mapping[str, Any]) -> str:
    """Return amounts as a text."""
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items()) or "nothing"
