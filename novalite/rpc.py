# SPDX-License-Identifier: Apache-2.0
"""The bus: transport, serializer, clients and servers on oslo.messaging.

A process makes one :class:`Bus` after its options are parsed and
passes it on. Three rules live here: contexts and objects are serialized in one place only; a cast
never waits for the broker (:class:`Sender`); a call always has an end, and nobody works on it
after that (:mod:`novalite.intake`).
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import kombu.exceptions
import oslo_messaging as messaging
from oslo_config import cfg
from oslo_messaging import exceptions as messaging_exceptions

from novalite import broker, exception, intake
from novalite import context as context_module
from novalite.objects import base

LOG = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

EXMODS = ["novalite.exception"]
_SERVER = "oslo_messaging.rpc.server"
_DRIVER = "oslo_messaging._drivers.amqpdriver"
# Seconds between two lines about one method that the other side does not speak, and the last ones.
_TELL_EVERY = 30.0
_told: dict[str, float] = {}
# The part of a caller's patience for which the broker keeps its call: the rest is for the work on
# it and for the answer. Without that a service with too much to do would take the oldest calls
# first, each a moment before its caller gives up, and be late with every answer.
_KEEP = 0.5
_ECHO: dict[str, str] = {"namespace": "health", "version": "1.0"}


class ContextSerializer(messaging.Serializer):  # type: ignore[misc]
    """Objects and contexts to JSON primitives and back."""

    def serialize_entity(self, context: Any, entity: Any) -> Any:
        """Encode an argument or a result."""
        return base.pack(entity)

    def deserialize_entity(self, context: Any, entity: Any) -> Any:
        """Decode an argument or a result."""
        return base.decode(entity)

    def serialize_context(self, context: context_module.RequestContext) -> dict[str, Any]:
        """Encode the context; it never carries a token."""
        return context.to_wire()

    def deserialize_context(self, context: dict[str, Any]) -> context_module.RequestContext:
        """Decode the context."""
        return context_module.from_wire(context)


class Bus:
    """One process's connection to the message bus."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.conf = conf
        _prepare()
        self.transport = messaging.get_rpc_transport(
            conf, url=broker.url(conf), allowed_remote_exmods=EXMODS
        )
        driver = self.transport._driver
        self._late = LateAnswers(lambda: str(driver._reply_q))
        logging.getLogger(_DRIVER).addFilter(self._late)

    def client(self, target: messaging.Target, service: str) -> Any:
        """Return an RPC client for *target* whose publishing gives up at once without a broker.

        :param service: whose ``[upgrade_levels]`` caps the version that is sent
        """
        return messaging.get_rpc_client(
            self.transport,
            target,
            version_cap=self.conf.upgrade_levels[service],
            serializer=ContextSerializer(),
            retry=0,
        )

    def server(self, target: messaging.Target, endpoints: list[Any]) -> Any:
        """Return an RPC server; the executor follows from the thread backend."""
        return messaging.get_rpc_server(
            self.transport,
            target,
            [*endpoints, Echo()],
            serializer=ContextSerializer(),
            access_policy=messaging.ExplicitRPCAccessPolicy,
            server_cls=intake.Server,
        )

    def echo(self, topic: str, timeout: float) -> None:
        """Call this host's own queue of *topic*: out, through the broker, and back.

        :raises exception.BusUnavailable: no answer in *timeout* seconds
        """
        target = messaging.Target(topic=topic, server=self.conf.host, **_ECHO)
        client = messaging.get_rpc_client(
            self.transport, target, serializer=ContextSerializer(), retry=0
        )
        call(client, context_module.service_context(), "ping", timeout)

    def close(self) -> None:
        """Close all connections."""
        self.transport.cleanup()
        logging.getLogger(_DRIVER).removeFilter(self._late)


def expose(method: F) -> F:
    """Decorator of an endpoint's method: only methods that carry it can be called over the bus."""
    exposed: F = messaging.expose(method)
    return exposed


class Echo:
    """Answers :meth:`Bus.echo` in every RPC server."""

    target = messaging.Target(**_ECHO)

    @expose
    def ping(self, context: context_module.RequestContext) -> str:
        """Answer ``pong``."""
        return "pong"


