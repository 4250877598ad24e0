# SPDX-License-Identifier: Apache-2.0
"""The one place that knows whether this process runs on green or on native threads.

Every entry point calls :func:`setup` before any other import, because eventlet must patch the
standard library first. All other code uses ``threading``, ``queue``, ``time`` and
``concurrent.futures`` and never asks which backend is under them, with two exceptions that live
here: serving WSGI and running a native thread next to a green hub.
"""

import configparser
import logging
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

BACKENDS = ("auto", "eventlet", "threading")
ENVIRONMENT = "NOVALITE_CONCURRENCY_BACKEND"
# Most bytes in the head of a request; a token may take 8 KiB of it.
MAX_HEADERS = 65536
# Read by every program when no file is named on its command line.
DEFAULT_FILE = "/etc/novalite/novalite.conf"
# What `auto` means; docs/operators.md says why.
AUTO = "eventlet"

_backend: str | None = None


class BackendError(Exception):
    """The wanted backend cannot be had; the text is one line for the user."""


def setup(argv: Iterable[str] | None = None) -> str:
    """Choose the backend and, for eventlet, patch the standard library.

    Must run before any other import of an entry point. The choice is read from the environment
    variable ``NOVALITE_CONCURRENCY_BACKEND`` or else from ``[DEFAULT] concurrency_backend`` of the
    configuration files named in *argv*; oslo.config cannot be asked because it may not be
    imported yet. Calling it again does nothing.

    :returns: ``eventlet`` or ``threading``
    :raises BackendError: for an unknown value
    """
    global _backend
    if _backend is None:
        _backend = wanted(sys.argv[1:] if argv is None else list(argv))
        hush()
        if _backend == "eventlet":
            # psycopg 3 waits in C unless it is told to wait through select().
            os.environ.setdefault("PSYCOPG_WAIT_FUNC", "wait_selector")
            # A green DNS resolver would bypass /etc/hosts rules and cost an import.
            os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
            import eventlet

            eventlet.monkey_patch()
    return _backend


def hush() -> None:
    """Keep to ourselves what libraries say at their import about the end of eventlet."""
    warnings.filterwarnings("ignore", message=r"(?s).*[Ee]ventlet")
    warnings.filterwarnings("ignore", module=r"eventlet.*")
    warnings.filterwarnings("ignore", module=r"oslo_service.*")


def wanted(argv: list[str]) -> str:
    """Return the backend that the environment or the configuration files ask for.

    :raises BackendError: naming the source and the allowed values
    """
    source, value = f"environment variable {ENVIRONMENT}", os.environ.get(ENVIRONMENT)
    if not value:
        source, value = _from_files(argv)
    if value not in BACKENDS:
        raise BackendError(
            f"{source}: concurrency_backend = {value!r} is not allowed; "
            f"allowed: {', '.join(BACKENDS)}"
        )
    return AUTO if value == "auto" else value


def _from_files(argv: list[str]) -> tuple[str, str]:
    source, value = "default", "auto"
    for path in _config_files(argv):
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # oslo.config reports a broken file, with its line, when it parses it
        found = parser.defaults().get("concurrency_backend")
        if found is not None:
            source, value = f"{path}: [DEFAULT]", found.strip()
    return source, value


def _config_files(argv: list[str]) -> list[Path]:
    files: list[Path] = []
    for index, word in enumerate(argv):
        option, _, value = word.partition("=")
        if option in ("--config-file", "--config-dir") and not value:
            value = argv[index + 1] if index + 1 < len(argv) else ""
        if not value:
            continue
        if option == "--config-file":
            files.append(Path(value))
        elif option == "--config-dir":
            files.extend(sorted(Path(value).glob("*.conf")))
    return files or [Path(DEFAULT_FILE)]


def backend() -> str:
    """Return the backend in use; ``threading`` when nothing has been set up (tests, tools)."""
    return _backend or "threading"


def check(configured: str) -> None:
    """Compare the early choice with what oslo.config read.

    :raises BackendError: if the files say something else than what is in force and the
        environment did not override them
    """
    if os.environ.get(ENVIRONMENT):
        return
    value = AUTO if configured == "auto" else configured
    if _backend is not None and value != _backend:
        raise BackendError(
            f"concurrency_backend: the process started with {_backend} but the configuration "
            f"says {configured}; name the option in a file given by --config-file"
        )


def spawn(target: Callable[..., Any], *args: Any, name: str | None = None) -> threading.Thread:
    """Start *target* in a daemon thread of the backend and return the thread."""
    thread = threading.Thread(target=target, args=args, name=name, daemon=True)
    thread.start()
    return thread


