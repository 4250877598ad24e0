# SPDX-License-Identifier: Apache-2.0
"""Services are killed, stopped and started while servers are asked for and built."""

import pytest

from tests.functional import faults
from tests.functional.cloud import Cloud

pytestmark = pytest.mark.drill

HOST = "compute1"
NUMBER = 5


@pytest.fixture
def cloud(standing: Cloud) -> Cloud:
    """The standing cloud with one host in use."""
    faults.enable(standing, "compute2", False)
    return standing


def assert_all(cloud: Cloud, servers: list[str], table: faults.Table, point: str) -> None:
    """All are ACTIVE in time, with one guest each."""
    with faults.stopwatch() as taken:
        states = cloud.api.wait_settled(servers, faults.PROMISE)
    assert states == dict.fromkeys(servers, "ACTIVE")
    books = cloud.assert_books()
    assert books.guests[HOST] == sorted(servers)
    table.add(point, "ACTIVE, one guest each", taken[0])


def test_v33_builds_that_had_not_begun(cloud: Cloud, table: faults.Table) -> None:
    cloud.pause(HOST)
    servers = [cloud.api.boot(f"vm{number}") for number in range(NUMBER)]
    for uuid in servers:
        faults.wait_action(cloud, uuid, step="started")
    cloud.kill(HOST)
    cloud.start(HOST)
    assert_all(cloud, servers, table, "V33: killed before the claims")
    faults.remove_all(cloud)


def test_v33_builds_that_had_begun(cloud: Cloud, table: faults.Table) -> None:
    faults.play(cloud, HOST, spawn_delay=2)
    cloud.configure({"DEFAULT": {"max_concurrent_builds": 2}}, HOST)
    cloud.restart(HOST)
    servers = [cloud.api.boot(f"vm{number}") for number in range(NUMBER)]
    for uuid in servers:
        faults.wait_action(cloud, uuid, step="begun")
    cloud.kill(HOST)
    cloud.configure({"DEFAULT": {"max_concurrent_builds": 10}}, HOST)
    cloud.start(HOST)
    assert_all(cloud, servers, table, "V33: killed while it builds")
    faults.remove_all(cloud)


def test_a_planned_restart_of_the_only_host(cloud: Cloud, table: faults.Table) -> None:
    faults.play(cloud, HOST, spawn_delay=1)
    servers = cloud.api.boot_many(2)
    for uuid in servers:
        faults.wait_action(cloud, uuid, step="begun")
    cloud.stop(HOST)
    servers += [cloud.api.boot(f"away{number}") for number in range(NUMBER)]
    cloud.launch(HOST)
    servers += [cloud.api.boot(f"coming{number}") for number in range(NUMBER)]
    assert_all(cloud, servers, table, "the only host restarts")


def test_both_schedulers_are_away(cloud: Cloud, table: faults.Table) -> None:
    for name in faults.SCHEDULERS:
        cloud.kill(name)
    servers = [cloud.api.boot(f"vm{number}") for number in range(3)]
    cloud.start(*faults.SCHEDULERS)
    assert_all(cloud, servers, table, "both schedulers return")


def test_both_conductors_are_away(cloud: Cloud, table: faults.Table) -> None:
    for name in faults.CONDUCTORS:
        cloud.kill(name)
    servers = [cloud.api.boot(f"vm{number}") for number in range(3)]
    cloud.start(*faults.CONDUCTORS)
    assert_all(cloud, servers, table, "both conductors return")


def test_the_api_dies_after_its_answer(cloud: Cloud, table: faults.Table) -> None:
    for name in faults.CONDUCTORS:
        cloud.pause(name)
    servers = [cloud.api.boot(f"vm{number}") for number in range(3)]
    cloud.kill("api")
    for name in faults.CONDUCTORS:
        cloud.resume(name)
    for uuid in servers:
        faults.wait_action(cloud, uuid, faults.PROMISE, state="done")
    cloud.start("api")
    assert_all(cloud, servers, table, "the API dies after its answer")
