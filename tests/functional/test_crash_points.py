# SPDX-License-Identifier: Apache-2.0
"""A process dies at a named point of a boot or a delete, and comes back or does not.

Each point has its own test; those of the computes happen side by side, one host a point, since
most of the time goes into waiting.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from novalite import crash
from tests.functional import faults
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.drill

Make = Callable[..., Cloud]

CONDUCTOR = [point for point in crash.POINTS if point.startswith("conductor.")]
COMPUTE = [point for point in crash.POINTS if point.startswith(("build.", "delete."))]
# Those are tried in test_crash_volumes.py.
VOLUMES = [point for point in crash.POINTS if point.startswith("volumes.")]
BUILDS = [point for point in COMPUTE if point.startswith("build.")]
HOSTS = {point: f"compute{number}" for number, point in enumerate(COMPUTE, 1)}
OTHER = f"compute{len(COMPUTE) + 1}"
# All computes are started again at once: that they are back in time must not hang on the machine.
DOWN_TIME = 10


def test_every_point_is_tried() -> None:
    assert sorted(CONDUCTOR + COMPUTE + VOLUMES) == sorted(crash.POINTS)


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    return make_class_cloud()


class TestConductor:
    """The conductor dies at each point of a boot and is started again."""

    @pytest.mark.parametrize("point", CONDUCTOR)
    def test_the_boot_ends_well(self, cloud: Cloud, table: faults.Table, point: str) -> None:
        faults.arm(cloud, point, "conductor")
        uuid = cloud.api.boot(point)
        cloud.wait_dead("conductor")
        cloud.start("conductor")
        with faults.stopwatch() as taken:
            cloud.api.wait(uuid, timeout=faults.PROMISE)
        table.add(f"{point}, returns", "ACTIVE, one guest", taken[0])
        cloud.assert_books()
        assert faults.action(cloud, uuid)["state"] == "done"
        faults.remove_all(cloud)


@pytest.fixture(scope="class")
def two_conductors(only_in_drill: None, make_class_cloud: Make) -> Cloud:
    return make_class_cloud(conductors=2)


class TestConductorNeverReturns:
    """The conductor dies at each point; another one takes over."""

    @pytest.mark.parametrize("point", CONDUCTOR)
    def test_the_boot_ends_well(
        self, two_conductors: Cloud, table: faults.Table, point: str
    ) -> None:
        cloud = two_conductors
        names = [name for name in cloud.names if name.startswith("conductor")]
        faults.arm(cloud, point, *names)
        uuid = cloud.api.boot(point)
        dead = eventually(lambda: [name for name in names if not cloud.alive(name)])
        with faults.stopwatch() as taken:
            cloud.api.wait(uuid, timeout=faults.PROMISE)
        table.add(f"{point}, never returns", "ACTIVE, one guest", taken[0])
        cloud.assert_books()
        cloud.start(*dead)
        faults.remove_all(cloud)


@dataclass(frozen=True, slots=True)
class End:
    """What became of one server."""

    status: str
    seconds: float


class Hosts:
    """One compute a point and one other; what is done to them is done side by side."""

    def __init__(self, cloud: Cloud):
        self.cloud = cloud
        self.api = cloud.api
        self.servers: dict[str, str] = {}
        self.since: dict[str, float] = {}

    def strike(self) -> None:
        """Boot or delete one server on each host, which dies of it; the other is disabled then."""
        self.servers.clear()
        self.since.clear()
        for host in [*HOSTS.values(), OTHER]:
            faults.enable(self.cloud, host, False)
        for point in COMPUTE:
            if point not in BUILDS:
                self._boot(point)
        for uuid in self.servers.values():
            self.api.wait(uuid)
        for point, host in HOSTS.items():
            faults.arm(self.cloud, point, host)
        for point in COMPUTE:
            if point in BUILDS:
                self._boot(point)
            else:
                self.api.delete(self.servers[point])
        for point, host in HOSTS.items():
            self.cloud.wait_dead(host)
            self.since[point] = time.monotonic()

    def _boot(self, point: str) -> None:
        """Let the point's host have the server, the only one that is enabled meanwhile."""
        faults.enable(self.cloud, HOSTS[point])
        self.servers[point] = self.api.boot(point)
        faults.wait_action(self.cloud, self.servers[point], target_host=HOSTS[point])
        faults.enable(self.cloud, HOSTS[point], False)

    def settle(self, timeout: float) -> dict[str, End]:
        """Wait until every server is ACTIVE, ERROR or gone, or *timeout* is over."""
        ends: dict[str, End] = {}
        limit = time.monotonic() + timeout
        while len(ends) < len(self.servers) and time.monotonic() < limit:
            found = {server["id"]: server["status"] for server in self.api.servers()}
            moment = time.monotonic()
            for point, uuid in self.servers.items():
                status = found.get(uuid, "gone")
                if point in BUILDS or status != "ACTIVE":
                    if point not in ends and status != "BUILD":
                        ends[point] = End(status, moment - self.since[point])
            time.sleep(0.05)
        return ends


