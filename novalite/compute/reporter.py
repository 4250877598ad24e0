# SPDX-License-Identifier: Apache-2.0
"""The one voice of novalite-compute towards the conductor.

One report_state call is in flight at a time; whatever gathers meanwhile goes into the next one
(docs/architecture.md, rule 1 of the section on speed). A report goes out as soon as somebody
waits for an answer, a moment later if nobody does, and after report_interval as a mere heartbeat.
After a report with more than one item the next waits a moment, so that it carries more under load.

An ask is repeated, with the same token, until it is answered: a time-out means that its fate is
*unknown*. Answers are handed out in the reporter's thread, so what takes them must be short and
must not wait. While the fence is down a report carries nothing but the heartbeat, and answers to
a report that was sent before the fence fell are not used.
"""

import itertools
import random
import threading
from collections.abc import Callable
from typing import Any, Protocol

from oslo_config import cfg

from novalite import context as context_module
from novalite import exception, log
from novalite.compute.fence import Fence
from novalite.compute.waiting import Answered, Ticket, Waiting
from novalite.objects import build

LOG = log.get(__name__)

BINARY = "nova-compute"
# Most items of one report.
BATCH = 200
# Seconds that a tell waits for company: most boots are past their next step by then, and one
# report carries both.
LINGER = 0.05
# Seconds of rest after a report that carried more than one item.
SPACING = 0.02
FIRST_BACKOFF = 0.1
MAX_BACKOFF = 5.0

Ask = tuple[dict[str, Any], build.ReportItem, Answered]


class Conductor(Protocol):
    """What compute asks of a conductor; see ``conductor.rpcapi.ConductorAPI``."""

    def register(
        self,
        context: context_module.RequestContext,
        *,
        host: str,
        binary: str,
        identity: str,
        nodes: list[str],
        timeout: float,
    ) -> build.Registration:
        """Announce a start of the service."""

    def report_state(
        self, context: context_module.RequestContext, *, report: build.Report, timeout: float
    ) -> build.ReportAnswer:
        """Deliver a report."""

    def get_kept(
        self, context: context_module.RequestContext, *, host: str, timeout: float
    ) -> build.Registration:
        """Return which servers a host has to keep."""


