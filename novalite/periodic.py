# SPDX-License-Identifier: Apache-2.0
"""Work that comes back: one thread a task, with jitter, until the service stops."""

import logging
import random
import threading
import time
from collections.abc import Callable

from novalite import exception

LOG = logging.getLogger(__name__)


class Periodic:
    """Runs *task* every *spacing* seconds in a thread of its own.

    The task is asked for its spacing before each wait, and again by :meth:`respace`, so that a
    reload can change it. An error is logged and the next round comes as usual.
    """

    def __init__(
        self,
        name: str,
        task: Callable[[], None],
        spacing: float | Callable[[], float],
        *,
        jitter: float = 0.0,
        at_once: bool = False,
    ):
        self.name = name
        self._task = task
        self._spacing = spacing
        self._jitter = jitter
        self._at_once = at_once
        self._wake = threading.Event()
        self._stopped = False
        self._away = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Start no further round."""
        self._stopped = True
        self._wake.set()

    def respace(self) -> None:
        """Ask for the spacing anew, for the wait that goes on as well."""
        self._wake.set()

    def wait(self, timeout: float) -> None:
        """Wait for a running round to end, *timeout* seconds at most."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _delay(self) -> float:
        spacing = self._spacing() if callable(self._spacing) else self._spacing
        return spacing + random.uniform(0, self._jitter)

    def _pause(self) -> None:
        """Wait until the next round is due or the task is stopped."""
        began = time.monotonic()
        while not self._stopped:
            if not self._wake.wait(max(0.0, began + self._delay() - time.monotonic())):
                return
            self._wake.clear()

    def _run(self) -> None:
        if not self._at_once:
            self._pause()
        while not self._stopped:
            try:
                self._task()
                self._away = False
            except exception.Unavailable as error:
                # Database or bus are away: no bug, and said once.
                level = logging.DEBUG if self._away else logging.WARNING
                LOG.log(level, "%s is left for later: %s", self.name, error.message())
                self._away = True
            except Exception:
                LOG.exception("Error during %s", self.name)
            self._pause()
