# SPDX-License-Identifier: Apache-2.0
"""What the tests of faults share: arming crash points, looking into the protocol, the table."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

# What is promised, in seconds after the return of what a server needs.
PROMISE = 30.0
# service_down_time of the standing cloud, in seconds; fast.conf has less than a start may take.
DOWN_TIME = 6.0
COMPUTES = ("compute1", "compute2")
CONDUCTORS = ("conductor1", "conductor2")
SCHEDULERS = ("scheduler1", "scheduler2")
# What is promised if a host never returns, in seconds after service_down_time.
MOVED = 10.0


@dataclass(slots=True)
class Table:
    """Point, final state and seconds to it; printed at the end of the session."""

    rows: list[tuple[str, str, float | None]] = field(default_factory=list)

    def add(self, point: str, state: str, seconds: float | None = None) -> None:
        """Note what became of a fault."""
        self.rows.append((point, state, seconds))

    def lines(self) -> list[str]:
        """Return the table as text."""
        if not self.rows:
            return []
        wide = max(len(point) for point, _, _ in self.rows)
        high = max(len(state) for _, state, _ in self.rows)
        return [
            f"{point:{wide}}  {state:{high}}  {'' if seconds is None else f'{seconds:6.1f} s'}"
            for point, state, seconds in self.rows
        ]


def arm(cloud: Cloud, point: str, *names: str) -> None:
    """Make the first of some running services that comes to a crash point die there."""
    mark = cloud.directory / f"{point}.{time.monotonic_ns()}"
    cloud.configure({"testing": {"crash_point": f"{point}@{mark}"}}, *names)
    cloud.reload(*names)


def play(cloud: Cloud, *names: str, **options: float) -> None:
    """Change how the fake hypervisors of running computes behave."""
    cloud.configure({"fake_libvirt": options}, *names)
    cloud.reload(*names)


def wait_action(
    cloud: Cloud, uuid: str, timeout: float = 20.0, **wanted: object
) -> Mapping[str, Any]:
    """Wait until the server's latest action has these columns, and return its row."""

    def found() -> Mapping[str, Any] | None:
        row = action(cloud, uuid)
        return row if all(row[name] == value for name, value in wanted.items()) else None

    return eventually(found, timeout, f"the action of {uuid} has {wanted}") or {}


def action(cloud: Cloud, uuid: str) -> Mapping[str, Any]:
    """Return the row of the server's latest action."""
    rows = cloud.rows(
        "select * from instance_actions where instance_uuid = :uuid order by id desc limit 1",
        uuid=uuid,
    )
    assert rows, f"{uuid} has no action"
    return rows[0]


def guests(cloud: Cloud, host: str) -> dict[str, int]:
    """Return uuid: state of the guests that a host's hypervisor has; 1 runs, 3 is paused."""
    file = cloud.store(host)
    if not file.exists():
        return {}
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5.0)
    try:
        return dict(connection.execute("select uuid, state from domains").fetchall())
    finally:
        connection.close()


def wait_spawning(cloud: Cloud, host: str, *uuids: str) -> None:
    """Wait until the host makes the guests: then it knows that it may, and nobody is asked."""
    eventually(
        lambda: set(uuids) <= guests(cloud, host).keys(), what=f"{host} makes guests of {uuids}"
    )


def hosts_of(cloud: Cloud, uuid: str) -> list[str]:
    """Return the hosts that have a guest of the server."""
    hosts = [name for name in cloud.names if name.startswith("compute")]
    return [host for host in hosts if uuid in guests(cloud, host)]


def enable(cloud: Cloud, host: str, on: bool = True) -> None:
    """Let the scheduler use a host, or not."""
    api = cloud.api
    api.microversion("2.11")  # the last form that names the service by its host
    body = {"host": host, "binary": "nova-compute"}
    answer = api.request("PUT", f"/os-services/{'enable' if on else 'disable'}", body)
    assert answer.status == 200, answer


def remove_all(cloud: Cloud) -> None:
    """Delete every server and wait until the books are empty."""
    api = cloud.api
    for server in api.servers():
        api.delete(server["id"])
    eventually(lambda: not api.servers(), 30.0, "all servers are gone")
    cloud.assert_books()


@contextmanager
def locked(cloud: Cloud) -> Iterator[None]:
    """Hold SQLite's one write lock inside the block."""
    connection = sqlite3.connect(cloud.directory / "novalite.db", timeout=5.0, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


class Standing:
    """One cloud for many tests of faults.

    :param make: starts a cloud
    """

    def __init__(self, make: Callable[..., Cloud]):
        self._make = make
        self._cloud: Cloud | None = None

    def get(self) -> Cloud:
        """Return the cloud; it is started when the first test wants it."""
        if self._cloud is None:
            config = {"DEFAULT": {"service_down_time": int(DOWN_TIME)}}
            self._cloud = self._make(conductors=2, schedulers=2, computes=2, config=config)
        return self._cloud

    def tidy(self) -> None:
        """Bring everything back to life, play no fault any more and remove all servers."""
        cloud, self._cloud = self.get(), None
        if cloud.broker is not None and not cloud.broker.alive():
            cloud.broker.start()
        for name in cloud.names:
            if cloud.alive(name):
                cloud.resume(name)
        cloud.configure({"testing": {"crash_point": ""}}, *cloud.names)
        cloud.start(*cloud.names)
        play(cloud, *COMPUTES, spawn_delay=0, fail_spawn=0, fail_destroy=0)
        for host in COMPUTES:
            enable(cloud, host)
        remove_all(cloud)
        self._cloud = cloud


@contextmanager
def stopwatch() -> Iterator[list[float]]:
    """Yield a list that holds the seconds that the block took, once it is over."""
    taken: list[float] = []
    began = time.monotonic()
    yield taken
    taken.append(time.monotonic() - began)
