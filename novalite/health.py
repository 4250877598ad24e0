# SPDX-License-Identifier: Apache-2.0
"""Whether this process can do its work: checks, a bounded answer, a unix socket, the watchdog.

Every service tests what it needs in the way in which it uses it: the bus by a call through its own
queue, the database by a statement on a connection of its own pool. The answer is JSON without
hosts, users or texts of libraries, since it is given to anybody who asks. Nothing runs while nobody
asks, except under systemd's watchdog.

The watchdog is told that all is well as long as the process itself is not at fault. If the broker
or the database is away, a restart would mend nothing: it would only lose what is in hand and let
all services come back at once. So when a check fails, the same thing is tried by a way of its own,
a new connection. Only if that works, twice in a row, is this process the one that is broken.
"""

import json
import logging
import os
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import client, server
from pathlib import Path
from typing import Any

from novalite import exception

LOG = logging.getLogger(__name__)

# Seconds within which an answer is given, and for which it holds.
TIMEOUT = 2.0
CACHED = 1.0
# Looks in a row that must find the process itself at fault.
_LOOKS = 2
# A unix socket's address has 108 bytes, the last one of which is zero.
_LONGEST = 107

OK, DEGRADED, FAILING, STARTING = "ok", "degraded", "failing", "starting"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a service uses.

    :param use: uses it as the service does; raises if it does not work
    :param direct: uses it by a new connection; raises if the thing itself is away
    :param needed: the service can do nothing of use without it
    """

    name: str
    use: Callable[[], None]
    direct: Callable[[], None]
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """What a check found; ``reason`` is empty if all is well."""

    reason: str
    milliseconds: float

    def body(self) -> dict[str, Any]:
        """Return it for a reader."""
        if self.reason:
            return {"status": FAILING, "reason": self.reason}
        return {"status": OK, "milliseconds": self.milliseconds}


@dataclass(frozen=True, slots=True)
class Report:
    """The state of the process with its checks."""

    status: str
    checks: dict[str, Result]

    @property
    def http_status(self) -> int:
        """200 if requests are welcome, else 503."""
        return 200 if self.status in (OK, DEGRADED) else 503

    def body(self) -> dict[str, Any]:
        """Return it for a reader."""
        checks = {name: result.body() for name, result in self.checks.items()}
        return {"status": self.status, "checks": checks}


class _Probe:
    """Runs one function in a thread of its own, never twice at the same time."""

    def __init__(self, name: str, work: Callable[[], None]):
        self._name = name
        self._work = work
        self._running: _Run | None = None

    def start(self) -> "_Run":
        """Run it; a run that still waits for something is joined."""
        if self._running is None or self._running.ended.is_set():
            self._running = _Run()
            thread = threading.Thread(
                target=self._running.go, args=(self._work,), name=self._name, daemon=True
            )
            thread.start()
        return self._running


class _Run:
    """One run of a probe."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self._began = time.monotonic()
        self._result: Result | None = None

    def go(self, work: Callable[[], None]) -> None:
        reason = ""
        try:
            work()
        except exception.Unavailable:
            reason = "unavailable"
        except Exception as error:
            LOG.debug("A check of this process failed", exc_info=True)
            reason = type(error).__name__
        took = round((time.monotonic() - self._began) * 1000, 1)
        self._result = Result(reason, took)
        self.ended.set()

    def wait(self, end: float) -> Result:
        """Return its result, at the moment *end* at the latest."""
        self.ended.wait(max(0.0, end - time.monotonic()))
        late = Result(f"no answer within {TIMEOUT:g} s", TIMEOUT * 1000)
        return self._result or late


class Health:
    """The checks of one process. Any thread may ask; each check runs once at a time."""

    def __init__(self, checks: Sequence[Check], clock: Callable[[], float] = time.monotonic):
        self._checks = tuple(checks)
        self._clock = clock
        self._used = [_Probe(f"check-{check.name}", check.use) for check in checks]
        self._direct = [_Probe(f"direct-{check.name}", check.direct) for check in checks]
        self._lock = threading.Lock()
        self._report: Report | None = None
        self._made_at = 0.0

    def report(self) -> Report:
        """Return the state within :data:`TIMEOUT` seconds; what is a second old is good enough."""
        with self._lock:
            if self._report is None or self._clock() - self._made_at >= CACHED:
                self._report = self._look()
                self._made_at = self._clock()
            return self._report

    def _look(self) -> Report:
        results = _run(self._used)
        failing = [
            check for check, result in zip(self._checks, results, strict=True) if result.reason
        ]
        if any(check.needed for check in failing):
            status = FAILING
        else:
            status = DEGRADED if failing else OK
        names = [check.name for check in self._checks]
        return Report(status, dict(zip(names, results, strict=True)))

    def at_fault(self) -> list[str]:
        """Return the checks that fail although what they test works by a new connection."""
        results = self.report().checks
        failing = [
            probe
            for probe, check in zip(self._direct, self._checks, strict=True)
            if results[check.name].reason
        ]
        names = [check.name for check in self._checks if results[check.name].reason]
        found = zip(names, _run(failing), strict=True)
        return [name for name, result in found if not result.reason]


