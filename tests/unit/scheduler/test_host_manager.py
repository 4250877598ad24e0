# SPDX-License-Identifier: Apache-2.0
"""Pictures in memory: what is taken, what is shared, what is counted on top, who is up."""

import threading

import pytest

from novalite import exception
from novalite.objects.aggregate import Aggregate
from novalite.objects.capacity import Need
from novalite.scheduler.host_manager import OVERLAY_LIFE, HostManager, Settings
from tests.unit.scheduler import fakes


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Books:
    """What a database would hold: records with the moment of their last change."""

    def __init__(self):
        self.rows = {}
        self.moment = 50.0
        self.marks = []
        self.broken = None

    def put(self, node, service=None):
        self.moment += 1
        service = service or fakes.service(node.host)
        self.rows[node.hypervisor_hostname] = (self.moment, node, service)

    def load(self, mark, known):
        self.marks.append(mark)
        if self.broken:
            raise self.broken
        found = [
            (node, service)
            for moment, node, service in self.rows.values()
            if mark is None or moment > mark
        ]
        return found, self.moment


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def books():
    return Books()


@pytest.fixture
def manager(books, clock):
    return HostManager(books.load, Settings(), clock=clock)


def read(manager, clock, seconds=1.0):
    """Let time pass, refresh, and return the hosts by node name."""
    clock.now += seconds
    manager.refresh()
    with manager.hosts() as hosts:
        return {host.node: host for host in hosts}


def select(manager, uuid, name, memory_mb=1000):
    with manager.hosts() as hosts:
        host = next(host for host in hosts if host.node == name)
        host.consume(uuid, Need(memory_mb, 1, 1))
        manager.select([fakes.spec(uuid)], [host])


# -- reading


class Aggregates:
    """What a database would say about aggregates, with the versions that were asked with."""

    def __init__(self):
        self.version = 1
        self.hosts = {}
        self.asked = []

    def put(self, **hosts):
        self.version += 1
        self.hosts = hosts

    def __call__(self, version):
        self.asked.append(version)
        return None if version == self.version else (self.version, self.hosts)


def test_aggregates_are_joined_when_they_change(books, clock):
    aggregates = Aggregates()
    manager = HostManager(books.load, Settings(), aggregates=aggregates, clock=clock)
    left, fast = Aggregate(1, "a1", "left", "left"), Aggregate(2, "a2", "fast", None, {"ssd": "1"})
    books.put(fakes.node("h1"))
    books.put(fakes.node("n2", host="h2"))
    aggregates.put(h1=(left,), h2=(left, fast))
    hosts = read(manager, clock)
    assert [host.zone for host in hosts.values()] == ["left", "left"]
    assert hosts["n2"].aggregates == (left, fast)
    aggregates.put(h2=(fast,), h3=(left,))
    books.put(fakes.node("h3"))
    hosts = read(manager, clock)
    assert [host.zone for host in hosts.values()] == ["nova", "nova", "left"]
    assert [host.aggregates for host in hosts.values()] == [(), (fast,), (left,)]
    read(manager, clock)
    assert aggregates.asked == [None, 2, 3]


def test_first_everything_then_what_changed(manager, books, clock):
    books.put(fakes.node("h1"))
    books.put(fakes.node("h2"))
    assert list(read(manager, clock)) == ["h1", "h2"]
    books.put(fakes.node("h2", counter=2, memory_mb_used=5000))
    hosts = read(manager, clock)
    assert books.marks == [None, 52.0]
    assert hosts["h2"].free_ram_mb == 11384
    assert manager.picture_age() == 0.0


def test_hosts_keep_their_order(manager, books, clock):
    for name in ("c", "a", "b"):
        books.put(fakes.node(name))
    read(manager, clock)
    books.put(fakes.node("c", counter=2))
    books.put(fakes.node("aa"))
    assert list(read(manager, clock)) == ["c", "a", "b", "aa"]


