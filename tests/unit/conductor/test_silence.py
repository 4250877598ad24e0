# SPDX-License-Identifier: Apache-2.0
"""Silence is measured by one conductor on its own clock, and only while it looks all the time."""

import pytest

from novalite.conductor import recovery
from novalite.conductor.silence import Watch
from novalite.objects.service import Service

DOWN = 60.0
GAP = 4.0


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watch(clock):
    return Watch(DOWN, clock)


def host(counter, epoch=1, name="h1"):
    return Service(1, "uuid", name, "nova-compute", epoch=epoch, report_count=counter)


def look(watch, clock, seconds, *services):
    """Look once a second for so many seconds, the first time at once."""
    end = clock.now + seconds
    watch.observe(services, GAP)
    while clock.now < end:
        clock.now += 1.0
        watch.observe(services, GAP)


def test_a_counter_that_stands_still_long_enough_is_silence(watch, clock):
    look(watch, clock, DOWN - 1, host(7, epoch=2))
    assert watch.silent("h1") is None
    look(watch, clock, 1, host(7, epoch=2))
    assert watch.silent("h1") == (2, 7)


def test_each_report_starts_the_watch_anew(watch, clock):
    look(watch, clock, DOWN - 1, host(7))
    look(watch, clock, DOWN - 1, host(8))
    assert watch.silent("h1") is None
    look(watch, clock, 1, host(8))
    assert watch.silent("h1") == (1, 8)


def test_a_new_start_of_the_host_starts_the_watch_anew(watch, clock):
    look(watch, clock, DOWN, host(0, epoch=1))
    look(watch, clock, 1, host(0, epoch=2))
    assert watch.silent("h1") is None


def test_an_unknown_host_is_not_silent(watch, clock):
    look(watch, clock, DOWN, host(1))
    assert watch.silent("h2") is None


def test_a_host_that_was_removed_is_forgotten(watch, clock):
    look(watch, clock, DOWN, host(1))
    watch.observe([], GAP)
    assert watch.silent("h1") is None


def test_a_gap_between_two_looks_starts_every_watch_anew(watch, clock):
    look(watch, clock, DOWN, host(1))
    clock.now += GAP + 0.1
    watch.observe([host(1)], GAP)
    assert watch.silent("h1") is None
    look(watch, clock, DOWN, host(1))
    assert watch.silent("h1") == (1, 1)


def test_a_conductor_that_has_not_looked_lately_knows_of_no_silence(watch, clock):
    """It was stopped, and its recovery goes on before the watch has looked again."""
    look(watch, clock, 2, host(1))
    clock.now += DOWN
    assert watch.silent("h1") is None


def test_a_reset_starts_every_watch_anew(watch, clock):
    look(watch, clock, DOWN, host(1))
    watch.reset()
    assert watch.silent("h1") is None
    look(watch, clock, DOWN - 1, host(1))
    assert watch.silent("h1") is None


def test_hosts_are_watched_one_by_one(watch, clock):
    for second in range(int(DOWN) + 1):
        watch.observe([host(1), host(second, name="h2")], GAP)
        clock.now += 1.0
    assert watch.silent("h1") == (1, 1)
    assert watch.silent("h2") is None


def test_only_computes_are_looked_at(books, clock):
    books.register("h1"), books.register("h2", binary="nova-scheduler")
    watch = Watch(DOWN, clock)
    for _ in range(int(DOWN) + 1):
        recovery.watch_hosts(books.database, watch, GAP)
        clock.now += 1.0
    assert watch.silent("h1") == (1, 0)
    assert watch.silent("h2") is None
