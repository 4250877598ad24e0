# SPDX-License-Identifier: Apache-2.0
"""What a server takes from the broker, and how its answers leave; :mod:`novalite.rpc` uses it.

The library takes and acknowledges every message at once and queues it without a bound. Under more
work than a service can do it would then only work on calls whose callers have given up, be late
with every answer, be asked again, and never come out of it. So here a message is acknowledged when
it is taken, no more is taken than twice the threads can have in hand, and what has waited too long
is not carried out. What is not taken stays with the broker: a call is gone when its time is over
(:func:`novalite.broker.keep`), anything else may go to another process.

No thread of a server waits for an asker that is away (:class:`Answers`).
"""

import collections
import logging
import threading
import time
from typing import Any

import amqp
import kombu.exceptions
import oslo_messaging as messaging
from oslo_messaging._drivers import amqp as driver_amqp
from oslo_messaging._drivers import amqpdriver, base, common
from oslo_messaging.rpc import server as rpc_server

from novalite import counters

LOG = logging.getLogger(__name__)

# Tasks for each thread that may be in hand: one that runs, and one that waits to be next.
TASKS_PER_THREAD = 2
# Seconds between two looks at the connection, for heartbeats, while nothing can be taken.
_LOOK = 1.0
# Seconds to look for what is there already.
_GLANCE = 0.001
# Seconds between two tries to answer an asker whose queue is not there, and between two warnings.
_AGAIN = 0.25
_TELL_EVERY = 30.0
# Most answers that are kept for askers whose queue is not there.
_KEPT = 1000
_NO_QUEUE = (messaging.MessageUndeliverable, driver_amqp.AMQPDestinationNotFound)
_CONNECTION_ERRORS = (OSError, AttributeError, amqp.AMQPError, kombu.exceptions.KombuError)


def prepare() -> None:
    """Put this listener in the place of the library's; must come before the first server."""
    amqpdriver.RpcAMQPListener = Listener


class Gate:
    """Counts what is in hand and says when more may be taken.

    :param limit: most tasks in hand
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._count = 0
        self._opened = False
        self._changed = threading.Condition()
        # No more could be taken at some time since there was last nothing in hand.
        self.pressed = False

    def wait(self, timeout: float) -> bool:
        """Tell whether there is room, after at most *timeout* seconds."""
        with self._changed:
            if self._count >= self._limit:
                self.pressed = True
                self._changed.wait_for(self._may_go_on, timeout)
            return self._count < self._limit

    def is_full(self) -> bool:
        """Tell whether nothing more can be taken now."""
        with self._changed:
            full = self._count >= self._limit
            self.pressed |= full
            return full

    def enter(self) -> None:
        """Count one more task."""
        with self._changed:
            self._count += 1

    def leave(self) -> None:
        """Count one task less."""
        with self._changed:
            self._count -= 1
            if not self._count:
                self.pressed = False
            self._changed.notify_all()

    def open(self) -> None:
        """Let nobody wait any more for room that there is not."""
        with self._changed:
            self._opened = True
            self._changed.notify_all()

    def _may_go_on(self) -> bool:
        return self._opened or self._count < self._limit


class Answers:
    """Keeps the answers to askers whose queue is not there, and tries again for a while.

    After a restart of the broker an asker may be back later than who answers. The library would
    hold a thread of the server for each of them.

    :param patience: seconds after which an asker counts as gone
    """

    def __init__(self, patience: float):
        self._patience = patience
        self._kept: list[tuple[float, Incoming, Any, Any]] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def keep(self, incoming: "Incoming", reply: Any, failure: Any) -> None:
        """Try to send this answer again, from a thread of its own."""
        with self._changed:
            if len(self._kept) >= _KEPT:
                LOG.warning("Too many askers are away, dropped: %s", incoming.msg_id)
                return
            self._kept.append((time.monotonic() + self._patience, incoming, reply, failure))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="answers", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._kept)
            time.sleep(_AGAIN)
            try:
                self.try_again(time.monotonic())
            except Exception:
                LOG.exception("Answers could not be sent")

    def try_again(self, now: float) -> None:
        """Try each answer; one try for a queue that is not there is enough for all of its."""
        with self._changed:
            kept, self._kept = self._kept, []
        away: set[str] = set()
        for entry in kept:
            until, incoming, reply, failure = entry
            if incoming.reply_q not in away and incoming.try_reply(reply, failure):
                continue
            away.add(incoming.reply_q)
            if now >= until:
                incoming.give_up()
            else:
                with self._changed:
                    self._kept.append(entry)


class Incoming(amqpdriver.AMQPIncomingMessage):  # type: ignore[misc]
    """A message in hand."""

    # Seconds that it may wait here, None for a cast, and when it came in.
    limit: float | None = None
    came_at = 0.0

    def is_late(self) -> bool:
        """Tell whether its caller will have given up before it can be answered."""
        return self.limit is not None and time.monotonic() - self.came_at > self.limit

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        """Answer, or leave the answer to :class:`Answers` if the asker is away."""
        if self.orig_msg_id and not self.try_reply(reply, failure):
            self.listener.answers.keep(self, reply, failure)

    def try_reply(self, reply: Any, failure: Any) -> bool:
        """Answer; False if the asker's queue is not there."""
        try:
            with self.listener.driver._get_connection(common.PURPOSE_SEND) as connection:
                self._send_reply(connection, reply, failure)
        except _NO_QUEUE:
            return False
        return True

    def give_up(self) -> None:
        """Let the library know that the asker has gone; it says so in the log."""
        self._obsolete_reply_queues.add(self.reply_q, self.msg_id)