@pytest.fixture(scope="class")
def hosts(make_class_cloud: Make) -> Hosts:
    config = {"DEFAULT": {"service_down_time": DOWN_TIME}}
    return Hosts(make_class_cloud(computes=len(HOSTS) + 1, config=config))


@pytest.fixture(scope="class")
def returned(hosts: Hosts) -> dict[str, End]:
    """The computes die and are started again."""
    hosts.strike()
    for host in HOSTS.values():
        faults.enable(hosts.cloud, host)
    hosts.cloud.start(*HOSTS.values())
    hosts.since = dict.fromkeys(HOSTS, time.monotonic())
    return hosts.settle(faults.PROMISE)


@pytest.fixture(scope="class")
def moved(hosts: Hosts, returned: dict[str, End]) -> dict[str, End]:
    """The computes die, and only the other one is left."""
    faults.remove_all(hosts.cloud)
    hosts.strike()
    faults.enable(hosts.cloud, OTHER)
    return hosts.settle(2 * (DOWN_TIME + faults.MOVED))


class TestCompute:
    """A compute dies at each point of a boot and a delete, returns, dies again and stays away."""

    @pytest.mark.parametrize("point", COMPUTE)
    def test_a_compute_that_returns(
        self, returned: dict[str, End], table: faults.Table, point: str
    ) -> None:
        end = returned[point]
        assert end.status == ("ACTIVE" if point in BUILDS else "gone")
        table.add(f"{point}, returns", _told(end), end.seconds)

    def test_the_books_after_their_return(self, hosts: Hosts, returned: dict[str, End]) -> None:
        books = hosts.cloud.assert_books()
        assert len(books.servers) == len(BUILDS)

    @pytest.mark.parametrize("point", COMPUTE)
    def test_a_compute_that_never_returns(
        self, hosts: Hosts, moved: dict[str, End], table: faults.Table, point: str
    ) -> None:
        end = moved[point]
        table.add(f"{point}, never returns", _told(end), end.seconds)
        assert end.status == ("ACTIVE" if point in BUILDS else "gone")
        if point in BUILDS:
            uuid = hosts.servers[point]
            home = hosts.api.show(uuid)["OS-EXT-SRV-ATTR:host"]
            # After finish it is a server of the dead host, which only an evacuation moves.
            assert home != HOSTS[point] or point == "build.after_finish"
            assert uuid in faults.guests(hosts.cloud, home)

    def test_late_returns_leave_no_second_guest(
        self, hosts: Hosts, moved: dict[str, End], table: faults.Table
    ) -> None:
        hosts.cloud.start(*HOSTS.values())
        with faults.stopwatch() as taken:
            books = hosts.cloud.assert_books(faults.PROMISE)
        table.add("all computes return late", "ACTIVE, one guest each", taken[0])
        assert len(books.servers) == len(BUILDS)
        faults.remove_all(hosts.cloud)


def _told(end: End) -> str:
    return "ACTIVE, one guest" if end.status == "ACTIVE" else end.status
