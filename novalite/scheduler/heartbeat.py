# SPDX-License-Identifier: Apache-2.0
"""Registration and report_state of a scheduler, through the conductor.

Runs in a periodic task of the scheduler's. A scheduler serves whether or not a conductor answers:
registration only makes it visible and orders its starts.
"""

import logging
import time
from collections.abc import Callable

from oslo_config import cfg

from novalite import context as context_module
from novalite import exception
from novalite.conductor import rpcapi as conductor_rpcapi
from novalite.objects import build

LOG = logging.getLogger(__name__)

BINARY = "nova-scheduler"
# Seconds between two tries to register; a call to a conductor that starts just now gets lost.
RETRY = 0.5


class Heartbeat:
    """Keeps the scheduler's row in the services table alive.

    All workers of a host share the row, and the first of them keeps it; the others only ask whether
    conductors answer.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        conductor: conductor_rpcapi.ConductorAPI,
        fail: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        leads: bool = True,
    ):
        self._leads = leads
        self._conf = conf
        self._conductor = conductor
        self._fail = fail
        self._clock = clock
        self._answered_since: float | None = None
        self._epoch: int | None = None
        self._counter = 0
        self._waited = 0

    def spacing(self) -> float:
        """Return the seconds until the next beat: sooner while not registered."""
        interval = float(self._conf.report_interval)
        settled = self._epoch is not None if self._leads else self._answered_since is not None
        return interval if settled else min(RETRY, interval)

    def answered_for(self) -> float:
        """Return for how many seconds conductors have answered without a gap.

        While they do not, or have only begun to, nobody can know which hosts are away: the hosts
        are heard by the same way.
        """
        since = self._answered_since
        return 0.0 if since is None else self._clock() - since

    def beat(self) -> None:
        """Register, or report that this start still runs."""
        try:
            if not self._leads:
                context = context_module.service_context()
                self._conductor.ping(context, timeout=self._timeout())
                self._waited = 0
            elif self._epoch is None:
                self._register()
            else:
                self._report(self._epoch)
            if self._answered_since is None:
                self._answered_since = self._clock()
        except exception.Unavailable as error:
            self._answered_since = None
            # The first lost call is nothing; a row that grows old is seen by the API.
            level = logging.WARNING if self._waited else logging.INFO
            LOG.log(level, "The conductor does not answer: %s", error.message())
            self._waited += 1

    def _timeout(self) -> float:
        """A first try gives up soon, later ones allow for a conductor that is busy."""
        interval = float(self._conf.report_interval)
        return interval if self._epoch is not None else min(RETRY * (1 + self._waited), interval)

    def _register(self) -> None:
        registration = self._conductor.register(
            context_module.service_context(),
            host=self._conf.host,
            binary=BINARY,
            identity="",
            nodes=[],
            timeout=self._timeout(),
        )
        if registration.refused:
            self._fail(registration.refused)
            return
        self._epoch, self._counter, self._waited = registration.epoch, 0, 0
        LOG.info("Registered as %s on %s, epoch %d", BINARY, self._conf.host, self._epoch)

    def _report(self, epoch: int) -> None:
        self._counter += 1
        answer = self._conductor.report_state(
            context_module.service_context(),
            report=build.Report(
                host=self._conf.host, binary=BINARY, epoch=epoch, counter=self._counter
            ),
            timeout=self._timeout(),
        )
        self._waited = 0
        if answer.retired:
            self._fail(f"another scheduler was started under the host name {self._conf.host}")
        elif answer.unknown:
            self._epoch = None
            self._register()
