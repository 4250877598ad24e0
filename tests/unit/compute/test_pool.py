# SPDX-License-Identifier: Apache-2.0
"""Pools of threads: errors, the end, and other sizes while work runs."""

import queue
import threading
import time

import pytest

from novalite.compute.pool import Pool


@pytest.mark.parametrize("size", [0, 1])
def test_a_pool_survives_errors(size):
    pool, done = Pool("test", size), threading.Event()

    def fail():
        raise RuntimeError("no")

    pool.submit(fail)
    pool.submit(done.set)
    assert done.wait(10.0)
    pool.stop()


def test_a_stopped_pool_starts_nothing():
    pool, done = Pool("test", 1), []
    pool.stop()
    pool.submit(done.append, 1)
    assert done == []


def test_a_pool_grows_and_shrinks():
    pool, gate, running = Pool("test", 1), threading.Event(), queue.Queue()

    def work(number):
        running.put(number)
        gate.wait(10.0)

    for number in range(4):
        pool.submit(work, number)
    assert running.get(timeout=10.0) == 0
    assert running.empty()
    pool.resize(3)
    assert {running.get(timeout=10.0) for _ in range(2)} == {1, 2}
    assert running.empty()
    pool.resize(1)
    gate.set()
    assert running.get(timeout=10.0) == 3
    pool.stop()


def test_a_pool_that_shrinks_keeps_to_its_size():
    pool, gates, running = Pool("test", 2), [threading.Event() for _ in range(4)], queue.Queue()

    def work(number):
        running.put(number)
        gates[number].wait(10.0)

    for number in range(4):
        pool.submit(work, number)
    assert {running.get(timeout=10.0) for _ in range(2)} == {0, 1}
    pool.resize(1)
    gates[0].set()
    wait_until(lambda: pool._threads == 1)
    assert running.empty()
    gates[1].set()
    assert running.get(timeout=10.0) == 2
    gates[2].set()
    assert running.get(timeout=10.0) == 3
    gates[3].set()
    pool.stop()


def test_a_pool_without_a_limit_runs_all_at_once():
    pool, meeting, done = Pool("test", 0), threading.Barrier(5), threading.Event()

    def work():
        meeting.wait(10.0)
        done.set()

    for _ in range(5):
        pool.submit(work)
    assert done.wait(10.0)
    pool.stop()


def wait_until(condition):
    end = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
