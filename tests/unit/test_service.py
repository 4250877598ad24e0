# SPDX-License-Identifier: Apache-2.0
"""The life of a service: ready, signals, reload, failure, what systemd hears."""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from novalite import health, periodic, service, systemd

GRACE = 7
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Exited(Exception):
    """In place of the end of the process."""


class Manager:
    """Notes what is asked of it; ``blocked`` keeps init_host from ending."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.checks: list[health.Check] = []
        self.socket = Path("nowhere")
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

    def health_checks(self) -> list[health.Check]:
        return list(self.checks)

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
def manager(tmp_path: Path) -> Manager:
    made = Manager()
    made.socket = tmp_path / "health.sock"
    return made


class Reading:
    """Notes whether its values are in force; it has one change of each kind."""

    def __init__(self, calls: list[str]):
        self.calls = calls
        self.warnings = ["odd"]
        self.taken = [SimpleNamespace(text=lambda: "DEFAULT.debug: False -> True")]
        self.waiting = [SimpleNamespace(text=lambda: "DEFAULT.host: needs a restart")]

    def apply(self) -> None:
        self.calls.append("apply")

    def undo(self) -> None:
        self.calls.append("undo")


def make(manager: Manager, reread: Callable[[], Any] | None = None) -> service.Service:
    conf: Any = SimpleNamespace(
        host="here",
        graceful_shutdown_timeout=GRACE,
        health_socket=str(manager.socket),
        state_path="",
    )
    bus: Any = Bus(manager.calls)
    read: Any = reread or (lambda: Reading(manager.calls))

    def adjust(_reading: Any) -> None:
        manager.calls.append("adjust")

    return service.Service(conf, "novalite-test", manager, bus, read, adjust)


def then(*steps: Callable[[], Any]) -> None:
    """Run the steps one after the other beside the service."""
    threading.Thread(target=lambda: [step() for step in steps], daemon=True).start()


def wait_for(condition: Callable[[], bool]) -> None:
    """Look again and again until it is so."""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


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
    assert listener.hear() == [
        "STOPPING=1",
        "STATUS=finishing what runs",
        f"EXTEND_TIMEOUT_USEC={(GRACE + 2) * 1000000}",
    ]


def test_sigint_does_not_wait(manager: Manager, listener: Listener) -> None:
    then(lambda: listener.hear_until("READY=1"), send(signal.SIGINT))
    assert run(make(manager)) == 0
    assert manager.timeouts == [0.0]


def test_sighup_reads_the_options_again(
    manager: Manager, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    then(
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGHUP),
        manager.reloaded.wait,
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGTERM),
    )
    assert run(make(manager)) == 0
    begin = manager.calls.index("apply")
    assert manager.calls[begin : begin + 3] == ["apply", "adjust", "reload"]
    told = [record.getMessage() for record in caplog.records]
    assert "DEFAULT.debug: False -> True" in told
    assert "DEFAULT.host: needs a restart" in told
    assert "novalite-test has read its options again" in told


def test_a_reload_that_the_manager_refuses_is_undone(
    manager: Manager, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[Exception] = [ValueError("cpu_mode")]

    def refuse_once() -> None:
        manager.calls.append("reload")
        if errors:
            raise errors.pop()

    manager.reload = refuse_once  # type: ignore[method-assign]
    then(
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGHUP),
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGTERM),
    )
    assert run(make(manager)) == 0
    begin = manager.calls.index("apply")
    assert manager.calls[begin : begin + 6] == [
        *("apply", "adjust", "reload"),
        *("undo", "adjust", "reload"),
    ]
    assert "novalite-test keeps its former options: cpu_mode" in caplog.text
    assert "False -> True" not in caplog.text


def test_sighup_during_the_start_is_done_after_it(manager: Manager, listener: Listener) -> None:
    manager.blocked = threading.Event()
    program = make(manager)
    then(
        lambda: listener.hear_until("STATUS=starting"),
        send(signal.SIGHUP),
        lambda: wait_for(lambda: program._early_reload),
        manager.blocked.set,
        manager.reloaded.wait,
        send(signal.SIGTERM),
    )
    assert run(program) == 0
    assert manager.calls.index("periodic_tasks") < manager.calls.index("reload")


def test_bad_options_at_sighup_change_nothing(
    manager: Manager, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    def reread() -> None:
        raise ValueError("x.conf: [DEFAULT] report_interval = ten")

    class Handled(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            handled.append((record.levelname, sys.exc_info()[1]))
            return True

    handled: list[tuple[str, BaseException | None]] = []
    then(
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGHUP),
        lambda: listener.hear_until("READY=1"),
        send(signal.SIGTERM),
    )
    with caplog.filtering(Handled()):
        assert run(make(manager, reread)) == 0
    assert "reload" not in manager.calls
    [line] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert line.getMessage() == (
        "novalite-test keeps its former options: x.conf: [DEFAULT] report_interval = ten"
    )
    # An exception in hand would be told once more at the end of the line.
    assert ("ERROR", None) in handled
    assert not any(error for level, error in handled if level == "ERROR")


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
        systemd.Notifier({"NOTIFY_SOCKET": f"@{name}"}).send("READY=1", "STATUS=serving")
        assert channel.recv(100) == b"READY=1\nSTATUS=serving"


class TestWatchdog:
    """systemd hears that all is well as long as nothing is this process's own fault."""

    @pytest.fixture
    def away(self, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        return [True]

    def check(self, away: list[bool]) -> health.Check:
        def use() -> None:
            raise ValueError("does not work")

        def direct() -> None:
            if away:
                raise ValueError("is away")

        return health.Check("bus", use, direct)

    def test_an_outage_does_not_silence_it(
        self, manager: Manager, listener: Listener, away: list[bool]
    ) -> None:
        manager.checks = [self.check(away)]
        program = make(manager)

        def looked() -> bool:
            return health.ask(manager.socket)["status"] == "failing"

        then(
            lambda: listener.hear_until("READY=1"),
            lambda: wait_for(looked),
            *[lambda: listener.hear_until("WATCHDOG=1")] * 4,
            send(signal.SIGTERM),
        )
        assert run(program) == 0

    def test_a_fault_of_its_own_does(
        self, manager: Manager, listener: Listener, away: list[bool]
    ) -> None:
        away.clear()
        manager.checks = [self.check(away)]
        program = make(manager)
        heard: list[str] = []

        def silenced() -> bool:
            return program._watchdog is not None and not program._watchdog.is_well()

        def listen() -> None:
            while "STOPPING=1" not in heard:
                heard.extend(listener.hear())

        then(
            lambda: listener.hear_until("READY=1"),
            lambda: wait_for(silenced),
            lambda: then(listen),
            lambda: wait_for(lambda: health.ask(manager.socket)["status"] == "failing"),
            send(signal.SIGTERM),
        )
        assert run(program) == 0
        wait_for(lambda: "STOPPING=1" in heard)
        # One may have been under way.
        assert heard.count("WATCHDOG=1") <= 1


def test_monitors_are_answered_from_the_start_on(manager: Manager, listener: Listener) -> None:
    manager.blocked = threading.Event()
    seen: list[str] = []

    def look() -> None:
        seen.append(health.ask(manager.socket)["status"])

    then(
        lambda: listener.hear_until("STATUS=starting"),
        lambda: wait_for(manager.socket.exists),
        look,
        manager.blocked.set,
        lambda: listener.hear_until("READY=1"),
        look,
        send(signal.SIGTERM),
    )
    bus: Any = None
    program = make(manager)
    program.bus = bus
    assert run(program) == 0
    assert seen == ["starting", "ok"]
    assert not manager.socket.exists()
