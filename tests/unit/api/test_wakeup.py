# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import pytest

from novalite import context as context_module
from novalite.api import wakeup


class Queue:
    """A sender that waits to be told to send."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def send(self, what: str, cast: Callable[[], None]) -> None:
        self.waiting.append(cast)

    def run(self) -> None:
        waiting, self.waiting = self.waiting, []
        for cast in waiting:
            cast()


class Bus:
    def __init__(self) -> None:
        self.down = False
        self.sent: list[tuple[Any, Any, Any]] = []

    def run_reservations(self, context: Any, *, reservation_ids: list[str]) -> None:
        if self.down:
            raise OSError("no broker")
        self.sent.append((context, "conductor", reservation_ids))

    def destroy_instances(self, context: Any, *, host: str, requests: list[Any]) -> None:
        self.sent.append((context, host, requests))


@pytest.fixture
def parts() -> tuple[wakeup.Wakeup, Bus, Queue]:
    bus, queue = Bus(), Queue()
    return wakeup.Wakeup(bus, bus, queue), bus, queue  # type: ignore[arg-type]


def context(number: int) -> context_module.RequestContext:
    return context_module.RequestContext(request_id=f"req-{number}", overwrite=False)


def test_one_alone_carries_its_own_request_id(parts: Any) -> None:
    waker, bus, queue = parts
    waker.run_reservation(context(1), "r-1")
    queue.run()
    assert [(sent[0].request_id, sent[2]) for sent in bus.sent] == [("req-1", ["r-1"])]


def test_what_waits_goes_in_one_message(parts: Any) -> None:
    waker, bus, queue = parts
    for number in range(3):
        waker.run_reservation(context(number), f"r-{number}")
    assert len(queue.waiting) == 1
    queue.run()
    assert [sent[2] for sent in bus.sent] == [["r-0", "r-1", "r-2"]]
    waker.run_reservation(context(9), "r-9")
    queue.run()
    assert bus.sent[1][2] == ["r-9"]


def test_a_crowd_gathers_for_the_next_message(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    waker, _bus, queue = parts
    rests: list[float] = []
    monkeypatch.setattr("novalite.api.wakeup.time.monotonic", lambda: 100.0)
    monkeypatch.setattr("novalite.api.wakeup.time.sleep", rests.append)

    def send(*names: str) -> None:
        for name in names:
            waker.run_reservation(context(1), name)
        queue.run()

    send("r-1")
    send("r-2", "r-3")
    assert rests == [], "neither had a crowd before it"
    send("r-4")
    assert rests == [pytest.approx(wakeup.SPACING)]
    send("r-5")
    assert len(rests) == 1, "r-4 went alone"


def test_one_message_is_bounded(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeup, "BATCH", 2)
    waker, bus, queue = parts
    for number in range(5):
        waker.run_reservation(context(number), f"r-{number}")
    queue.run()
    assert [sent[2] for sent in bus.sent] == [["r-0", "r-1"], ["r-2", "r-3"], ["r-4"]]


def test_deletes_go_by_host(parts: Any) -> None:
    waker, bus, queue = parts
    for host, request in (("a", 1), ("b", 2), ("a", 3)):
        waker.destroy(context(request), host, request)
    queue.run()
    assert sorted((sent[1], sent[2]) for sent in bus.sent) == [("a", [1, 3]), ("b", [2])]


def test_too_many_are_left_to_recovery(
    parts: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wakeup, "LIMIT", 2)
    waker, bus, queue = parts
    for number in range(3):
        waker.run_reservation(context(number), f"r-{number}")
    assert "recovery" in caplog.text
    queue.run()
    assert bus.sent[0][2] == ["r-0", "r-1"]
    waker.run_reservation(context(4), "r-4")
    queue.run()
    assert bus.sent[1][2] == ["r-4"]


def test_after_a_failure_it_rests_and_collects(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now, rests = [100.0], []
    monkeypatch.setattr(wakeup.time, "monotonic", lambda: now[0])
    monkeypatch.setattr("novalite.api.wakeup.time.sleep", rests.append)
    waker, bus, queue = parts
    bus.down = True
    waker.run_reservation(context(1), "r-1")
    with pytest.raises(OSError):
        queue.run()
    bus.down = False
    now[0] = 100.25
    waker.run_reservation(context(2), "r-2")
    queue.run()
    assert rests == [0.75]
    assert [sent[2] for sent in bus.sent] == [["r-2"]]
    waker.run_reservation(context(3), "r-3")
    queue.run()
    assert rests == [0.75]