class Listener(amqpdriver.RpcAMQPListener):  # type: ignore[misc]
    """Takes messages as long as there is room for them."""

    message_cls = Incoming

    def __init__(self, driver: Any, conn: Any):
        super().__init__(driver, conn)
        self.gate = Gate(TASKS_PER_THREAD * driver.conf.executor_thread_pool_size)
        self.answers = Answers(driver.missing_destination_retry_timeout)
        # Sent by the broker and not acknowledged yet, with the time; prefetch bounds their number.
        self._held: collections.deque[tuple[float, Any]] = collections.deque()

    def __call__(self, message: Any) -> None:
        """Hold what the broker has sent; called by the thread that polls."""
        self._held.append((time.monotonic(), message))

    @base.batch_poll_helper  # type: ignore[untyped-decorator]
    def poll(self, timeout: float | None = None) -> Incoming | None:
        """Return the next message when there is room for it, None at the end."""
        while not self._shutdown.is_set():
            if self.gate.is_full():
                self._wait_for_room()
            elif not self._held:
                self._look(_LOOK)
            else:
                incoming = self._take()
                if incoming is not None:
                    return incoming
        self._give_back()
        self._shutoff.set()
        return None

    def stop(self) -> None:
        """Take no more; what is held goes back to the broker, for somebody else."""
        self._shutdown.set()
        self.gate.open()
        super().stop()

    def _wait_for_room(self) -> None:
        """Read what has come, so that the time it waits is known, and wait."""
        while self.gate.is_full() and self._look(_GLANCE):
            pass
        self.gate.wait(_LOOK)

    def _look(self, timeout: float) -> bool:
        """Read from the connection, whose heartbeats need that too; tell if a message came."""
        held = len(self._held)
        try:
            self.conn.consume(timeout=timeout)
        except common.Timeout:
            pass
        return len(self._held) > held

    def _take(self) -> Incoming | None:
        """Acknowledge the next message; None if it is a repetition or is not ours any more."""
        came_at, message = self._held.popleft()
        super().__call__(message)
        if not self.incoming:
            return None
        incoming: Incoming = self.incoming.pop(0)
        incoming.came_at = came_at
        kept = broker_time(message)
        if kept is not None:
            # The broker kept it for half of the caller's patience at most, and for no time at all
            # if we had nothing to do when it came.
            incoming.limit = kept * (0.5 if self.gate.pressed else 1.5)
        return incoming

    def _give_back(self) -> None:
        try:
            for consumer, tag in list(self.conn._consumers.items()):
                consumer.cancel(tag=tag)
            while self._held:
                self._held.popleft()[1].requeue()
        except _CONNECTION_ERRORS as error:
            # Then the broker takes them back by itself.
            LOG.debug("Messages could not be given back: %s", error)
        self._held.clear()


def broker_time(message: Any) -> float | None:
    """Return for how many seconds the broker was to keep a message, None if for ever."""
    text = message._raw_message.properties.get("expiration")
    return int(text) / 1000 if text else None


class Server(rpc_server.RPCServer):  # type: ignore[misc]
    """An RPC server that has a bounded number of tasks in hand."""

    _told_at = -_TELL_EVERY
    _late = 0

    def _create_listener(self) -> Any:
        adapter = super()._create_listener()
        self._gate: Gate = adapter._poll_style_listener.gate
        return adapter

    def _on_incoming(self, incoming: list[Incoming]) -> None:
        self._gate.enter()
        try:
            super()._on_incoming(incoming)
        except BaseException:
            self._gate.leave()
            raise

    def _process_incoming(self, incoming: list[Incoming]) -> None:
        try:
            if incoming[0].is_late():
                self._tell_late()
            else:
                super()._process_incoming(incoming)
        finally:
            self._gate.leave()

    def _tell_late(self) -> None:
        counters.add("late_calls")
        self._late += 1
        now = time.monotonic()
        if now - self._told_at >= _TELL_EVERY:
            LOG.warning(
                "%s: %d calls waited too long to be answered in time and were not carried out; "
                "this service has more to do than it can",
                self._target.topic,
                self._late,
            )
            self._told_at, self._late = now, 0
