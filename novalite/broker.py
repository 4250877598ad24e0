# SPDX-License-Identifier: Apache-2.0
"""What the broker says to a login, in words for an operator, and without a busy loop.

To oslo.messaging a refused login is an error that cannot be mended: its threads try again at once
and for ever, thousands of times a second, and the log says "unreachable". :class:`Transport` turns
a refusal into a connection error like any other, so that the library's own growing delay applies,
and :class:`Words` words the log line. :func:`handshake` is for the start of a process, before the
library is used.

The library also writes names and passwords into a URL in a way that breaks on ``/`` and, in a
virtual host, on ``@`` and ``#``. So it gets them in hexadecimal from :func:`url`, and
:class:`Transport` turns them back at the moment of the login; no log of a library can hold them.
"""

import logging
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import amqp
import kombu.transport
import oslo_messaging as messaging
from kombu import connection as kombu_connection
from kombu.transport import pyamqp
from oslo_config import cfg
from oslo_messaging._drivers import amqpdriver

from novalite import exception

LOG = logging.getLogger(__name__)

# Seconds for one host; a broker on the same network answers in a few milliseconds.
_TIMEOUT = 2.0
_PORT = 5672
_DRIVER = "oslo.messaging._drivers.impl_rabbit"
_REFUSED = re.compile(
    r"(access refused for user .*?)(?:\. Trying again in (\d+) seconds\.|$)", re.S
)


# Before a name or a password in hexadecimal.
_HEX = "hex-"
# After each message the library looks for notifications to acknowledge, again after 1, 2, 4 ... ms:
# ten idle rounds a message. We have none (calls and casts are acknowledged when they come in), so
# the first look is after so many seconds.
_LOOK = 0.25


class Refused(ConnectionError):
    """The broker is there and refuses user, password or virtual host."""


class _Thread(threading.local):
    # Seconds for which the broker is to keep what this thread sends now.
    keep: float | None = None


_thread = _Thread()


@contextmanager
def keep(seconds: float) -> Iterator[None]:
    """Let the broker keep calls that this thread sends in the block no longer than so."""
    _thread.keep = seconds
    try:
        yield
    finally:
        _thread.keep = None


class Channel(pyamqp.Channel):
    """kombu's channel with an end to messages that is not the end of the caller's patience."""

    def prepare_message(
        self,
        body: Any,
        priority: Any = None,
        content_type: Any = None,
        content_encoding: Any = None,
        headers: Any = None,
        properties: dict[str, Any] | None = None,
        _Message: Any = amqp.Message,
    ) -> Any:
        """Make a message; what has no end, as a cast, gets none."""
        if _thread.keep is not None and properties and properties.get("expiration"):
            milliseconds = max(1, int(_thread.keep * 1000))
            properties = {**properties, "expiration": str(milliseconds)}
        make: Any = super().prepare_message
        return make(body, priority, content_type, content_encoding, headers, properties, _Message)


class Connection(pyamqp.Connection):
    """kombu's connection with such channels."""

    Channel = Channel


class Transport(pyamqp.Transport):
    """kombu's AMQP transport with refusals that may be tried again later."""

    Connection = Connection

    def establish_connection(self) -> Any:
        """Connect and log in.

        :raises Refused: the broker does not accept the login
        """
        client: Any = self.client
        client.userid, client.password = _plain(client.userid), _plain(client.password)
        connect: Any = super().establish_connection
        try:
            return connect()
        except (amqp.AccessRefused, amqp.NotAllowed) as error:
            address = f"{client.hostname}:{client.port or _PORT}"
            reason = str(error.reply_text).partition(" - ")[2] or error.reply_text
            text = f"access refused for user {client.userid} at {address}: {reason}"
            raise Refused(text.rstrip(".")) from None


class Words(logging.Filter):
    """Takes the word "unreachable" out of the library's line about a refusal."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record if it tells of a refusal; always let it pass."""
        found = _REFUSED.search(record.getMessage())
        if found is not None:
            words, seconds = found.groups()
            record.msg = f"{words}; trying again in {seconds} s" if seconds else words
            record.args = ()
        return True