def test_an_older_picture_is_not_taken(manager, books, clock):
    books.put(fakes.node("h1", epoch=2, counter=1, memory_mb_used=600))
    read(manager, clock)
    for epoch, counter in ((1, 99), (2, 1), (2, 0)):
        books.put(fakes.node("h1", epoch=epoch, counter=counter, memory_mb_used=9999))
        assert read(manager, clock)["h1"].picture.memory_mb_used == 600
    books.put(fakes.node("h1", epoch=3, counter=0, memory_mb_used=700))
    assert read(manager, clock)["h1"].picture.memory_mb_used == 700


@pytest.mark.parametrize("anew", ["node", "service"])
def test_a_node_or_service_made_anew_counts_from_the_start(manager, books, clock, anew):
    books.put(fakes.node("h1", epoch=7, counter=7))
    read(manager, clock)
    node, service = fakes.node("h1", epoch=1, counter=1, memory_mb_used=600), fakes.service("h1")
    if anew == "node":
        node.uuid = "another"
    else:
        service.uuid = "another"
    books.put(node, service)
    assert read(manager, clock)["h1"].picture.memory_mb_used == 600


def test_changed_totals_change_the_limits_with_the_next_request(manager, books, clock):
    books.put(fakes.node("h1", local_gb=199, local_gb_used=181))
    assert read(manager, clock)["h1"].rooms.disk.limit == 199.0
    books.put(fakes.node("h1", counter=2, local_gb=111710, local_gb_used=181))
    assert read(manager, clock, 0.06)["h1"].rooms.disk.limit == 111710.0


def test_a_sweep_reads_everything_and_forgets_what_is_gone(manager, books, clock):
    books.put(fakes.node("h1"))
    books.put(fakes.node("h2"))
    read(manager, clock)
    del books.rows["h1"]
    assert list(read(manager, clock)) == ["h1", "h2"]
    assert list(read(manager, clock, 60)) == ["h2"]
    assert books.marks[0] is books.marks[-1] is None
    assert None not in books.marks[1:-1]


def test_other_settings_hold_from_the_next_refresh_on(manager, books, clock):
    books.put(fakes.node("h1"), fakes.service(age=30))
    assert read(manager, clock)["h1"].up
    manager.configure(Settings(service_down_time=20, default_zone="other"))
    host = read(manager, clock)["h1"]
    assert (host.up, host.zone) == (False, "other")


# -- polls are shared


def test_one_poll_in_an_interval(manager, books, clock):
    manager.refresh()
    clock.now += 0.04
    manager.refresh()
    assert len(books.marks) == 1
    clock.now += 0.02
    manager.refresh()
    assert len(books.marks) == 2


class SlowLoad:
    """A load that stops until it is let go, and tells when it has begun."""

    def __init__(self, error=None):
        self.begun = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.calls = 0
        self.error = error

    def __call__(self, mark, known):
        self.calls += 1
        self.begun.release()
        assert self.go.acquire(timeout=10)
        if self.error:
            raise self.error
        return [], 1.0


class Callers:
    """Threads that refresh; ``arrived`` counts those that have read the clock on entering."""

    def __init__(self, manager, clock):
        self.manager, self.clock = manager, clock
        self.threads, self.errors = [], []

    def add(self, count):
        entered = threading.Semaphore(0)

        def run():
            entered.release()
            try:
                self.manager.refresh()
            except exception.DatabaseUnavailable as error:
                self.errors.append(error)

        for _ in range(count):
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            self.threads.append(thread)
            assert entered.acquire(timeout=10)

    def join(self):
        for thread in self.threads:
            thread.join(10)
            assert not thread.is_alive()


def test_callers_share_a_poll_that_began_recently(clock):
    load = SlowLoad()
    manager = HostManager(load, Settings(), clock=clock)
    callers = Callers(manager, clock)
    callers.add(1)
    assert load.begun.acquire(timeout=10)
    clock.now += 0.01
    callers.add(4)
    load.go.release()
    callers.join()
    assert load.calls == 1


