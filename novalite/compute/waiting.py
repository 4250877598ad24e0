# SPDX-License-Identifier: Apache-2.0
"""What waits for the next report: a queue that merges what belongs together.

Used by the reporter only, under its lock; it never sends and never waits. Two kinds of items:
*asks* have somebody who waits for the answer and are kept until they have it; *tells* have nobody,
so a newer one takes the place of an older one, and they may be dropped.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from novalite.objects import build
from novalite.objects.action import ActionEvent

Answered = Callable[[build.Answer], None]

# Tells that wait at most; more of them means that no report gets through.
MAX_TELLS = 1000


@dataclass(slots=True, eq=False)
class Ticket:
    """One item on its way; ``answered`` is None for a tell.

    ``due`` is the moment (the reporter's clock) before which no report is sent for its sake.
    """

    key: int
    context: dict[str, Any]
    item: build.ReportItem
    answered: Answered | None = None
    due: float = 0.0
    tries: int = 0
    sent: bool = False
    withdrawn: bool = False


class Waiting:
    """The items that no report has carried yet, in the order in which they came."""

    def __init__(self) -> None:
        self._tickets: list[Ticket] = []
        self._tells: dict[Hashable, Ticket] = {}

    def __len__(self) -> int:
        return len(self._tickets)

    def add(self, ticket: Ticket) -> None:
        """Append an item. A finish takes the waiting progress of its attempt along."""
        if isinstance(ticket.item, build.Finish):
            self._absorb(ticket.item)
        self._place(ticket, self._tickets)

    def put_back(self, tickets: Iterable[Ticket]) -> None:
        """Put items that a lost report carried before all others, in their order."""
        front: list[Ticket] = []
        for ticket in tickets:
            if not ticket.withdrawn:
                self._place(ticket, front, newer=False)
        self._tickets[:0] = front

    def due(self) -> float | None:
        """Return the moment at which the first item wants to be sent, None without items."""
        moments = [ticket.due for ticket in self._tickets if not ticket.withdrawn]
        return min(moments) if moments else None

    def take(self, now: float, limit: int) -> list[Ticket]:
        """Remove and return what goes into a report sent *now*: all that is due and every tell."""
        batch: list[Ticket] = []
        rest: list[Ticket] = []
        for ticket in self._tickets:
            if ticket.withdrawn:
                continue
            ready = ticket.answered is None or ticket.due <= now
            if not ready or len(batch) >= limit:
                rest.append(ticket)
                continue
            ticket.sent = True
            batch.append(ticket)
            if ticket.answered is None:
                self._tells.pop(_slot(ticket.item), None)
        self._tickets = rest
        return batch

    def _place(self, ticket: Ticket, queue: list[Ticket], *, newer: bool = True) -> None:
        if ticket.answered is not None:
            queue.append(ticket)
            return
        slot = _slot(ticket.item)
        other = self._tells.get(slot)
        if other is not None:
            first, second = (other, ticket) if newer else (ticket, other)
            other.item, other.context = _joined(first.item, second.item), second.context
            return
        if len(self._tells) >= MAX_TELLS:
            self._tells.pop(next(iter(self._tells))).withdrawn = True
        self._tells[slot] = ticket
        queue.append(ticket)

    def _absorb(self, finish: build.Finish) -> None:
        slot = ("progress", finish.action_id, finish.attempt, finish.token)
        ticket = self._tells.pop(slot, None)
        if ticket is not None and isinstance(ticket.item, build.Progress):
            ticket.withdrawn = True
            finish.events = _events(ticket.item.events, finish.events)


def _slot(item: build.ReportItem) -> Hashable:
    """Return what a tell is about; of two about the same thing one is enough."""
    if isinstance(item, build.Progress):
        return "progress", item.action_id, item.attempt, item.token
    if isinstance(item, build.Picture):
        return "picture", item.picture.hypervisor_hostname
    if isinstance(item, build.PowerReport):
        return "power", item.instance_uuid
    raise TypeError(f"a {type(item).__name__} must be asked, not told")


def _joined(older: build.ReportItem, newer: build.ReportItem) -> build.ReportItem:
    if isinstance(older, build.Progress) and isinstance(newer, build.Progress):
        newer.events = _events(older.events, newer.events)
        if newer.task_state is None:
            newer.task_state = older.task_state
        if newer.network_info is None:
            newer.network_info = older.network_info
    return newer


def _events(older: list[ActionEvent], newer: list[ActionEvent]) -> list[ActionEvent]:
    """Return all steps; of one that is in both lists the newer, which may have its end."""
    merged = {event.event: event for event in older}
    merged.update((event.event, event) for event in newer)
    return list(merged.values())
