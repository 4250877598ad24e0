# SPDX-License-Identifier: Apache-2.0
"""The parent of workers, as a process of its own with small workers that do what a file says."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from novalite import systemd
from novalite.cmd.supervise import Settings

WORKER = """
import os, signal, sys, time
from pathlib import Path
from novalite import systemd

folder, number = Path(sys.argv[1]), systemd.worker()

def note(text):
    with open(folder / "notes", "a") as notes:
        notes.write(f"{number} {os.getpid()} {text}\\n")

plan = folder / f"plan{number}"
words = plan.read_text().split() if plan.exists() else []
notifier = systemd.Notifier()
pending = []
for signal_ in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2, signal.SIGINT):
    signal.signal(signal_, lambda got, frame: pending.append(got))
note("started")
if "refuse" in words:
    note("refused")
    sys.exit(1)
if os.environ.get("NOVALITE_LISTEN_FD"):
    note("fd " + os.readlink(f"/proc/self/fd/{systemd.listening_fd()}").split(":")[0])
notifier.send("READY=1")
note(f"ready {os.environ.get('WATCHDOG_USEC', '-')}")
if "die" in words:
    plan.unlink()
    os.kill(os.getpid(), signal.SIGKILL)
if "give-up" in words:
    plan.unlink()
    sys.exit(1)
while True:
    if "silent" not in words and notifier.watchdog:
        notifier.send("WATCHDOG=1")
    if pending:
        got = pending.pop(0)
        note(signal.Signals(got).name)
        if got == signal.SIGHUP:
            notifier.send("RELOADING=1")
            notifier.send("READY=1")
        elif got == signal.SIGTERM and "stubborn" in words:
            notifier.send("STOPPING=1", "EXTEND_TIMEOUT_USEC=1")
        elif got in (signal.SIGTERM, signal.SIGINT):
            sys.exit(0)
    time.sleep(0.02)
"""


class Parent:
    """A running parent with two workers, and what systemd hears."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.listener: socket.socket | None = None
        (folder / "toy_worker.py").write_text(WORKER)
        self._heard: list[str] = []
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._channel.bind(str(folder / "notify"))
        self._channel.setblocking(False)
        self.process: subprocess.Popen[bytes] | None = None

    def plan(self, number: int, *words: str) -> None:
        (self.folder / f"plan{number}").write_text(" ".join(words))

    def start(self, **environ: str) -> None:
        settings = Settings(
            "novalite-toy",
            "toy_worker",
            [str(self.folder)],
            2,
            listen=None if self.listener is None else self.listener.fileno(),
            log=str(self.folder / "log"),
        )
        given = {
            **os.environ,
            "PYTHONPATH": str(self.folder),
            "NOTIFY_SOCKET": str(self.folder / "notify"),
            **environ,
        }
        # As cmd/process.py does it: exec of the program, with what is inheritable.
        code = (
            "import sys, json; from novalite.cmd import supervise;"
            "supervise.Settings(**json.loads(sys.argv[1])).become()"
        )
        text = json.dumps({name: getattr(settings, name) for name in settings.__slots__})
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, text],
            env=given,
            pass_fds=() if self.listener is None else (self.listener.fileno(),),
        )

    def heard(self) -> list[str]:
        while True:
            try:
                self._heard += self._channel.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self._heard

    def notes(self, number: int | None = None) -> list[list[str]]:
        file = self.folder / "notes"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [line for line in lines if number is None or line[0] == str(number)]

    def said(self, number: int) -> list[str]:
        return [line[2] for line in self.notes(number)]

    def send(self, signum: int) -> None:
        assert self.process is not None
        self.process.send_signal(signum)

    def ready(self) -> None:
        self.start()
        until(lambda: "READY=1" in self.heard())

    def end(self) -> int:
        assert self.process is not None
        return self.process.wait(30)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for line in self.notes():
            try:
                if f"PYTHONPATH={self.folder}" in Path(f"/proc/{line[1]}/environ").read_text():
                    os.kill(int(line[1]), signal.SIGKILL)
            except OSError:
                continue
        self._channel.close()


def until(condition: Callable[[], object], seconds: float = 40.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Parent]:
    made = Parent(tmp_path)
    yield made
    made.close()


def test_ready_when_all_are_and_signals_go_to_all(parent: Parent) -> None:
    parent.ready()
    assert {line[0] for line in parent.notes() if line[2] == "ready"} == {"1", "2"}
    parent.send(signal.SIGUSR2)
    until(lambda: "SIGUSR2" in parent.said(1) and "SIGUSR2" in parent.said(2))
    parent.send(signal.SIGHUP)
    until(lambda: parent.heard().count("READY=1") == 2)
    assert "RELOADING=1" in parent.heard()
    assert "SIGHUP" in parent.said(1) and "SIGHUP" in parent.said(2)
    parent.send(signal.SIGTERM)
    assert parent.end() == 0
    assert parent.said(1)[-1] == parent.said(2)[-1] == "SIGTERM"
    assert "STOPPING=1" in parent.heard()