class Reporter:
    """Sends the reports of one process. ``epoch`` is set by the registration."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        conductor: Conductor,
        fence: Fence,
        in_hand: Callable[[], list[build.InHand]],
        *,
        on_retired: Callable[[], None],
        on_unknown: Callable[[], None],
    ):
        """Make a reporter that does not send yet.

        :param in_hand: what each report names
        :param on_retired: a newer start of this service has registered
        :param on_unknown: the conductor does not know this service any more; must register anew
        """
        self.conf = conf
        self.acknowledged = threading.Event()
        self._conductor = conductor
        self._fence = fence
        self._clock = fence.clock
        self._in_hand = in_hand
        self._on_retired = on_retired
        self._on_unknown = on_unknown
        self._context = context_module.service_context()
        self._keys = itertools.count(1)
        self._changed = threading.Condition(threading.Lock())
        self._waiting = Waiting()
        self._epoch = 0
        self._counter = 0
        self._heartbeat_at = 0.0
        self._quiet_until = 0.0
        self._wake_at = 0.0
        self._failures = 0
        self._limit = BATCH
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    def begin_epoch(self, epoch: int) -> None:
        """Report as this start of the service from now on."""
        with self._changed:
            self._epoch, self._counter = epoch, 0

    def start(self) -> None:
        """Start the thread; the first report goes at once."""
        self._thread.start()

    def report_now(self) -> None:
        """Let the next report go out at once, and the one after it by the options as they are."""
        with self._changed:
            self._heartbeat_at = self._clock()
            self._changed.notify_all()

    def stop(self, timeout: float = 1.0) -> None:
        """Send nothing more; wait for a call in flight, *timeout* seconds at most."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    # What is handed in

    def ask(self, *asks: Ask) -> list[Ticket]:
        """Queue items (context, item, who takes the answer) that go together, and return at once.

        The answer is handed out once; its verdict is never None. It comes in the reporter's
        thread.
        """
        with self._changed:
            tickets = [
                Ticket(next(self._keys), context, item, answered)
                for context, item, answered in asks
            ]
            for ticket in tickets:
                self._waiting.add(ticket)
            self._changed.notify()
        return tickets

    def tell(self, context: dict[str, Any], item: build.ReportItem) -> None:
        """Queue an item that nobody waits for: Progress, Picture or PowerReport."""
        with self._changed:
            due = self._clock() + LINGER
            self._waiting.add(Ticket(next(self._keys), context, item, due=due))
            if due < self._wake_at:
                self._changed.notify()

    def withdraw(self, ticket: Ticket) -> None:
        """Ask no more; an answer that is on its way is thrown away."""
        with self._changed:
            ticket.withdrawn = True

    def withdraw_unsent(self, ticket: Ticket) -> bool:
        """Withdraw the item if no report has ever carried it; tell whether that was so."""
        with self._changed:
            if ticket.sent:
                return False
            ticket.withdrawn = True
            return True

    # The thread

    def _run(self) -> None:
        while self._wait():
            self.send()

    def _wait(self) -> bool:
        """Wait for the moment of the next report; False at the end."""
        with self._changed:
            while not self._stopped:
                now = self._clock()
                wake = self._next_at()
                if wake <= now:
                    return True
                self._wake_at = wake
                self._changed.wait(wake - now)
                self._wake_at = 0.0
            return False

    def _next_at(self) -> float:
        due = None if self._fence.is_closed() else self._waiting.due()
        wake = self._heartbeat_at if due is None else min(due, self._heartbeat_at)
        return max(wake, self._quiet_until)

    def send(self) -> None:
        """Send one report with everything that is due, or a heartbeat if nothing is.

        Never raises; the reporter's thread does nothing else.
        """
        # Nothing but the heartbeat goes out while the fence is down.
        limit = 0 if self._fence.is_closed() else self._limit
        with self._changed:
            now = self._clock()
            self._heartbeat_at = now + float(self.conf.report_interval)
            batch = self._waiting.take(now, limit) if limit else []
        try:
            self._deliver(batch)
        except Exception:
            LOG.exception("A report could not be handled")
            with self._changed:
                self._set_back()

    def _deliver(self, batch: list[Ticket]) -> None:
        with self._changed:
            self._counter += 1
            epoch, counter = self._epoch, self._counter
        report = build.Report(
            host=str(self.conf.host),
            binary=BINARY,
            epoch=epoch,
            counter=counter,
            in_hand=self._in_hand(),
            items=[build.Envelope(t.key, t.context, t.item) for t in batch],
        )
        timeout = float(self.conf.report_interval)
        sent_at = self._clock()
        try:
            answer = self._conductor.report_state(self._context, report=report, timeout=timeout)
        except Exception as error:
            self._lost(batch, error)
            return
        self._heard(batch, answer, sent_at)

    def _heard(self, batch: list[Ticket], answer: build.ReportAnswer, sent_at: float) -> None:
        if answer.retired or answer.unknown:
            self._put_back(batch)
            self._unwelcome(answer)
            return
        if self._failures:
            LOG.info("The conductor answers again after %d failed reports", self._failures)
        self._failures = 0
        self._limit = min(BATCH, self._limit * 2)
        if len(batch) > 1:
            with self._changed:
                self._quiet_until = self._clock() + SPACING
        usable = self._fence.acknowledge(sent_at)
        self.acknowledged.set()
        if not usable:
            self._put_back([ticket for ticket in batch if ticket.answered is not None])
            return
        answers = {each.key: each for each in answer.answers}
        self._put_back([t for t in batch if not self._hand_out(t, answers.get(t.key))])

    def _hand_out(self, ticket: Ticket, answer: build.Answer | None) -> bool:
        """Give one answer to who waits for it; False if it has to be asked again."""
        if ticket.answered is None or ticket.withdrawn:
            return True
        if answer is None or answer.verdict is None:
            error = "no answer" if answer is None else answer.error or "no verdict"
            self._delay(ticket, error)
            return False
        try:
            ticket.answered(answer)
        except Exception:
            LOG.exception("The answer to %s was not taken", type(ticket.item).__name__)
        return True

    def _delay(self, ticket: Ticket, error: str) -> None:
        ticket.tries += 1
        ticket.due = self._clock() + self._backoff(ticket.tries)
        log_it = LOG.warning if ticket.tries == 1 else LOG.debug
        log_it(
            "The conductor could not take %s: %s; it is asked again",
            type(ticket.item).__name__,
            error,
            instance=getattr(ticket.item, "instance_uuid", "-"),
        )

    def _lost(self, batch: list[Ticket], error: Exception) -> None:
        """Keep what a failed report carried, since its fate is unknown, and wait a little."""
        reason = type(error).__name__.removesuffix("_Remote")
        if not self._failures:
            LOG.warning("The conductor does not answer (%s); reports are repeated", reason)
        else:
            LOG.debug("The conductor does not answer (%s)", reason)
        if not isinstance(error, exception.BusUnavailable):
            # It did answer: one of the items may be what it cannot bear. Smaller reports find
            # that item, which then waits while the others go on.
            self._limit = max(1, len(batch) // 2)
            if len(batch) == 1:
                self._delay(batch[0], reason)
        self._put_back(batch)
        with self._changed:
            self._set_back()

    def _set_back(self) -> None:
        self._failures += 1
        now = self._clock()
        self._quiet_until = now + self._backoff(self._failures)
        self._heartbeat_at = now

    def _put_back(self, tickets: list[Ticket]) -> None:
        with self._changed:
            self._waiting.put_back(tickets)

    def _backoff(self, tries: int) -> float:
        longest = min(MAX_BACKOFF, float(self.conf.report_interval))
        return min(longest, FIRST_BACKOFF * 2.0 ** min(tries - 1, 16)) * random.uniform(0.7, 1.0)

    def _unwelcome(self, answer: build.ReportAnswer) -> None:
        with self._changed:
            self._heartbeat_at = self._clock()
        if answer.retired:
            with self._changed:
                self._stopped = True
            self._on_retired()
        else:
            self._on_unknown()