def wsgi_server(
    listener: socket.socket, app: Any, *, threads: int, timeout: int = 60
) -> "WSGIServer":
    """Return a server for *app* on the listening socket, for the backend in use.

    :param threads: most requests handled at one time
    :param timeout: seconds after which a silent connection is closed
    """
    if backend() == "eventlet":
        return _EventletServer(listener, app, threads, timeout)
    return _CherootServer(listener, app, threads, timeout)


class WSGIServer:
    """Serves one WSGI application until told to stop."""

    def serve(self) -> None:
        """Serve in the calling thread until :meth:`stop`."""
        raise RuntimeError("use wsgi_server()")

    def stop(self) -> None:
        """Accept no more, close this process's listening socket, let running requests finish.

        What has connected may still hand in its first request within a second.
        """
        raise RuntimeError("use wsgi_server()")


# Seconds that a connection which was accepted just before the end has for its first request.
SETTLE = 1.0


class _Shut(Exception):
    """Thrown into the wait for the next connection."""


class _Gate:
    """A listening socket for eventlet's server that can be shut without closing anything.

    eventlet itself closes what it has accepted and not read yet: a request that is on its way.
    """

    def __init__(self, listener: socket.socket):
        import eventlet.event

        self._listener = listener
        self._never = eventlet.event.Event()
        self._waiting = False
        self._shut = False
        # Accepted connections whose first request has not been read.
        self.fresh = 0

    def accept(self) -> Any:
        """Wait for the next connection; for ever once it is shut."""
        if not self._shut:
            self._waiting = True
            try:
                accepted = self._listener.accept()
                self.fresh += 1
                return accepted
            except _Shut:
                pass
            finally:
                self._waiting = False
        return self._never.wait()

    def shut(self, accepting: Any) -> None:
        """Let the green thread *accepting* accept no more."""
        import eventlet

        self._shut = True
        if self._waiting:
            eventlet.kill(accepting, _Shut)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)


class _EventletServer(WSGIServer):
    def __init__(self, listener: socket.socket, app: Any, threads: int, timeout: int):
        import eventlet
        from eventlet import wsgi

        gate = _Gate(listener)

        class Protocol(wsgi.HttpProtocol):  # type: ignore[misc]
            is_fresh = True

            def setup(self) -> None:
                """Keep a new connection from being closed as an idle one."""
                super().setup()
                self.conn_state[2] = wsgi.STATE_REQUEST

            def finish(self) -> None:
                self.settle()
                super().finish()

            def settle(self) -> None:
                """Note that the first request is here, or never will be."""
                gate.fresh -= self.is_fresh
                self.is_fresh = False

            def get_environ(self) -> Any:
                """Name the version that the client spoke; eventlet always says HTTP/1.0."""
                self.settle()
                environ = super().get_environ()
                environ["SERVER_PROTOCOL"] = self.request_version
                return environ

        self._wsgi = wsgi
        self._protocol = Protocol
        self._eventlet = eventlet
        self._pool = eventlet.GreenPool(threads)
        self._gate = gate
        self._app = app
        self._timeout = timeout
        self._thread: Any = None

    def serve(self) -> None:
        quiet = logging.getLogger("novalite.wsgi.eventlet")
        quiet.setLevel(logging.ERROR)
        self._thread = self._eventlet.spawn(
            self._wsgi.server,
            self._gate,
            self._app,
            protocol=self._protocol,
            custom_pool=self._pool,
            log=quiet,
            log_output=False,
            debug=False,
            keepalive=True,
            socket_timeout=self._timeout,
        )
        try:
            self._thread.wait()
        except self._eventlet.greenlet.GreenletExit:
            pass
        self._pool.waitall()

    def stop(self) -> None:
        if self._thread is None:
            return
        self._gate.shut(self._thread)
        end = time.monotonic() + SETTLE
        while self._gate.fresh > 0 and time.monotonic() < end:
            time.sleep(0.005)
        self._pool.resize(0)
        self._thread.kill()


class _CherootServer(WSGIServer):
    def __init__(self, listener: socket.socket, app: Any, threads: int, timeout: int):
        from novalite import cheroot_server

        self._server = cheroot_server.Server(
            listener,
            app,
            numthreads=min(threads, 10),
            max=threads,
            # It listens anew, and five waiting connections are too few for a burst of clients.
            request_queue_size=socket.SOMAXCONN,
            timeout=timeout,
            shutdown_timeout=60,
        )
        # Without it a head may grow until memory ends; eventlet has about the same bound.
        self._server.max_request_header_size = MAX_HEADERS

    def serve(self) -> None:
        self._server.prepare()
        # Another process that shares the socket may be faster; nobody waits for the next client.
        self._server.socket.setblocking(False)
        self._server.serve()

    def stop(self) -> None:
        self._server.stop()