def test_sigint_is_passed_on_as_it_is(parent: Parent) -> None:
    parent.ready()
    parent.send(signal.SIGINT)
    assert parent.end() == 0
    assert parent.said(1)[-1] == parent.said(2)[-1] == "SIGINT"


def test_a_dead_worker_is_replaced(parent: Parent) -> None:
    parent.plan(2, "die")
    parent.start()
    until(lambda: parent.said(2).count("ready") == 2)
    until(lambda: "READY=1" in parent.heard())
    assert parent.said(1).count("started") == 1
    parent.send(signal.SIGTERM)
    assert parent.end() == 0


def test_a_worker_that_is_refused_at_the_start_ends_everything(parent: Parent) -> None:
    parent.plan(1, "refuse")
    parent.start()
    assert parent.end() == 1
    assert "READY=1" not in parent.heard()
    assert parent.said(1) == ["started", "refused"]


def test_a_worker_that_gives_up_ends_everything(parent: Parent) -> None:
    """Another service of the same name was started; starting again would go on for ever."""
    parent.plan(2, "give-up")
    parent.start()
    assert parent.end() == 1
    assert parent.said(2).count("started") == 1


def test_workers_are_restarted_one_after_the_other(parent: Parent) -> None:
    parent.ready()
    parent.send(signal.SIGUSR1)
    until(lambda: "All workers have been restarted" in (parent.folder / "log").read_text())
    lines = [(line[0], line[2]) for line in parent.notes() if line[2] in ("SIGTERM", "ready")]
    assert lines[2:] == [("1", "SIGTERM"), ("1", "ready"), ("2", "SIGTERM"), ("2", "ready")]
    parent.send(signal.SIGTERM)
    assert parent.end() == 0


def test_a_restart_that_is_asked_for_too_early_comes_when_all_are_ready(parent: Parent) -> None:
    parent.start()
    until(lambda: parent.said(1) and parent.said(2))
    parent.send(signal.SIGUSR1)
    until(lambda: "All workers have been restarted" in (parent.folder / "log").read_text())
    assert parent.said(1).count("ready") == parent.said(2).count("ready") == 2


def test_the_watchdog_hears_of_the_healthy_and_a_silent_one_is_replaced(parent: Parent) -> None:
    parent.plan(1, "silent")
    parent.start(WATCHDOG_USEC="4000000")
    until(lambda: parent.said(1).count("started") == 1)
    until(lambda: "READY=1" in parent.heard())
    parent.plan(1)
    until(lambda: parent.said(1).count("ready") == 2)
    assert parent.said(2).count("ready") == 1
    count = parent.heard().count("WATCHDOG=1")
    until(lambda: parent.heard().count("WATCHDOG=1") > count)
    assert [line[3] for line in parent.notes(2) if line[2] == "ready"] == ["2000000"]


def test_one_that_does_not_end_in_its_time_is_killed(parent: Parent) -> None:
    parent.plan(1, "stubborn")
    parent.ready()
    parent.send(signal.SIGTERM)
    assert parent.end() == 1
    assert parent.said(1)[-1] == parent.said(2)[-1] == "SIGTERM"
    assert "Workers that do not end are killed" in (parent.folder / "log").read_text()


def test_v19_workers_share_the_listening_socket_and_nothing_else(parent: Parent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        parent.listener = listener
        parent.ready()
    shared: dict[str, set[str]] = {}
    assert parent.process is not None
    for pid in {line[1] for line in parent.notes()} | {str(parent.process.pid)}:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(entry)
            if target.startswith("socket:"):
                shared.setdefault(target, set()).add(pid)
    assert [len(pids) for pids in shared.values() if len(pids) > 1] == [3]
    assert parent.said(1).count("fd") == 1


def test_it_loads_no_bus_and_no_database() -> None:
    code = "import sys; import novalite.cmd.supervise; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    heavy = {"oslo_config", "oslo_messaging", "sqlalchemy", "eventlet", "kombu"}
    assert not heavy & set(loaded.split())


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"NOVALITE_LISTEN_FD": "7"}, 7),
        ({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}, 3),
        ({"LISTEN_PID": "1", "LISTEN_FDS": "1"}, None),
        ({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "0"}, None),
    ],
)
def test_a_socket_that_was_handed_over(environ: dict[str, str], expected: int | None) -> None:
    assert systemd.listening_fd(environ) == expected
