# SPDX-License-Identifier: Apache-2.0
"""The parent of workers: ``workers = N`` of a service is this program with N executed children.

``cmd/process.py`` becomes it by exec, so that the pid stays. It loads the standard library only,
has no connection to bus or database, and holds the API's listening socket for its children: what
waits to be accepted is not lost when one of them ends. Each child is executed, never forked with
something open in it.

SIGTERM and SIGINT go to all children and end it; SIGHUP and SIGUSR2 go to all; SIGUSR1 restarts
them one after the other. A child that dies is started again, later and later if it dies again. One
that ends with exit code 1 has been refused, at the start of all or by another service of its name:
then everything ends with 1, as a single process would. systemd hears READY when all are ready, and
WATCHDOG while those that are ready are heard; one that is silent is killed and started again.
"""

import collections
import contextlib
import json
import logging
import logging.handlers
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field

from novalite import systemd

LOG = logging.getLogger("novalite.cmd.supervise")

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# Seconds before a child that died is started again: the first time, and at most.
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
# A child that was ready for so many seconds has not died again.
LONG_LIFE = 60.0
# Seconds that children have to end, unless they say that they need longer, and beyond that.
STOP_TIME = 90.0
SPARE = 5.0
NOTHING_DUE = 3600.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What to start; written as JSON on the command line.

    :param module: executed with ``python -m``; *words* are its arguments
    :param listen: descriptor of a listening socket, or None
    :param log: file for what the parent says; standard error if empty
    """

    program: str
    module: str
    words: list[str]
    workers: int
    listen: int | None = None
    log: str = ""

    def become(self) -> None:
        """Replace this process by the parent; its pid stays."""
        text = json.dumps({name: getattr(self, name) for name in self.__slots__})
        if self.listen is not None:
            os.set_inheritable(self.listen, True)
        sys.stdout.flush()
        sys.stderr.flush()
        command = [sys.executable, "-P", "-m", "novalite.cmd.supervise", text]
        os.execve(sys.executable, command, dict(os.environ))


@dataclass(slots=True, eq=False)
class Child:
    """One worker. Times are of the monotonic clock."""

    number: int
    channel: socket.socket
    process: subprocess.Popen[bytes] | None = None
    ready: bool = False
    ready_at: float = 0.0
    heard: float = 0.0
    due: float = 0.0
    deaths: int = 0
    # SIGHUPs that it has not answered yet, and whether one waits until it is ready.
    reloads: int = 0
    reload_later: bool = False
    # Its turn in a rolling restart; and whether it was told to end for that.
    replaced: bool = False
    ending: bool = False
    # The moment by which it has said that it will have ended.
    end_by: float = 0.0

    def signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


@dataclass(slots=True)
class Supervisor:
    """All children, and the one loop that looks after them."""

    settings: Settings
    notifier: systemd.Notifier = field(default_factory=systemd.Notifier)
    children: list[Child] = field(default_factory=list)
    rolling: collections.deque[Child] = field(default_factory=collections.deque)
    is_ready: bool = False
    reloading: bool = False
    stopping: bool = False
    code: int = 0
    stop_at: float = 0.0
    told: float = 0.0

    def run(self) -> int:
        """Start the children, look after them until a signal ends all; return the exit code."""
        reader = _catch_signals()
        now = time.monotonic()
        for number in range(1, self.settings.workers + 1):
            self.children.append(Child(number, _channel(), due=now))
        LOG.info("%s starts %d workers", self.settings.program, self.settings.workers)
        self.notifier.send("STATUS=starting")
        while True:
            self._start_due()
            self._watch()
            for number in self._wait(reader):
                self._on_signal(number)
            self._hear()
            self._reap()
            if self.stopping and not any(child.process for child in self.children):
                LOG.info("%s has stopped", self.settings.program)
                return self.code

    # -- waiting

    def _wait(self, reader: int) -> list[int]:
        """Wait for a signal, a word of a child, or the next thing to do; return the signals."""
        poller = select.poll()
        poller.register(reader, select.POLLIN)
        for child in self.children:
            poller.register(child.channel, select.POLLIN)
        poller.poll(max(0.0, self._next() - time.monotonic()) * 1000)
        try:
            return list(os.read(reader, 1000))
        except BlockingIOError:
            return []

    def _next(self) -> float:
        moments = [time.monotonic() + NOTHING_DUE]
        if self.stopping:
            moments.append(self.stop_at)
        else:
            moments += [child.due for child in self.children if child.process is None]
        if self.notifier.watchdog and self.is_ready:
            moments.append(self.told + self.notifier.watchdog / 4)
        return min(moments)

    def _on_signal(self, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop(number, 0)
        elif number == signal.SIGHUP:
            self._reload()
        elif number == signal.SIGUSR1:
            self._roll()
        elif number == signal.SIGUSR2:
            for child in self.children:
                if child.ready:
                    child.signal(number)

    def _hear(self) -> None:
        for child in self.children:
            while True:
                try:
                    message = child.channel.recv(4096)
                except BlockingIOError:
                    break
                child.heard = time.monotonic()
                for line in message.decode(errors="replace").splitlines():
                    self._take(child, line)

    def _take(self, child: Child, line: str) -> None:
        name, _, value = line.partition("=")
        if name == "READY":
            self._on_ready(child)
        elif name == "EXTEND_TIMEOUT_USEC" and value.isdigit() and self.stopping:
            child.end_by = time.monotonic() + int(value) / 1e6 + SPARE
            self._set_end()

    def _on_ready(self, child: Child) -> None:
        if child.process is None or child.ending:
            return
        if not child.ready:
            child.ready, child.ready_at = True, time.monotonic()
            LOG.info("Worker %d is ready (pid %d)", child.number, child.process.pid)
            if child.reload_later:
                child.reload_later = False
                child.reloads += 1
                child.signal(signal.SIGHUP)
        else:
            child.reloads = max(0, child.reloads - 1)
        all_ready = all(each.ready for each in self.children)
        if not self.is_ready and all_ready and not self.stopping:
            self.is_ready = True
            self.told = time.monotonic()
            self.notifier.send("READY=1", f"STATUS=serving with {len(self.children)} workers")
            LOG.info("%s is ready with %d workers", self.settings.program, len(self.children))
        if self.reloading and not any(each.reloads or each.reload_later for each in self.children):
            self.reloading = False
            self.notifier.send("READY=1")
            LOG.info("All workers have read their options again")
        if all_ready and self.rolling:
            self._next_of_roll()

    # -- what signals ask for

    def _reload(self) -> None:
        if self.is_ready:
            self.reloading = True
            moment = f"MONOTONIC_USEC={time.monotonic_ns() // 1000}"
            self.notifier.send("RELOADING=1", moment)
        for child in self.children:
            if child.ready:
                child.reloads += 1
                child.signal(signal.SIGHUP)
            else:
                # Before it is ready the signal might end it.
                child.reload_later = True

    def _roll(self) -> None:
        if self.stopping or self.rolling:
            LOG.warning("Workers are being restarted or stopped already")
            return
        LOG.info("All workers are restarted, one after the other")
        self.rolling.extend(self.children)
        # Otherwise it begins when all are ready.
        if all(child.ready for child in self.children):
            self._next_of_roll()

    def _next_of_roll(self) -> None:
        child = self.rolling[0]
        if child.replaced:
            child.replaced = False
            self.rolling.popleft()
            if not self.rolling:
                LOG.info("All workers have been restarted")
                return
            child = self.rolling[0]
        child.replaced, child.ending, child.ready = True, True, False
        child.signal(signal.SIGTERM)

    def _stop(self, number: int, code: int) -> None:
        if not self.stopping:
            self.notifier.send("STOPPING=1", "STATUS=finishing what runs")
            LOG.info("%s stops its workers", self.settings.program)
            self.stopping, self.code = True, code
            self.stop_at = time.monotonic() + STOP_TIME
        self.rolling.clear()
        for child in self.children:
            child.signal(number)

    def _set_end(self) -> None:
        """Wait as long as those that still run have said; all of them have to have said it."""
        moments = [child.end_by for child in self.children if child.process is not None]
        if moments and all(moments):
            self.stop_at = max(moments)

    # -- life and death

    def _start_due(self) -> None:
        for child in self.children:
            if child.process is None and not self.stopping and child.due <= time.monotonic():
                self._start(child)

    def _start(self, child: Child) -> None:
        environ = {
            **os.environ,
            systemd.WORKER: str(child.number),
            "NOTIFY_SOCKET": "@" + child.channel.getsockname()[1:].decode(),
        }
        for name in ("WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_USEC"):
            environ.pop(name, None)
        if self.notifier.watchdog:
            # It says at least four times within systemd's time that it is well.
            environ["WATCHDOG_USEC"] = str(int(self.notifier.watchdog * 1e6 / 2))
        handed: tuple[int, ...] = ()
        if self.settings.listen is not None:
            handed = (self.settings.listen,)
            environ[systemd.LISTEN_FD] = str(self.settings.listen)
        child.ready, child.reloads = False, 0
        child.process = subprocess.Popen(
            [sys.executable, "-P", "-m", self.settings.module, *self.settings.words],
            env=environ,
            pass_fds=handed,
        )

    def _reap(self) -> None:
        for child in self.children:
            code = child.process.poll() if child.process is not None else None
            if code is not None:
                self._on_end(child, code)

    def _on_end(self, child: Child, code: int) -> None:
        was_ready, child.process, child.ready = child.ready, None, False
        now = time.monotonic()
        if self.stopping:
            # By the signal itself ends who had hardly begun.
            well = code in (0, -signal.SIGTERM, -signal.SIGINT)
            self.code = self.code or (0 if well else 1)
            self._set_end()
            return
        if child.ending:
            child.ending, child.due = False, now
            return
        if code == 1 and (was_ready or not self.is_ready):
            LOG.error("Worker %d was refused: everything ends", child.number)
            self._stop(signal.SIGTERM, 1)
            return
        lived_long = was_ready and now - child.ready_at > LONG_LIFE
        child.deaths = 1 if lived_long else child.deaths + 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (child.deaths - 1))
        child.due = now + pause
        LOG.error(
            "Worker %d ended with %d; another one starts in %.1f s", child.number, code, pause
        )

    def _watch(self) -> None:
        """Kill who is silent or will not end, and tell systemd that the others are well."""
        now, limit = time.monotonic(), self.notifier.watchdog
        if self.stopping and now >= self.stop_at:
            LOG.error("Workers that do not end are killed")
            self.code, self.stop_at = 1, now + SPARE
            for child in self.children:
                child.signal(signal.SIGKILL)
        if not limit or not self.is_ready:
            return
        ready = [child for child in self.children if child.ready]
        silent = [child for child in ready if now - child.heard > limit / 2]
        for child in silent:
            LOG.error("Worker %d is silent for %.0f s; it is killed", child.number, limit / 2)
            child.ready = False
            child.signal(signal.SIGKILL)
        if now >= self.told + limit / 4 and len(silent) < len(ready):
            self.notifier.send("WATCHDOG=1")
            self.told = now


def _channel() -> socket.socket:
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    channel.setblocking(False)
    channel.bind("")  # the kernel chooses an abstract name
    return channel


def _catch_signals() -> int:
    """Let signals wake the loop; return the descriptor from which their numbers are read."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for number in (*SIGNALS, signal.SIGCHLD):
        signal.signal(number, lambda _number, _frame: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def main(argv: list[str] | None = None) -> None:
    """Run the parent; the one argument is :class:`Settings` as JSON."""
    words = sys.argv[1:] if argv is None else argv
    settings = Settings(**json.loads(words[0]))
    handler: logging.Handler = logging.StreamHandler()
    if settings.log:
        handler = logging.handlers.WatchedFileHandler(settings.log)
    text = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [-] %(message)s"
    handler.setFormatter(logging.Formatter(text, "%Y-%m-%d %H:%M:%S"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)
    sys.exit(Supervisor(settings).run())


if __name__ == "__main__":
    main()
