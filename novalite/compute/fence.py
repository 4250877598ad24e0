# SPDX-License-Identifier: Apache-2.0
"""Self-fencing (rule 9): a host that nobody hears must not go on as if it owned its builds.

The fence falls when the last acknowledged report was *sent* more than service_down_time -
report_interval ago, which is one report_interval before a conductor can come to move the work
away. It is lifted by one thing only: the acknowledgement of a report sent after it fell. Builds
ask it before they start and before they let a guest run; the reporter asks it whether an answer
may still be used. It decides and keeps time; what is done to the guests is the callback's part.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from novalite import log

LOG = log.get(__name__)

# Seconds until guests that could not be looked after are tried again.
RETRY = 1.0


def clock() -> float:
    """Return seconds of a clock that goes on while the machine is suspended.

    A host that was asleep was silent, whatever its processes noticed of it.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Fence:
    """One host's fence. ``falls`` counts its falls; work remembers the count at which it began."""

    def __init__(
        self,
        limit: float,
        on_fall: Callable[[], None],
        clock: Callable[[], float] = clock,
    ):
        """Make a fence that is open and does not keep time yet.

        :param limit: seconds after which an unacknowledged host fences itself
        :param on_fall: run in the fence's thread when it has fallen, again when a guest was let
            run just while it fell, and again after it has raised; must bear being repeated
        """
        self.limit = limit
        self._next_limit = limit
        self.clock = clock
        self.falls = 0
        self._on_fall = on_fall
        self._changed = threading.Condition(threading.Lock())
        self._acknowledged: float | None = None
        self._fell_at: float | None = None
        self._for_good = False
        self._to_do = False
        self._failed = False
        self._stopped = False
        self._thread: threading.Thread | None = None

    def start(self, acknowledged: float) -> None:
        """Keep time from *acknowledged* on, the moment when the registration was sent.

        Nothing but the passing of time makes it fall; see :meth:`run`.
        """
        with self._changed:
            self._acknowledged = acknowledged

    def run(self) -> None:
        """Start the thread that falls in time and attends to the guests."""
        self._thread = threading.Thread(target=self._run, name="fence", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; nothing falls any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def configure(self, limit: float) -> None:
        """Take over another limit: a longer one now, a shorter one with the next acknowledgement.

        The reports were sent as the former limit needs them; measured by a shorter one a host
        that is well would be late.
        """
        with self._changed:
            self._next_limit = limit
            self.limit = max(limit, self.limit)
            self._changed.notify_all()

    def is_closed(self) -> bool:
        """Tell whether the fence is down at this moment."""
        with self._changed:
            self._look()
            return self._down

    def acknowledge(self, sent_at: float) -> bool:
        """Take note that a report sent at *sent_at* has been acknowledged.

        :returns: False if the fence fell after it was sent: then its answers must not be used
        """
        with self._changed:
            self._look()
            if self._for_good or (self._fell_at is not None and sent_at <= self._fell_at):
                return False
            self._acknowledged = max(sent_at, self._acknowledged or sent_at)
            if self.limit != self._next_limit:
                self.limit = self._next_limit
                LOG.info("This host fences itself after %.0f s from now on", self.limit)
                self._changed.notify_all()
            if self._fell_at is None:
                return True
            self._fell_at = None
            self._changed.notify_all()
        LOG.info("A report is acknowledged again: the fence is lifted")
        return True

    def close_for_good(self) -> None:
        """Let it fall for ever: another process serves under this name now."""
        with self._changed:
            self._for_good = True
            self._fall(tell=False)

    @contextmanager
    def passage(self, falls: int) -> Iterator[bool]:
        """Let a guest through to run: yield whether it may.

        It may if the fence is up and has not fallen since the count was *falls*. A fall inside the
        passage does not wait for it; what is done on a fall is done again when the guest is out.
        """
        with self._changed:
            self._look()
            is_open = not self._down and self.falls == falls
        try:
            yield is_open
        finally:
            if is_open:
                with self._changed:
                    if self._down:
                        self._to_do = True
                        self._changed.notify_all()

    @property
    def _down(self) -> bool:
        return self._fell_at is not None

    def _look(self) -> None:
        """Fall if it is time, whoever notices it first."""
        if self._acknowledged is None or self._down or self._stopped:
            return
        if self.clock() - self._acknowledged > self.limit:
            self._fall(tell=True)

    def _fall(self, *, tell: bool) -> None:
        if not self._down:
            self.falls += 1
        self._fell_at = self.clock()
        if tell:
            LOG.warning(
                "No report has been acknowledged for %.0f s: this host fences itself; it starts "
                "nothing, and guests of unfinished builds are paused",
                self.limit,
            )
            self._to_do = True
        self._changed.notify_all()

    def attend(self) -> None:
        """Do what has to be done after a fall, if there is anything; the thread's work."""
        with self._changed:
            to_do, self._to_do = self._to_do, False
        if not to_do:
            return
        try:
            self._on_fall()
            self._failed = False
        except Exception as error:
            self._failed = True
            LOG.error("The fence could not look after all guests, it will try again: %s", error)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._look()
                while not self._to_do and not self._stopped:
                    woken = self._changed.wait(self._remaining())
                    self._look()
                    self._to_do |= self._failed and self._down and not woken
                if self._stopped:
                    return
            self.attend()

    def _remaining(self) -> float | None:
        if self._down or self._acknowledged is None:
            return RETRY if self._failed else None
        # A little later than the limit, so that waking up and falling are one step.
        return max(0.0, self._acknowledged + self.limit - self.clock()) + 0.001
