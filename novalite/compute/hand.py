# SPDX-License-Identifier: Apache-2.0
"""What novalite-compute has in hand: the attempts it works on and the deletes.

Every report names it, and the conductor extends the deadlines of what is named (rule 2). Builds,
destroys, the fence and the reporter's answers meet here: a stage changes only by
:meth:`Hand.move`, a compare-and-set, so that whoever comes late finds that his work was taken from
him. Nothing here talks to hypervisor, bus or network.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from novalite.compute.waiting import Ticket
from novalite.objects.build import InHand


class Stage(Enum):
    """How far an attempt has come on this host."""

    CLAIMED = "claimed"  # begin is asked, or about to be
    QUEUED = "queued"  # GO; waits for a build slot
    RUNNING = "running"  # network and spawn
    FINISHING = "finishing"  # the guest runs; finish is asked
    FAILED = "failed"  # what was made is gone; the failure is reported
    REFUSED = "refused"  # the claim does not fit; the refusal is reported
    DONE = "done"  # finish is answered DONE; the guest is being marked
    LEAVING = "leaving"  # not ours any more; what was made is being removed
    OVER = "over"


# Work in these stages is in the middle of something that only its own thread can end.
_BUSY = frozenset({Stage.RUNNING, Stage.DONE, Stage.LEAVING})
# After the answer to finish nothing is owed to the conductor.
_ANSWERED = frozenset({Stage.DONE, Stage.LEAVING, Stage.OVER})


@dataclass(slots=True, eq=False)
class Work:
    """One attempt in hand.

    ``begun``: begin was answered GO or RESUME to this token. ``cancelled``: a delete or a newer
    attempt wants it to stop. ``ticket``: the question that waits for an answer now.
    """

    action_id: int
    attempt: int
    instance_uuid: str
    node: str
    token: str
    stage: Stage = Stage.CLAIMED
    begun: bool = False
    cancelled: bool = False
    ticket: Ticket | None = None


@dataclass(slots=True)
class _Lock:
    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class Hand:
    """The attempts and deletes in hand, and one lock an instance for what is done to its guest."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._works: dict[str, list[Work]] = {}
        self._deletes: set[tuple[str, int | None, int | None]] = set()
        self._locks: dict[str, _Lock] = {}

    # Attempts

    def take(self, work: Work) -> tuple[str | None, list[Work]]:
        """Take an attempt in hand.

        :returns: why it is not taken (it, or a newer one, is in hand already) or None, and the
            lower attempts that were dropped for it; a lower one that is running is cancelled and
            ends by itself
        """
        with self._changed:
            works = self._works.get(work.instance_uuid, [])
            mine = (work.action_id, work.attempt)
            for other in works:
                if (other.action_id, other.attempt) >= mine:
                    same = (other.action_id, other.attempt) == mine
                    return ("it is in hand" if same else "a newer one is in hand"), []
            dropped = [other for other in works if self._cancel(other)]
            self._works.setdefault(work.instance_uuid, []).append(work)
            return None, dropped

    def move(self, work: Work, before: Stage, after: Stage, *, begun: bool = False) -> bool:
        """Bring *work* from one stage to another; False if it is not in *before* any more, or if
        it was cancelled meanwhile."""
        with self._changed:
            if work.stage is not before or work.cancelled:
                return False
            work.stage = after
            work.begun = work.begun or begun
            return True

    def end(self, work: Work) -> None:
        """Let go of *work*, whatever its stage."""
        with self._changed:
            self._remove(work)

    def cancel(self, instance_uuid: str, bound: int | None) -> list[Work]:
        """Stop the attempts of a server up to *bound* (None: all) because its guest must go.

        :returns: the attempts that were dropped at once; a running one is only marked and stops
            at its next stage
        """
        with self._changed:
            works = list(self._works.get(instance_uuid, ()))
            upto = [w for w in works if bound is None or w.attempt <= bound]
            return [work for work in upto if self._cancel(work)]

    def find(self, instance_uuid: str, action_id: int, attempt: int) -> Work | None:
        """Return the attempt if it is in hand."""
        with self._changed:
            for work in self._works.get(instance_uuid, ()):
                if (work.action_id, work.attempt) == (action_id, attempt):
                    return work
        return None

    def of_instance(self, instance_uuid: str) -> list[Work]:
        """Return the attempts of a server that are in hand."""
        with self._changed:
            return list(self._works.get(instance_uuid, ()))

    def drop_not_begun(self) -> list[Work]:
        """Drop and return what the conductor has not been told to have begun here."""
        with self._changed:
            idle = [w for works in self._works.values() for w in works if not w.begun]
            return [work for work in idle if self._cancel(work)]

    def _cancel(self, work: Work) -> bool:
        work.cancelled = True
        if work.stage in _BUSY:
            return False
        self._remove(work)
        return True

    def _remove(self, work: Work) -> None:
        work.stage = Stage.OVER
        works = self._works.get(work.instance_uuid, [])
        if work in works:
            works.remove(work)
        if not works:
            self._works.pop(work.instance_uuid, None)
        self._changed.notify_all()

    # Deletes

    def take_delete(self, instance_uuid: str, action_id: int | None, bound: int | None) -> bool:
        """Take a delete or a clean-up in hand; False if the same one is in hand already."""
        key = (instance_uuid, action_id, bound)
        with self._changed:
            if key in self._deletes:
                return False
            self._deletes.add(key)
            return True

    def end_delete(self, instance_uuid: str, action_id: int | None, bound: int | None) -> None:
        """Let go of a delete."""
        with self._changed:
            self._deletes.discard((instance_uuid, action_id, bound))
            self._changed.notify_all()

    def busy(self) -> set[str]:
        """Return the servers of which an attempt or a delete is in hand."""
        with self._changed:
            return {*self._works, *(instance_uuid for instance_uuid, _, _ in self._deletes)}

    # Reports and the end of the process

    def named(self) -> list[InHand]:
        """Return what a report has to name."""
        with self._changed:
            named = [
                InHand(work.action_id, work.attempt)
                for works in self._works.values()
                for work in works
                if work.begun and work.stage not in _ANSWERED
            ]
            named += [InHand(action, 0) for _, action, _ in self._deletes if action is not None]
        return named

    def wait_idle(self, timeout: float) -> bool:
        """Wait until nothing is in hand; False if that is not so after *timeout* seconds."""
        end = time.monotonic() + timeout
        with self._changed:
            while self._works or self._deletes:
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True

    # Instance locks

    @contextmanager
    def instance_lock(self, instance_uuid: str, timeout: float = -1) -> Iterator[bool]:
        """Hold the lock of one server while its guest is changed.

        :param timeout: seconds to wait for it; negative: as long as it takes
        :returns: whether the lock is held; always so without a timeout
        """
        with self._changed:
            entry = self._locks.setdefault(instance_uuid, _Lock())
            entry.users += 1
        held = entry.lock.acquire(timeout=timeout)
        try:
            yield held
        finally:
            if held:
                entry.lock.release()
            with self._changed:
                entry.users -= 1
                if not entry.users:
                    del self._locks[instance_uuid]
