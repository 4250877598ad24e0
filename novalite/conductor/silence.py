# SPDX-License-Identifier: Apache-2.0
"""Silence is measured, not read (rule 8).

A host is silent only after this conductor itself has watched its heartbeat counter stand still for
service_down_time on its own monotonic clock, with its own database and bus working all that time.
A conductor that was restarted, or cut off, starts the watch anew.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from novalite.objects.service import Service


@dataclass(slots=True)
class _Watched:
    epoch: int
    counter: int
    since: float


class Watch:
    """The heartbeat counters of all compute hosts, as seen by this conductor."""

    def __init__(
        self, service_down_time: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.service_down_time = service_down_time
        self._clock = clock
        self._hosts: dict[str, _Watched] = {}
        self._last: float | None = None
        self._longest_gap = 0.0
        self._lock = threading.Lock()

    def observe(self, services: Iterable[Service], longest_gap: float) -> None:
        """Note the counters as they are now.

        :param longest_gap: if the last look is longer ago (seconds), this process was not able to
            look all the time, and every watch starts anew
        """
        moment = self._clock()
        with self._lock:
            if self._last is None or moment - self._last > longest_gap:
                self._hosts.clear()
            self._last, self._longest_gap = moment, longest_gap
            seen = {}
            for service in services:
                former = self._hosts.get(service.host)
                state = (service.epoch, service.report_count)
                if former is not None and (former.epoch, former.counter) == state:
                    seen[service.host] = former
                else:
                    seen[service.host] = _Watched(*state, moment)
            self._hosts = seen

    def reset(self) -> None:
        """Forget everything: database or bus did not work for this conductor."""
        with self._lock:
            self._hosts.clear()
            self._last = None

    def silent(self, host: str) -> tuple[int, int] | None:
        """Return the (epoch, counter) at which the host fell silent, or None if it did not.

        A conductor that has not looked lately knows nothing: it may have been stopped, and this
        may be the first thing that it does again. The caller's transaction must check that the
        host's row still holds them.
        """
        with self._lock:
            watched, moment = self._hosts.get(host), self._clock()
            if watched is None or moment - watched.since < self.service_down_time:
                return None
            if self._last is None or moment - self._last > self._longest_gap:
                return None
            return watched.epoch, watched.counter
