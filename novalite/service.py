# SPDX-License-Identifier: Apache-2.0
"""The life of a service process: options, logging, RPC servers, signals, systemd.

SIGTERM stops taking work, lets what runs finish within graceful_shutdown_timeout and exits 0.
SIGINT stops at once. SIGHUP reads the options again, SIGUSR2 logs the process's counters. With
NOTIFY_SOCKET in the environment systemd hears READY, STATUS, RELOADING, STOPPING and WATCHDOG.
"""

import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg

from novalite import counters, periodic, rpc
from novalite import manager as manager_module

LOG = logging.getLogger(__name__)


class Notifier:
    """Speaks systemd's notify protocol; does nothing when nobody listens."""

    def __init__(self, environ: dict[str, str] | None = None):
        environ = dict(os.environ) if environ is None else environ
        self._address = environ.get("NOTIFY_SOCKET", "")
        usec = environ.get("WATCHDOG_USEC", "")
        self.watchdog = int(usec) / 1e6 if usec.isdigit() else 0.0

    def send(self, *lines: str) -> None:
        """Send the state lines, for example ``READY=1``."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                channel.sendto("\n".join(lines).encode(), address)
        except (ConnectionRefusedError, FileNotFoundError):
            LOG.debug("Whoever wanted to be told %s has gone", lines[0])
        except OSError as error:
            LOG.warning("systemd could not be told %s: %s", lines[0], error)


class Signals:
    """Turns signals into events that the main thread waits for.

    A handler only sets a flag: anything more could run in the middle of a lock.
    """

    def __init__(self) -> None:
        self._pending: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
            signal.signal(number, self._note)

    def _note(self, number: int, _frame: Any) -> None:
        self._pending.append(number)

    def wait(self, timeout: float) -> int | None:
        """Return the next signal, or None after *timeout* seconds."""
        end = time.monotonic() + timeout
        while not self._pending:
            left = end - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(left, 0.1))
        return self._pending.pop(0)


class Service:
    """Runs one manager until a signal ends it."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        program: str,
        manager: manager_module.Manager,
        bus: rpc.Bus | None,
        reread: Callable[[], None],
    ):
        self.conf = conf
        self.program = program
        self.manager = manager
        self.bus = bus
        self._reread = reread
        self._servers: list[Any] = []
        self._tasks: list[periodic.Periodic] = []
        self._failed = threading.Event()
        self.notifier = Notifier()

    def fail(self, reason: str) -> None:
        """End the process with exit code 1, from any thread; for a start that was refused."""
        LOG.error("%s stops: %s", self.program, reason)
        self._failed.set()

    def run(self) -> int:
        """Start everything, wait for a signal, stop; return the exit code."""
        signals = Signals()
        self.notifier.send("STATUS=starting")
        code = self._start_or_signal(signals)
        if code is not None:
            return code
        self.notifier.send("READY=1", "STATUS=serving")
        LOG.info("%s is ready", self.program)
        return self._wait(signals)

    def _start_or_signal(self, signals: Signals) -> int | None:
        """Start, in a thread since it may wait for a broker; return a code if it is to end now."""
        errors: list[Exception] = []

        def start() -> None:
            try:
                self._start()
            except Exception as error:
                errors.append(error)

        starter = threading.Thread(target=start, name="start", daemon=True)
        starter.start()
        while starter.is_alive() and not self._failed.is_set():
            starter.join(0.1)
            if signals.wait(0.0) in (signal.SIGTERM, signal.SIGINT):
                LOG.info("%s stops before it was ready", self.program)
                self._exit(0)
        if errors and not self._failed.is_set():
            LOG.error("%s could not start", self.program, exc_info=errors[0])
        if self._failed.is_set() or errors:
            return 1
        return None

    def _start(self) -> None:
        self.manager.init_host()
        if self.bus is not None:
            for topic, endpoints in self.manager.endpoints():
                target = messaging.Target(topic=topic, server=self.conf.host)
                server = self.bus.server(target, endpoints)
                server.start()
                self._servers.append(server)
        self._tasks = self.manager.periodic_tasks()
        for task in self._tasks:
            task.start()

    def _wait(self, signals: Signals) -> int:
        beat = self.notifier.watchdog / 2 or 3600.0
        last = time.monotonic()
        while True:
            number = signals.wait(min(beat, 0.5))
            if self._failed.is_set():
                self._stop(0.0)
                return 1
            if number == signal.SIGUSR2:
                LOG.info("counters %s", json.dumps(counters.snapshot()))
            elif number == signal.SIGHUP:
                self._reload()
            elif number == signal.SIGTERM:
                self._stop(float(self.conf.graceful_shutdown_timeout))
                return 0
            elif number == signal.SIGINT:
                self._stop(0.0)
                return 0
            if self.notifier.watchdog and time.monotonic() - last >= beat:
                self.notifier.send("WATCHDOG=1")
                last = time.monotonic()

    def _reload(self) -> None:
        self.notifier.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            self._reread()
            self.manager.reload()
            LOG.info("%s has read its options again", self.program)
        except Exception as error:
            LOG.error("%s keeps its former options: %s", self.program, error)
        self.notifier.send("READY=1")

    def _stop(self, timeout: float) -> None:
        self.notifier.send("STOPPING=1", "STATUS=finishing what runs")
        LOG.info("%s stops; running work has %d s to finish", self.program, timeout)
        end = time.monotonic() + timeout
        code = 1 if self._failed.is_set() else 0
        guard = threading.Timer(timeout + 2, os._exit, (code,))
        guard.daemon = True
        guard.start()
        for task in self._tasks:
            task.stop()
        for server in self._servers:
            server.stop()
        waits = [threading.Thread(target=server.wait, daemon=True) for server in self._servers]
        for thread in waits:
            thread.start()
        self.manager.drain(max(0.0, end - time.monotonic()))
        for thread in waits:
            thread.join(max(0.0, end - time.monotonic()))
        self.manager.stop()
        LOG.info("%s has stopped", self.program)
        self._exit(code)

    @staticmethod
    def _exit(code: int) -> None:
        logging.shutdown()
        # What is left are idle threads of libraries; waiting for them gains nothing.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
