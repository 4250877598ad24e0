# SPDX-License-Identifier: Apache-2.0
"""Threads for the work of a compute that takes long: so many at a time, a number that may change.

The manager makes one pool for each kind of work (rule 13 of docs/architecture.md). The standard
library's executor cannot change its size, and a thread that it has made never ends.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from novalite import concurrency, log

LOG = log.get(__name__)
# Seconds after which a thread that has nothing to do ends.
IDLE = 30.0


class Pool:
    """Threads for one kind of work; an error in it is logged, nobody waits for the result."""

    def __init__(self, name: str, size: int):
        """Make a pool of *size* threads, or (0) without a limit."""
        self.name = name
        self._size = size
        self._changed = threading.Condition(threading.Lock())
        self._waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._threads = 0
        self._idle = 0
        self._stopped = False

    def submit(self, work: Callable[..., None], *args: Any) -> None:
        """Run ``work(*args)`` when a thread is free; dropped after :meth:`stop`."""
        with self._changed:
            if self._stopped:
                LOG.debug("Pool %s is stopped", self.name)
                return
            self._waiting.append((work, args))
            self._provide()

    def resize(self, size: int) -> None:
        """Change the number of threads; what runs goes on, even if it is more than that."""
        with self._changed:
            self._size = size
            self._provide()

    def stop(self) -> None:
        """Start nothing more."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()

    def _provide(self) -> None:
        """See to it that there is a thread for what waits, within the size."""
        self._changed.notify_all()
        wanted = len(self._waiting) - self._idle
        room = self._size - self._threads if self._size else wanted
        for _ in range(min(wanted, room)):
            self._threads += 1
            concurrency.spawn(self._run, name=self.name)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._surplus():
                    self._idle += 1
                    left = not self._changed.wait(IDLE)
                    self._idle -= 1
                    if left and not self._waiting:
                        break
                if self._surplus() or not self._waiting:
                    self._threads -= 1
                    return
                work, args = self._waiting.popleft()
            _guarded(work, args)

    def _surplus(self) -> bool:
        return self._stopped or bool(self._size and self._threads > self._size)


def _guarded(work: Callable[..., None], args: tuple[Any, ...]) -> None:
    try:
        work(*args)
    except Exception:
        LOG.exception("Work was given up")