def call(client: Any, context: Any, method: str, timeout: float, **kwargs: Any) -> Any:
    """Call and wait at most *timeout* seconds.

    :raises exception.BusUnavailable: broker or server did not answer; whether the method ran is
        unknown
    """
    prepared = client.prepare(timeout=timeout)
    patience = getattr(prepared, "call_monitor_timeout", None) or timeout
    try:
        with broker.keep(_KEEP * min(patience, timeout)):
            return prepared.call(context, method, **kwargs)
    except (
        messaging_exceptions.MessagingTimeout,
        messaging_exceptions.MessageDeliveryFailure,
        messaging_exceptions.MessageUndeliverable,
        # The library lets this one through when the broker goes while a connection is made.
        kombu.exceptions.OperationalError,
    ) as error:
        raise exception.BusUnavailable() from error
    except messaging.RemoteError as error:
        if error.exc_type != "UnsupportedVersion":
            raise
        _tell_mismatch(client, method)
        raise exception.VersionUnsupported() from None


def can_send(client: Any, version: str) -> bool:
    """Tell whether [upgrade_levels] lets this version be sent."""
    return bool(client.can_send_version(version))


def _tell_mismatch(client: Any, method: str) -> None:
    """Log, twice a minute at most, what an operator has to do."""
    target, moment = client.target, time.monotonic()
    if moment - _told.get(method, -_TELL_EVERY) < _TELL_EVERY:
        return
    _told[method] = moment
    topic = str(target.topic).removesuffix("_tasks")
    LOG.error(
        "A novalite-%s does not speak RPC version %s, which %s needs: upgrade it first, or set "
        "[upgrade_levels] %s of this service to the version of the oldest one",
        topic,
        target.version,
        method,
        topic,
    )


class Words(logging.Filter):
    """Words what the library takes for errors of this process and are none: on one line each."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record if it is one of them; always let it pass."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, messaging.UnsupportedVersion):
            record.msg = (
                f"A message was refused: {error} It comes from a newer service; upgrade this one, "
                "or set [upgrade_levels] there"
            )
        elif isinstance(error, messaging_exceptions.MessageUndeliverable):
            record.msg = "An answer was thrown away: who asked has gone"
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        elif isinstance(error, exception.Unavailable):
            record.msg = f"A message could not be handled now: {error.message()}"
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        else:
            return True
        record.args, record.exc_info, record.exc_text = (), None, None
        return True


class LateAnswers(logging.Filter):
    """Words the library's line about an answer that nobody waits for any more.

    :param queue: returns the name of the queue in which answers arrive
    """

    def __init__(self, queue: Callable[[], str]):
        super().__init__()
        self._queue = queue

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record if it is that line; always let it pass."""
        if record.msg == "No calling threads waiting for msg_id : %s":
            record.msg = "The answer to %s in %s came too late and is thrown away"
            record.args = (*(record.args or ()), self._queue())
        return True


def _prepare() -> None:
    intake.prepare()
    logger = logging.getLogger(_SERVER)
    if not any(isinstance(present, Words) for present in logger.filters):
        logger.addFilter(Words())


class Sender:
    """Sends casts from a thread of its own, so that no request waits for the bus.

    Bounded: when *limit* casts wait, a new one is dropped with a warning; the row behind it is
    found by recovery. A cast that fails is dropped likewise.
    """

    def __init__(self, name: str, limit: int = 10000):
        self.name = name
        self._queue: queue.Queue[tuple[str, Callable[[], None]] | None] = queue.Queue(limit)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def send(self, what: str, cast: Callable[[], None]) -> None:
        """Queue one cast; *what* names it in the log."""
        try:
            self._queue.put_nowait((what, cast))
        except queue.Full:
            LOG.warning("%s: too many messages wait for the bus, dropped: %s", self.name, what)

    def stop(self, timeout: float) -> None:
        """Send what is queued, for *timeout* seconds at most."""
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            entry = self._queue.get()
            if entry is None:
                return
            what, cast = entry
            try:
                cast()
            except Exception as error:
                LOG.warning(
                    "%s: not sent, recovery will drive it: %s (%s)",
                    self.name,
                    what,
                    type(error).__name__,
                )
