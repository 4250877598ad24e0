# SPDX-License-Identifier: Apache-2.0
"""The life of a service: ready, signals, reload, failure, what systemd hears."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from novalite import periodic, service

GRACE = 7
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Exited(Exception):
    """In place of the end of the process."""


class Manager:
    """Notes what is asked of it; ``blocked`` keeps init_host from ending."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.timeouts: list[float] = []
        self.blocked: threading.Event | None = None
        self.error: Exception | None = None
        self.ticked = threading.Event()
        self.reloaded = threading.Event()

    def init_host(self) -> None:
        self.calls.append("init_host")
        if self.error:
            raise self.error
        if self.blocked:
            self.blocked.wait(10)

    def endpoints(self) -> list[tuple[str, list[Any]]]:
        self.calls.append("endpoints")
        return [("topic", [object()]), ("other", [object()])]

    def periodic_tasks(self) -> list[periodic.Periodic]:
        self.calls.append("periodic_tasks")
        return [periodic.Periodic("tick", self.ticked.set, 3600.0, at_once=True)]

    def reload(self) -> None:
        self.calls.append("reload")
        self.reloaded.set()

    def drain(self, timeout: float) -> None:
        self.calls.append("drain")
        self.timeouts.append(timeout)

    def stop(self) -> None:
        self.calls.append("stop")


class Bus:
    """Makes servers that note their start and their end."""

    def __init__(self, calls: list[str]):
        self.calls = calls

    def server(self, target: Any, _endpoints: list[Any]) -> Any:
        name = f"{target.topic}@{target.server}"
        return SimpleNamespace(
            start=lambda: self.calls.append(f"start {name}"),
            stop=lambda: self.calls.append(f"stop {name}"),
            wait=lambda: None,
        )


class Listener:
    """The other side of NOTIFY_SOCKET."""

    def __init__(self, path: Path):
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(10)

    def hear(self) -> list[str]:
        return self._socket.recv(4096).decode().splitlines()

    def hear_until(self, line: str) -> None:
        while line not in self.hear():
            pass

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    made = Listener(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(made.path))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def contained(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the handlers of signals, the log and the process of the tests."""
    handlers = [signal.getsignal(number) for number in SIGNALS]

    def leave(code: int) -> None:
        # The guard that ends a stop which hangs comes from a thread of its own, and later.
        if threading.current_thread() is threading.main_thread():
            raise Exited(code)

    monkeypatch.setattr(service.os, "_exit", leave)
    monkeypatch.setattr(service.logging, "shutdown", lambda: None)
    yield
    for number, handler in zip(SIGNALS, handlers, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def manager() -> Manager:
    return Manager()


def make(manager: Manager, reread: Callable[[], None] = lambda: None) -> service.Service:
    conf: Any = SimpleNamespace(host="here", graceful_shutdown_timeout=GRACE)
    bus: Any = Bus(manager.calls)
    return service.Service(conf, "novalite-test", manager, bus, reread)


def then(*steps: Callable[[], Any]) -> None:
    """Run the steps one after the other beside the service."""
    threading.Thread(target=lambda: [step() for step in steps], daemon=True).start()


def send(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def run(program: service.Service) -> int:
    """Run until the process would end; return the code."""
    try:
        return program.run()
    except Exited as end:
        return int(end.args[0])


def test_sigterm_lets_work_end(manager: Manager, listener: Listener) -> None:
    then(lambda: listener.hear_until("READY=1"), manager.ticked.wait, send(signal.SIGTERM))
    assert run(make(manager)) == 0
    assert manager.calls == [
        "init_host",
        "endpoints",
        "start topic@here",
        "start other@here",
        "periodic_tasks",
        "stop topic@here",
        "stop other@here",
        "drain",
        "stop",
    ]
    assert GRACE - 1 < manager.timeouts[0] <= GRACE
    assert listener.hear() == ["STOPPING=1", "STATUS=finishing what runs"]


def test_sigint_does_not_wait(manager: Manager, listener: Listener) -> None:
    then(lambda: listener.hear_until("READY=1"), send(signal.SIGINT))
    assert run(make(manager)) == 0
    assert manager.timeouts == [0.0]


def test_sighup_reads_the_options_again(manager: Manager, listener: Listener) -> None:
    then(
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGHUP),
        manager.reloaded.wait,
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGTERM),
    )
    program = make(manager, lambda: manager.calls.append("reread"))
    assert run(program) == 0
    assert manager.calls.index("reload") == manager.calls.index("reread") + 1


def test_bad_options_at_sighup_change_nothing(
    manager: Manager, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    def reread() -> None:
        raise ValueError("x.conf: [DEFAULT] report_interval = ten")

    then(
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGHUP),
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGTERM),
    )
    assert run(make(manager, reread)) == 0
    assert "reload" not in manager.calls
    [line] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert line.getMessage() == (
        "novalite-test keeps its former options: x.conf: [DEFAULT] report_interval = ten"
    )


def test_reload_is_told_with_its_time(manager: Manager, listener: Listener) -> None:
    heard: list[str] = []

    def hear_reload() -> None:
        while not any(line.startswith("RELOADING=1") for line in heard):
            heard.extend(listener.hear())

    then(
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGHUP),
        hear_reload,
        send(signal.SIGTERM),
    )
    assert run(make(manager)) == 0
    assert heard[-1].startswith("MONOTONIC_USEC=")


def test_failure_ends_with_1(manager: Manager, listener: Listener) -> None:
    program = make(manager)
    then(lambda: listener.hear_until("READY=1"), lambda: program.fail("another has my name"))
    assert run(program) == 1
    assert manager.calls[-1] == "stop"


def test_failure_during_the_start(manager: Manager, caplog: pytest.LogCaptureFixture) -> None:
    manager.blocked = threading.Event()
    program = make(manager)
    then(lambda: program.fail("another identity has this name"))
    assert run(program) == 1
    manager.blocked.set()
    assert "novalite-test stops: another identity has this name" in caplog.text


def test_error_during_the_start(manager: Manager, caplog: pytest.LogCaptureFixture) -> None:
    manager.error = RuntimeError("no state directory")
    assert run(make(manager)) == 1
    assert "novalite-test could not start" in caplog.text
    assert "no state directory" in caplog.text


def test_error_after_a_failure_is_told_once(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    program = make(manager)

    def refuse() -> None:
        program.fail("refused")
        raise RuntimeError("refused")

    manager.init_host = refuse  # type: ignore[method-assign]
    assert run(program) == 1
    assert len(caplog.records) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_a_start_that_waits(manager: Manager, listener: Listener, number: int) -> None:
    manager.blocked = threading.Event()
    then(lambda: listener.hear_until("STATUS=starting"), send(number))
    assert run(make(manager)) == 0
    assert manager.calls == ["init_host"]
    manager.blocked.set()


def test_watchdog(manager: Manager, listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    then(
        lambda: listener.hear_until("WATCHDOG=1"),
        lambda: listener.hear_until("WATCHDOG=1"),
        send(signal.SIGTERM),
    )
    assert run(make(manager)) == 0


def test_nobody_to_notify(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    then(manager.ticked.wait, send(signal.SIGTERM))
    assert run(make(manager)) == 0


def test_abstract_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"novalite-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(f"\0{name}")
        service.Notifier({"NOTIFY_SOCKET": f"@{name}"}).send("READY=1", "STATUS=serving")
        assert channel.recv(100) == b"READY=1\nSTATUS=serving"
