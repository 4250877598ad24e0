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
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg

from novalite import broker, counters, health, periodic, rpc, systemd
from novalite import manager as manager_module
from novalite.conf import changes

LOG = logging.getLogger(__name__)


class Signals:
    """Turns signals into events that the main thread waits for.

    A handler only sets a flag: anything more could run in the middle of a lock.
    """

    def __init__(self) -> None:
        self._pending: list[int] = []
        for number in (
            *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP),
            *(signal.SIGUSR1, signal.SIGUSR2),
        ):
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
        reread: Callable[[], changes.Reading],
        adjust: Callable[[changes.Reading], None],
    ):
        """Put the parts together.

        :param reread: reads the options again and checks them; nothing is in force by that
        :param adjust: told when the values of a reading have come into force, or were undone
        """
        self.conf = conf
        self.program = program
        self.manager = manager
        self.bus = bus
        self._reread = reread
        self._adjust = adjust
        self._servers: list[Any] = []
        self._topics: list[str] = []
        self._tasks: list[periodic.Periodic] = []
        self._failed = threading.Event()
        self._early_reload = False
        self._health: health.Health | None = None
        self._watchdog: health.Watchdog | None = None
        self._monitor: health.Listener | None = None
        self.notifier = systemd.Notifier()

    def fail(self, reason: str) -> None:
        """End the process with exit code 1, from any thread; for a start that was refused."""
        LOG.error("%s stops: %s", self.program, reason)
        self._failed.set()

    def run(self) -> int:
        """Start everything, wait for a signal, stop; return the exit code."""
        signals = Signals()
        self.notifier.send("STATUS=starting")
        self._listen()
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
            number = signals.wait(0.0)
            if number in (signal.SIGTERM, signal.SIGINT):
                LOG.info("%s stops before it was ready", self.program)
                self._exit(0)
            self._early_reload |= number == signal.SIGHUP
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
                self._topics.append(topic)
        self._tasks = self.manager.periodic_tasks()
        self._watch_health()
        for task in self._tasks:
            task.start()

    def _listen(self) -> None:
        """Let monitors ask how the process is, from the first moment on."""
        chosen = self.conf.health_socket
        path = (
            Path(chosen)
            if chosen
            else health.default_path(self.conf.state_path, self.program, self.conf.host)
        )
        if systemd.worker() > 1:
            path = path.with_name(f"{path.stem}-{systemd.worker()}{path.suffix}")
        try:
            self._monitor = health.Listener(path, self._report)
        except OSError as error:
            # No monitor is worth a service that does not start.
            LOG.warning("No health socket at %s: %s", path, error.strerror or error)
        else:
            self._monitor.start()

    def _report(self) -> health.Report:
        if self._health is None:
            return health.Report(health.STARTING, {})
        return self._health.report()

    def _watch_health(self) -> None:
        checks = self.manager.health_checks()
        if self.bus is not None and self._topics:
            checks.append(_bus_check(self.conf, self.bus, self._topics))
        self._health = health.Health(checks)
        if self.notifier.watchdog:
            self._watchdog = health.Watchdog(self._health)
            spacing = self.notifier.watchdog / 4
            self._tasks.append(periodic.Periodic("watchdog", self._watchdog.look, spacing))

    def _wait(self, signals: Signals) -> int:
        if self._early_reload:
            self._reload()
        beat = self.notifier.watchdog / 2 or 3600.0
        last = time.monotonic()
        while True:
            number = signals.wait(min(beat, 0.5))
            if self._failed.is_set():
                self._stop(0.0)
                return 1
            if number in (signal.SIGTERM, signal.SIGINT):
                graceful = number == signal.SIGTERM
                self._stop(float(self.conf.graceful_shutdown_timeout) if graceful else 0.0)
                return 0
            if number is not None:
                self._on_signal(number)
            if self.notifier.watchdog and time.monotonic() - last >= beat:
                if self._watchdog is None or self._watchdog.is_well():
                    self.notifier.send("WATCHDOG=1")
                last = time.monotonic()

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGHUP:
            self._reload()
        elif number == signal.SIGUSR2:
            LOG.info("counters %s", json.dumps(counters.snapshot()))
        elif number == signal.SIGUSR1:
            LOG.warning("SIGUSR1 restarts workers one after the other; this service has none")

    def _reload(self) -> None:
        self.notifier.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        refused = ""
        try:
            reading = self._reread()
            self._take_over(reading)
        except Exception as error:
            refused = str(error) or repr(error)
        if refused:
            # Not in the handler, where oslo.log would put the same text once more at the end.
            LOG.error("%s keeps its former options: %s", self.program, refused)
        else:
            for text in reading.warnings:
                LOG.warning("%s", text)
            for change in reading.taken:
                LOG.info("%s", change.text())
            for change in reading.waiting:
                LOG.warning("%s", change.text())
            LOG.info("%s has read its options again", self.program)
        self.notifier.send("READY=1")

    def _take_over(self, reading: changes.Reading) -> None:
        """Put a reading in force for everybody, or for nobody."""
        reading.apply()
        try:
            self._adjust(reading)
            self.manager.reload()
        except Exception:
            reading.undo()
            self._adjust(reading)
            self.manager.reload()
            raise
        finally:
            for task in self._tasks:
                task.respace()

    def _stop(self, timeout: float) -> None:
        self.notifier.send(
            "STOPPING=1",
            "STATUS=finishing what runs",
            f"EXTEND_TIMEOUT_USEC={int((timeout + 2) * 1e6)}",
        )
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

    def _exit(self, code: int) -> None:
        if self._monitor is not None:
            self._monitor.close()
        logging.shutdown()
        # What is left are idle threads of libraries; waiting for them gains nothing.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _bus_check(conf: cfg.ConfigOpts, bus: rpc.Bus, topics: list[str]) -> health.Check:
    """Return the test of a service's own queues."""

    def use() -> None:
        for topic in topics:
            bus.echo(topic, health.TIMEOUT)

    return health.Check("bus", use, lambda: broker.round_trip(conf, health.TIMEOUT))
