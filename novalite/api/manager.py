# SPDX-License-Identifier: Apache-2.0
"""The life of novalite-api: its listening socket, its server, and how it ends.

Made by ``novalite.cmd.api``; :func:`make_wsgi` is what :mod:`novalite.wsgi` uses too.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from oslo_config import cfg

from novalite import concurrency, exception, health, periodic, rpc
from novalite.api import app, healthz, policy, wakeup
from novalite.api import listener as listener_module
from novalite.compute import rpcapi as compute_rpcapi
from novalite.conductor import rpcapi as conductor_rpcapi
from novalite.db import engine
from novalite.image import client as image_client
from novalite.network import client as network_client
from novalite.scheduler import rpcapi as scheduler_rpcapi
from novalite.volume import client as volume_client

LOG = logging.getLogger(__name__)


class Running:
    """Wraps the application and counts the requests whose answer is not sent completely."""

    def __init__(self, application: Callable[[Any, Any], Iterable[bytes]]):
        self._application = application
        self._changed = threading.Condition()
        self._count = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> "_Answer":
        """Serve one request."""
        with self._changed:
            self._count += 1
        try:
            return _Answer(self._application(environ, start_response), self._done)
        except BaseException:
            self._done()
            raise

    def _done(self) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait(self, timeout: float) -> bool:
        """Wait until nothing runs, *timeout* seconds at most; tell whether that was reached."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, timeout)


class _Answer:
    """The body of an answer; the server closes it when it has been sent."""

    def __init__(self, body: Iterable[bytes], done: Callable[[], None]):
        self._body = body
        self._done = done

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)

    def close(self) -> None:
        close = getattr(self._body, "close", None)
        try:
            if close is not None:
                close()
        finally:
            self._done()


def make_wsgi(
    conf: cfg.ConfigOpts, bus: rpc.Bus, database: engine.Database, sender: rpc.Sender
) -> tuple[Any, policy.Policy]:
    """Return the WSGI application with its real clients, and its policy for reloads."""
    rules = policy.Policy(conf)
    computes = compute_rpcapi.ComputeAPI(bus)
    application = app.make_app(
        conf,
        database,
        images=image_client.ImageClient(conf),
        networks=network_client.NetworkClient(conf),
        volumes=volume_client.VolumeClient(conf),
        computes=computes,
        schedulers=scheduler_rpcapi.SchedulerAPI(bus),
        wakeup=wakeup.Wakeup(conductor_rpcapi.ConductorTaskAPI(bus), computes, sender),
        rules=rules,
    )
    return healthz.Healthz(application, healthz.checks(conf, database)), rules


class ApiManager:
    """Serves HTTP; ``novalite.manager.Manager`` for novalite-api."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        bus: rpc.Bus,
        database: engine.Database,
        fail: Callable[[str], None],
    ):
        """Put the parts together; nothing listens yet.

        :param fail: ends the process with exit code 1 and a reason
        """
        self.conf = conf
        self._fail = fail
        self._database = database
        self._sender = rpc.Sender("wake-ups")
        application, self._policy = make_wsgi(conf, bus, database, self._sender)
        self._running = Running(application)
        self._server: concurrency.WSGIServer | None = None
        self._stopping = False

    def init_host(self) -> None:
        """Listen and serve."""
        listener = self._listen()
        self.port = int(listener.getsockname()[1])
        self._server = concurrency.wsgi_server(
            listener,
            self._running,
            threads=int(self.conf.api.max_concurrent_requests),
            timeout=int(self.conf.api.client_socket_timeout),
        )
        concurrency.spawn(self._serve, name="http")
        LOG.info("Compute API listens on %s:%d", self.conf.osapi_compute_listen, self.port)

    def _listen(self) -> socket.socket:
        try:
            return listener_module.obtain(self.conf)
        except exception.ConfigurationError as error:
            self._fail(error.message())
            raise

    def _serve(self) -> None:
        if self._server is None:
            return
        try:
            self._server.serve()
        except Exception:
            LOG.exception("The HTTP server ended")
        if not self._stopping:
            self._fail("the HTTP server ended")

    def endpoints(self) -> list[tuple[str, list[Any]]]:
        """The API has no RPC server."""
        return []

    def periodic_tasks(self) -> list[periodic.Periodic]:
        """The API has no periodic work."""
        return []

    def reload(self) -> None:
        """Take over changed policy files; options are read when they are used."""
        self._policy.reload()

    def health_checks(self) -> list[health.Check]:
        """Database and bus, as /healthz has them."""
        return healthz.checks(self.conf, self._database)

    def drain(self, timeout: float) -> None:
        """Accept no more, and let running requests end."""
        end = time.monotonic() + timeout
        self._stopping = True
        if self._server is not None:
            # In a thread of its own: a server may wait here for idle connections. It has the time
            # to read the requests of connections that it has accepted already.
            stopping = concurrency.spawn(self._server.stop, name="http-stop")
            stopping.join(min(2 * concurrency.SETTLE, timeout))
        if not self._running.wait(max(0.0, end - time.monotonic())):
            LOG.warning("Requests still run after %d s; they are cut off", timeout)
        self._sender.stop(max(0.0, min(2.0, end - time.monotonic())))

    def stop(self) -> None:
        """Everything ended in :meth:`drain`."""