def test_callers_that_come_later_share_one_further_poll(clock):
    load = SlowLoad()
    manager = HostManager(load, Settings(refresh_interval=0.05), clock=clock)
    callers = Callers(manager, clock)
    callers.add(1)
    assert load.begun.acquire(timeout=10)
    clock.now += 5.0
    callers.add(4)
    load.go.release()
    assert load.begun.acquire(timeout=10)
    load.go.release()
    callers.join()
    assert load.calls == 2


def test_a_failed_poll_fails_those_who_waited_for_it_and_nobody_else(clock):
    load = SlowLoad(exception.DatabaseUnavailable())
    manager = HostManager(load, Settings(), clock=clock)
    callers = Callers(manager, clock)
    callers.add(1)
    assert load.begun.acquire(timeout=10)
    load.go.release()
    callers.join()
    assert len(callers.errors) == 1
    load.error = None
    load.go.release()
    manager.refresh()
    assert load.calls == 2


def test_pictures_stay_and_grow_old_while_the_database_is_away(manager, books, clock):
    books.put(fakes.node("h1"))
    read(manager, clock)
    books.broken = exception.DatabaseUnavailable()
    clock.now += 3
    with pytest.raises(exception.DatabaseUnavailable):
        manager.refresh()
    assert manager.picture_age() == 3
    books.broken = None
    assert list(read(manager, clock)) == ["h1"]
    assert books.marks[-1] == 51.0


# -- the overlay


def test_a_selection_counts_until_the_picture_names_it(manager, books, clock):
    books.put(fakes.node("h1"))
    read(manager, clock)
    select(manager, "i1", "h1", 1000)
    select(manager, "i2", "h1", 300)
    assert read(manager, clock)["h1"].free_ram_mb == 16384 - 512 - 1300
    books.put(fakes.node("h1", counter=2, memory_mb_used=1512, instances=["i1"]))
    assert read(manager, clock)["h1"].free_ram_mb == 16384 - 1512 - 300
    books.put(fakes.node("h1", counter=3, memory_mb_used=1812, instances=["i1", "i2"]))
    assert read(manager, clock)["h1"].free_ram_mb == 16384 - 1812


def test_another_node_naming_it_does_not_end_it(manager, books, clock):
    books.put(fakes.node("h1"))
    books.put(fakes.node("h2"))
    read(manager, clock)
    select(manager, "i1", "h1")
    books.put(fakes.node("h2", counter=2, instances=["i1"]))
    assert read(manager, clock)["h1"].num_instances == 1


def test_a_selection_ends_when_unused(manager, books, clock):
    books.put(fakes.node("h1"))
    hosts = read(manager, clock)
    select(manager, "i1", "h1")
    manager.drop(["i1", "never selected"])
    assert hosts["h1"].num_instances == 0


def test_a_selection_ends_after_its_life(manager, books, clock):
    books.put(fakes.node("h1"))
    read(manager, clock)
    select(manager, "i1", "h1")
    clock.now += 5
    select(manager, "i2", "h1")
    assert read(manager, clock, OVERLAY_LIFE - 5.1)["h1"].num_instances == 2
    assert read(manager, clock, 0.2)["h1"].num_instances == 1
    assert read(manager, clock, 5)["h1"].num_instances == 0


def test_a_selection_ends_when_its_server_waits_for_no_place(books, clock):
    waiting = {"i1", "i2"}
    manager = HostManager(books.load, Settings(), waiting.intersection, clock=clock)
    books.put(fakes.node("h1"))
    read(manager, clock)
    select(manager, "i1", "h1")
    select(manager, "i2", "h1")
    assert read(manager, clock)["h1"].num_instances == 2
    # No picture ever names it: it went to another host, or was gone before the next look.
    waiting.remove("i1")
    assert read(manager, clock)["h1"].num_instances == 1
    assert manager.selected() == ["i2"]


def test_a_selection_made_anew_lives_anew(manager, books, clock):
    books.put(fakes.node("h1"))
    books.put(fakes.node("h2"))
    read(manager, clock)
    select(manager, "i1", "h1")
    select(manager, "i2", "h1")
    clock.now += 10
    manager.drop(["i1"])
    select(manager, "i1", "h2")
    hosts = read(manager, clock, OVERLAY_LIFE - 10)
    assert (hosts["h1"].num_instances, hosts["h2"].num_instances) == (0, 1)


