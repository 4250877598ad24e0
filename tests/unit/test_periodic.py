# SPDX-License-Identifier: Apache-2.0
"""Work that comes back, and how a reload changes when it does."""

import queue
import threading

import pytest

from novalite import exception, periodic

FOREVER = 3600.0


def test_a_shorter_spacing_holds_for_the_wait_that_goes_on() -> None:
    rounds: queue.Queue[int] = queue.Queue()
    asked = threading.Event()
    spacings = [FOREVER]

    def spacing() -> float:
        asked.set()
        return spacings[-1]

    task = periodic.Periodic("test", lambda: rounds.put(1), spacing)
    task.start()
    assert asked.wait(10)
    spacings.append(0.001)
    task.respace()
    rounds.get(timeout=10)
    rounds.get(timeout=10)
    task.stop()
    task.wait(10)


def test_respacing_starts_no_round() -> None:
    rounds: list[int] = []
    asked: queue.Queue[int] = queue.Queue()

    def spacing() -> float:
        asked.put(1)
        return FOREVER

    task = periodic.Periodic("test", lambda: rounds.append(1), spacing)
    task.start()
    asked.get(timeout=10)
    task.respace()
    asked.get(timeout=10)
    task.stop()
    task.wait(10)
    assert rounds == []


def test_an_error_is_not_the_end() -> None:
    done = threading.Event()
    errors = [RuntimeError("once")]

    def work() -> None:
        if errors:
            raise errors.pop()
        done.set()

    task = periodic.Periodic("test", work, 0.001, at_once=True)
    task.start()
    assert done.wait(10)
    task.stop()


def test_an_outage_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING")
    done = threading.Event()
    errors: list[Exception] = [exception.DatabaseUnavailable() for _ in range(3)]

    def work() -> None:
        if errors:
            raise errors.pop()
        done.set()

    task = periodic.Periodic("recovery", work, 0.001, at_once=True)
    task.start()
    assert done.wait(10)
    task.stop()
    task.wait(10)
    assert [(each.getMessage(), each.exc_info) for each in caplog.records] == [
        (
            "recovery is left for later: The database is currently unavailable, try again.",
            None,
        )
    ]
