# SPDX-License-Identifier: Apache-2.0
"""Checks answer in time, tell nothing that is nobody's business, and know whose fault it is."""

import json
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from novalite import exception, health


@pytest.fixture
def ended() -> Iterator[threading.Event]:
    """What hangs in a test hangs until this is set."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "TIMEOUT", 0.05)


class Thing:
    """A database, say: it counts, and fails if told to."""

    def __init__(self) -> None:
        self.looks = 0
        self.use_error: Exception | None = None
        self.direct_error: Exception | None = None

    def use(self) -> None:
        self.looks += 1
        if self.use_error:
            raise self.use_error

    def direct(self) -> None:
        if self.direct_error:
            raise self.direct_error

    def check(self, **values: bool) -> health.Check:
        return health.Check("database", self.use, self.direct, **values)


def made(*checks: health.Check, clock: Callable[[], float] = time.monotonic) -> health.Health:
    return health.Health(checks, clock)


def test_all_is_well() -> None:
    report = made(Thing().check()).report()
    assert (report.status, report.http_status) == ("ok", 200)
    body = report.body()
    assert body["checks"]["database"].pop("milliseconds") >= 0
    assert body == {"status": "ok", "checks": {"database": {"status": "ok"}}}


@pytest.mark.parametrize(
    ("needed", "status", "code"), [(True, "failing", 503), (False, "degraded", 200)]
)
def test_what_is_needed_decides(needed: bool, status: str, code: int) -> None:
    thing = Thing()
    thing.use_error = exception.BusUnavailable()
    report = made(thing.check(needed=needed)).report()
    assert (report.status, report.http_status) == (status, code)
    assert report.body()["checks"]["database"] == {"status": "failing", "reason": "unavailable"}


def test_no_text_of_a_library_gets_out() -> None:
    thing = Thing()
    thing.use_error = ValueError("password=secret at db.example.org")
    text = json.dumps(made(thing.check()).report().body())
    assert "secret" not in text and "example" not in text
    assert "ValueError" in text


def test_a_second_is_shared() -> None:
    moment = [100.0]
    thing = Thing()
    one = made(thing.check(), clock=lambda: moment[0])
    one.report()
    moment[0] += 0.9
    one.report()
    assert thing.looks == 1
    moment[0] += 0.2
    one.report()
    assert thing.looks == 2


def test_what_hangs_is_late_and_is_not_asked_twice(short: None, ended: threading.Event) -> None:
    calls: list[int] = []

    def hang() -> None:
        calls.append(1)
        ended.wait(10)

    moment = [0.0]
    one = made(health.Check("bus", hang, hang), clock=lambda: moment[0])
    for _ in range(3):
        began = time.monotonic()
        assert one.report().checks["bus"].reason == "no answer within 0.05 s"
        assert time.monotonic() - began < 2
        moment[0] += 5
    assert len(calls) == 1


class TestWatchdog:
    """Only a process that is broken itself is given up."""

    @pytest.fixture
    def thing(self) -> Thing:
        return Thing()

    @pytest.fixture
    def look(self, thing: Thing) -> Iterator[Callable[[], bool]]:
        moment = [0.0]
        watchdog = health.Watchdog(made(thing.check(), clock=lambda: moment[0]))

        def go() -> bool:
            moment[0] += 10
            watchdog.look()
            return watchdog.is_well()

        yield go

    def test_all_is_well(self, look: Callable[[], bool]) -> None:
        assert [look(), look(), look()] == [True, True, True]

    def test_an_outage_is_not_its_fault(self, thing: Thing, look: Callable[[], bool]) -> None:
        thing.use_error = thing.direct_error = exception.DatabaseUnavailable()
        assert [look() for _ in range(5)] == [True] * 5

    def test_it_is_at_fault_if_a_new_connection_works(
        self, thing: Thing, look: Callable[[], bool], caplog: pytest.LogCaptureFixture
    ) -> None:
        thing.use_error = exception.DatabaseUnavailable()
        # Once may be the moment in which the database comes back.
        assert [look(), look()] == [True, False]
        assert "cannot use its database although a new connection works" in caplog.text
        thing.use_error = None
        assert look()


class TestListener:
    """The unix socket."""

    def test_it_answers_its_owner_only(self, tmp_path: Path) -> None:
        listener = health.Listener(tmp_path / "a.sock", made(Thing().check()).report)
        listener.start()
        assert stat.S_IMODE(listener.path.stat().st_mode) == 0o600
        assert health.ask(listener.path)["status"] == "ok"
        listener.close()
        assert not listener.path.exists()
        with pytest.raises(OSError):
            health.ask(listener.path)

    def test_a_long_path_and_a_dead_predecessor(self, tmp_path: Path) -> None:
        path = tmp_path / ("d" * 100) / "a.sock"
        former = health.Listener(path, made().report)
        listener = health.Listener(path, lambda: health.Report(health.STARTING, {}))
        listener.start()
        former.close()
        assert health.ask(path) == {"status": "starting", "checks": {}}
        listener.close()

    def test_the_name_says_whose_it_is(self) -> None:
        path = health.default_path("/var/lib/novalite", "novalite-compute", "a/b")
        assert path == Path("/var/lib/novalite/novalite-compute-a_b.sock")
