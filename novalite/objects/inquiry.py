# SPDX-License-Identifier: Apache-2.0
"""The answers of a scheduler to an operator: why not this host, and how many more fit.

Made by scheduler/inquiry.py from the hosts as they are at that moment, sent to the API. Nothing
was selected for them. Pure data.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from novalite.objects import base
from novalite.objects.capacity import Need
from novalite.objects.decision import Decision, Weighed
from novalite.objects.reason import Reason


@base.register
@dataclass(slots=True)
class HostVerdict:
    """What every filter says of one host for one request, and how good it is if all let it in.

    ``picture`` is the generation of its picture ("epoch.counter"), ``selected`` counts servers that
    were chosen for it and that the picture does not name yet. ``reasons`` are (filter, reason) of
    each filter that refuses: the first one removes the host. ``skipped`` tells that the request
    names its host, so that the filters would not be asked. ``room`` is the arithmetic of memory,
    disk and vcpus; one without a limit has none in its reason. ``rank`` counts from 1 among those
    that are let in; ``weighed`` holds their weights, empty for the others.
    """

    VERSION: ClassVar[str] = "1.0"

    host: str
    node: str
    zone: str = ""
    picture: str = ""
    selected: int = 0
    fits: bool = False
    skipped: bool = False
    passed: list[str] = field(default_factory=list)
    reasons: list[tuple[str, Reason]] = field(default_factory=list)
    room: list[Reason] = field(default_factory=list)
    rank: int | None = None
    weighed: list[Weighed] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Give rows that came as arrays their names back."""
        self.reasons = _named(self.reasons)
        self.room = [_reason(row) for row in self.room]
        rows: list[Any] = list(self.weighed)
        self.weighed = [Weighed(*row[: len(Weighed._fields)]) for row in rows]


@base.register
@dataclass(slots=True)
class Examination:
    """One request against hosts that were asked about; ``unknown`` are names of none.

    ``decision`` is the one that the scheduler would make now, with the counts of all hosts.
    """

    VERSION: ClassVar[str] = "1.0"

    decision: Decision
    hosts: list[HostVerdict] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


@base.register
@dataclass(slots=True)
class HostCapacity:
    """How many servers more fit one host, and what lets no more in.

    ``count`` is None if nothing limits it. ``binds`` are (filter, reason) of each filter that
    refuses the next server, as it would be with ``count`` more. ``each`` is the count by resource
    alone, None where there is no limit. ``room`` is the arithmetic as it is now.
    """

    VERSION: ClassVar[str] = "1.0"

    host: str
    node: str
    zone: str = ""
    picture: str = ""
    selected: int = 0
    count: int | None = 0
    binds: list[tuple[str, Reason]] = field(default_factory=list)
    each: dict[str, int | None] = field(default_factory=dict)
    room: list[Reason] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Give rows that came as arrays their names back."""
        self.binds = _named(self.binds)
        self.room = [_reason(row) for row in self.room]


@base.register
@dataclass(slots=True)
class CapacityReport:
    """How many servers more fit, host by host; ``unknown`` are names of no host.

    ``picture_age`` is how many seconds ago the pictures were known to be the newest.
    """

    VERSION: ClassVar[str] = "1.0"

    need: Need = Need(0, 0, 0)
    hosts: list[HostCapacity] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    picture_age: float = 0.0

    def __post_init__(self) -> None:
        """Give the need its names back."""
        self.need = Need(*self.need[: len(Need._fields)])

    @property
    def total(self) -> int | None:
        """How many fit in all; None if nothing limits it on one of the hosts."""
        counts = [host.count for host in self.hosts]
        return None if None in counts else sum(count or 0 for count in counts)


def _reason(row: Any) -> Reason:
    return Reason(*row[: len(Reason._fields)])


def _named(rows: Any) -> list[tuple[str, Reason]]:
    return [(name, _reason(row)) for name, row in rows]