def _run(probes: Sequence[_Probe]) -> list[Result]:
    """Run probes side by side."""
    end = time.monotonic() + TIMEOUT
    runs = [probe.start() for probe in probes]
    return [run.wait(end) for run in runs]


class Watchdog:
    """Decides whether systemd is told that all is well."""

    def __init__(self, health: Health):
        self._health = health
        self._looks = 0

    def look(self) -> None:
        """Look whose fault a failing check is; from a thread that may wait some seconds."""
        names = self._health.at_fault()
        self._looks = self._looks + 1 if names else 0
        if self._looks >= _LOOKS:
            LOG.error(
                "This process cannot use its %s although a new connection works; systemd is left "
                "to restart it",
                " and ".join(names),
            )

    def is_well(self) -> bool:
        """Tell whether this process is not at fault."""
        return self._looks < _LOOKS


class Listener:
    """Answers ``GET /healthz`` on a unix socket of mode 0600, from the start to the end.

    :param ask: returns the report
    """

    def __init__(self, path: Path, ask: Callable[[], Report]):
        self.path = path
        self._server = _bind(path, _handler(ask))
        self._inode = path.stat().st_ino

    def start(self) -> None:
        """Serve from now on."""
        threading.Thread(target=self._serve, name="health", daemon=True).start()

    def _serve(self) -> None:
        # Not serve_forever(): its selector would stop every green thread.
        while True:
            try:
                self._server.process_request(*self._server.get_request())
            except OSError:
                return  # closed

    def close(self) -> None:
        """Take the file away, unless a successor has put its own there."""
        self._server.server_close()
        try:
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()
        except FileNotFoundError:
            LOG.debug("The health socket has gone already")


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOG.debug("Somebody asked for the health and did not wait")


def _handler(ask: Callable[[], Report]) -> type[server.BaseHTTPRequestHandler]:
    class Handler(server.BaseHTTPRequestHandler):
        timeout = 5.0

        def do_GET(self) -> None:
            report = ask()
            body = json.dumps(report.body()).encode() + b"\n"
            self.send_response(report.http_status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: a monitor asks again and again."""

    return Handler


def default_path(state_path: str, program: str, host: str) -> Path:
    """Return where the socket is unless ``health_socket`` says otherwise."""
    return Path(state_path) / f"{program}-{host.replace('/', '_')}.sock"


def _bind(path: Path, handler: type[server.BaseHTTPRequestHandler]) -> _Server:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whoever had it before is dead, or a sibling that is being replaced.
    path.unlink(missing_ok=True)
    with _Address(path) as address:
        made = _Server(address, handler)
    path.chmod(0o600)
    return made


def connect(path: Path, timeout: float) -> socket.socket:
    """Return a connection to a health socket.

    :raises OSError: nobody listens there
    """
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    channel.settimeout(timeout)
    try:
        with _Address(path) as address:
            channel.connect(address)
    except BaseException:
        channel.close()
        raise
    return channel


def ask(path: Path, timeout: float = TIMEOUT + 1.0) -> dict[str, Any]:
    """Return what a process answers on its health socket.

    :raises OSError: nobody listens there, or not in *timeout* seconds
    """
    link = _Link(path, timeout)
    try:
        link.request("GET", "/healthz")
        answer: dict[str, Any] = json.loads(link.getresponse().read())
    except (client.HTTPException, ValueError) as error:
        raise OSError(f"no answer: {error}") from error
    finally:
        link.close()
    return answer


class _Link(client.HTTPConnection):
    """HTTP on a unix socket."""

    def __init__(self, path: Path, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = connect(self._path, self.timeout or TIMEOUT)


class _Address:
    """A socket's path in a form that is short enough, while inside ``with``."""

    def __init__(self, path: Path):
        self._path = path
        self._directory: int | None = None

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= _LONGEST:
            return str(self._path)
        self._directory = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._directory}/{self._path.name}"

    def __exit__(self, *_error: object) -> None:
        if self._directory is not None:
            os.close(self._directory)