def test_a_node_that_goes_takes_its_selections_along(manager, books, clock):
    books.put(fakes.node("h1"))
    read(manager, clock)
    select(manager, "i1", "h1")
    del books.rows["h1"]
    assert read(manager, clock, 60) == {}
    books.put(fakes.node("h1"))
    assert read(manager, clock)["h1"].num_instances == 0


# -- up and down


@pytest.mark.parametrize(
    ("age", "up"),
    [(0.0, True), (59.0, True), (60.0, True), (60.1, False), (-59.0, True), (-61, False)],
)
def test_up_is_heard_from_within_service_down_time(manager, books, clock, age, up):
    books.put(fakes.node("h1"), fakes.service(age=age))
    assert read(manager, clock)["h1"].up is up


def test_a_silent_host_goes_down_by_our_own_clock(books, clock):
    manager = HostManager(books.load, Settings(sweep_interval=1000), clock=clock)
    books.put(fakes.node("h1"), fakes.service("h1", age=10.0))
    books.put(fakes.node("h2"), fakes.service("h2", age=0.0))
    read(manager, clock)
    hosts = read(manager, clock, 50)
    assert (hosts["h1"].up, hosts["h2"].up) == (True, True)
    hosts = read(manager, clock, 0.1)
    assert (hosts["h1"].up, hosts["h2"].up) == (False, True)
    books.put(hosts["h1"].picture, fakes.service("h1", age=0.5))
    hosts = read(manager, clock, 1)
    assert (hosts["h1"].up, hosts["h2"].up) == (True, True)
    assert not read(manager, clock, 59.6)["h1"].up


def test_a_report_from_the_future_is_down_until_the_clock_comes_near(manager, books, clock):
    books.put(fakes.node("h1"), fakes.service(age=-65.0))
    assert not read(manager, clock)["h1"].up
    assert not read(manager, clock, 4.9)["h1"].up
    assert read(manager, clock, 0.2)["h1"].up


def test_never_heard_from_and_forced_down_are_down(manager, books, clock):
    books.put(fakes.node("h1"), fakes.service("h1", age=None))
    books.put(fakes.node("h2"), fakes.service("h2", forced_down=True))
    hosts = read(manager, clock)
    assert (hosts["h1"].up, hosts["h2"].up, hosts["h2"].forced_down) == (False, False, True)


def test_disabled_is_seen_without_a_new_picture(manager, books, clock):
    books.put(fakes.node("h1"))
    assert not read(manager, clock)["h1"].disabled
    books.put(fakes.node("h1"), fakes.service(disabled=True, disabled_reason="new disk"))
    host = read(manager, clock)["h1"]
    assert (host.disabled, host.disabled_reason) == (True, "new disk")


@pytest.mark.parametrize(
    ("service", "away"),
    [
        ({"age": 30.0}, False),  # it is up
        ({"age": 3600.0}, True),
        ({"age": None}, True),
        ({"age": 3600.0, "disabled": True}, False),
        ({"age": 1.0, "forced_down": True}, False),
    ],
)
def test_whether_any_host_is_away(manager, books, clock, service, away):
    books.put(fakes.node("h1"), fakes.service(**service))
    read(manager, clock)
    assert manager.any_away() is away


@pytest.mark.parametrize(
    ("service", "recent"),
    [
        ({"age": 30.0}, False),  # it is up
        ({"age": 61.0}, True),
        ({"age": 118.0}, True),
        ({"age": 119.5}, False),
        ({"age": None}, False),
        ({"age": 61.0, "disabled": True}, False),
        ({"age": 1.0, "forced_down": True}, False),
    ],
)
def test_recently_seen(manager, books, clock, service, recent):
    books.put(fakes.node("h1"), fakes.service(**service))
    read(manager, clock)
    clock.now += 1
    assert manager.recently_seen() is recent