def url(conf: cfg.ConfigOpts) -> messaging.TransportURL:
    """Return transport_url in the form for the library, after :func:`prepare`."""
    prepare()
    made = messaging.TransportURL.parse(conf)
    made.virtual_host = urllib.parse.quote(made.virtual_host or "/", safe="")
    if not made.hosts:
        made.hosts.append(messaging.TransportHost("localhost", _PORT, "guest", "guest"))
    for host in made.hosts:
        host.username = _HEX + (host.username or "guest").encode().hex()
        host.password = _HEX + (host.password or "guest").encode().hex()
    return made


def _plain(text: str) -> str:
    return bytes.fromhex(text.removeprefix(_HEX)).decode() if text.startswith(_HEX) else text


def prepare() -> None:
    """Put both between the library and the broker; must come before the first connection."""
    kombu.transport.TRANSPORT_ALIASES["amqp"] = f"{__name__}:Transport"
    amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN = _LOOK
    logger = logging.getLogger(_DRIVER)
    if not any(isinstance(present, Words) for present in logger.filters):
        logger.addFilter(Words())


def handshake(conf: cfg.ConfigOpts) -> bool:
    """Log in once and out again; tell whether a broker is there.

    :raises Refused: the first broker that answers refuses the login
    """
    target = url(conf)
    reasons = []
    for host in target.hosts:
        address = f"{host.hostname}:{host.port or _PORT}"
        began = time.monotonic()
        reason = _try(conf, target, host)
        if reason is None:
            took = time.monotonic() - began
            LOG.info("The broker at %s answers (%.0f ms)", address, took * 1000)
            return True
        reasons.append(f"{address}: {reason}")
    LOG.warning("No broker can be reached yet; trying on (%s)", "; ".join(reasons))
    return False


def round_trip(conf: cfg.ConfigOpts, timeout: float) -> None:
    """Send a message through a queue of its own by a new connection; nothing is left behind.

    A broker that only lets in, because it has run out of memory or disk, does not pass.

    :raises exception.BusUnavailable: no broker of transport_url did it in *timeout* seconds
    """
    target = url(conf)
    for host in target.hosts:
        connection = _connection(conf, target, host)
        try:
            _send_and_get(connection.transport.establish_connection(), timeout)
            return
        except (OSError, *connection.connection_errors, *connection.channel_errors) as error:
            LOG.debug("A new connection to the broker does not work: %s", error)
        finally:
            connection.release()
    raise exception.BusUnavailable()


def _send_and_get(link: Any, timeout: float) -> None:
    arrived: list[Any] = []
    try:
        channel = link.channel()
        queue = channel.queue_declare(exclusive=True, auto_delete=True).queue
        channel.basic_consume(queue, no_ack=True, callback=arrived.append)
        channel.basic_publish(amqp.Message("ping"), routing_key=queue)
        end = time.monotonic() + timeout
        while not arrived:
            link.drain_events(timeout=max(0.01, end - time.monotonic()))
    finally:
        link.collect()


def _try(
    conf: cfg.ConfigOpts, target: messaging.TransportURL, host: messaging.TransportHost
) -> str | None:
    """Return None if the login works, or why the broker cannot be reached."""
    connection = _connection(conf, target, host)
    try:
        # kombu's own connect() sleeps between tries; this is one try.
        connection.transport.establish_connection().close()
    except Refused:
        raise
    except (OSError, *connection.connection_errors, *connection.channel_errors) as error:
        return str(error) or type(error).__name__
    finally:
        connection.release()
    return None


def _connection(
    conf: cfg.ConfigOpts, target: messaging.TransportURL, host: messaging.TransportHost
) -> Any:
    """Return a connection to one host that is not made yet."""
    make: Any = kombu_connection.Connection
    return make(
        transport="amqp",
        hostname=host.hostname,
        port=host.port or _PORT,
        userid=host.username,
        password=host.password,
        virtual_host=urllib.parse.unquote(target.virtual_host),
        login_method=conf.oslo_messaging_rabbit.rabbit_login_method,
        connect_timeout=_TIMEOUT,
        ssl=_ssl(conf, str(host.hostname)),
    )


def _ssl(conf: cfg.ConfigOpts, hostname: str) -> dict[str, Any] | bool:
    rabbit = conf.oslo_messaging_rabbit
    if not rabbit.ssl:
        return False
    options = {
        "ca_certs": rabbit.ssl_ca_file,
        "certfile": rabbit.ssl_cert_file,
        "keyfile": rabbit.ssl_key_file,
        "server_hostname": hostname,
    }
    return {name: value for name, value in options.items() if value}
