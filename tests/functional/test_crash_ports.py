# SPDX-License-Identifier: Apache-2.0
"""Crashes with a real network: a server has one port, bound to its host, and leaves none."""

from collections.abc import Callable
from typing import Any

import pytest

from novalite.devcloud.client import Client, password_token
from tests.functional import faults
from tests.functional.cloud import PASSWORDS, Cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.drill

Make = Callable[..., Cloud]

FIRST, SECOND = "compute1", "compute2"


@pytest.fixture(scope="class")
def cloud(only_in_drill: None, make_class_cloud: Make) -> Cloud:
    config = {"DEFAULT": {"service_down_time": int(faults.DOWN_TIME)}}
    return make_class_cloud(auth="keystone", computes=2, config=config)


@pytest.fixture
def only_first(cloud: Cloud) -> Cloud:
    """The cloud with one host in use."""
    faults.enable(cloud, FIRST)
    faults.enable(cloud, SECOND, False)
    return cloud


def ports(cloud: Cloud) -> dict[str, list[str]]:
    """Return server: hosts of its ports, as the network service has them."""
    token = password_token(cloud.endpoints.auth_url, "admin", PASSWORDS["admin"], "admin")
    client = Client(cloud.endpoints.network_url, {"X-Auth-Token": token})
    found: list[dict[str, Any]] = client.get("/v2.0/ports")["ports"]
    bound: dict[str, list[str]] = {}
    for port in found:
        if port["device_owner"].startswith("compute:"):
            bound.setdefault(port["device_id"], []).append(port["binding:host_id"])
    return bound


def boot(cloud: Cloud) -> str:
    """Ask for a server with a port on the shared network."""
    return cloud.client("demo", "demo").boot(networks="auto")


def remove(cloud: Cloud, uuid: str) -> None:
    """Delete the server; its port goes with it."""
    cloud.api.delete(uuid)
    cloud.api.wait_gone(uuid)
    assert ports(cloud) == {}
    cloud.assert_books()


class TestPorts:
    """One cloud with neighbours."""

    def test_a_build_moves_and_its_port_with_it(
        self, only_first: Cloud, table: faults.Table
    ) -> None:
        cloud = only_first
        faults.arm(cloud, "build.after_network", FIRST)
        uuid = boot(cloud)
        cloud.wait_dead(FIRST)
        assert ports(cloud) == {uuid: [FIRST]}
        faults.enable(cloud, SECOND)
        with faults.stopwatch() as taken:
            server = cloud.api.wait(uuid, timeout=2 * (faults.DOWN_TIME + faults.MOVED))
        table.add("build.after_network with a port, never returns", "ACTIVE, one port", taken[0])
        assert server["OS-EXT-SRV-ATTR:host"] == SECOND
        assert ports(cloud) == {uuid: [SECOND]}
        cloud.start(FIRST)
        cloud.assert_books(faults.PROMISE)
        assert ports(cloud) == {uuid: [SECOND]}
        remove(cloud, uuid)

    def test_a_delete_without_the_host(self, only_first: Cloud, table: faults.Table) -> None:
        cloud = only_first
        uuid = boot(cloud)
        cloud.api.wait(uuid)
        faults.arm(cloud, "delete.after_mark", FIRST)
        cloud.api.delete(uuid)
        cloud.wait_dead(FIRST)
        with faults.stopwatch() as taken:
            cloud.api.wait_gone(uuid, 2 * (faults.DOWN_TIME + faults.MOVED))
        eventually(lambda: ports(cloud) == {}, what="the port is given back")
        table.add("delete.after_mark with a port, never returns", "gone, no port", taken[0])
        cloud.start(FIRST)
        cloud.assert_books(faults.PROMISE)

    @pytest.mark.parametrize("point", ["build.after_network", "build.after_spawn"])
    def test_a_build_that_starts_over(
        self, only_first: Cloud, table: faults.Table, point: str
    ) -> None:
        cloud = only_first
        faults.arm(cloud, point, FIRST)
        uuid = boot(cloud)
        cloud.wait_dead(FIRST)
        cloud.start(FIRST)
        cloud.api.wait(uuid, timeout=faults.PROMISE)
        assert ports(cloud) == {uuid: [FIRST]}
        cloud.assert_books()
        remove(cloud, uuid)
        table.add(f"{point} with a port, returns", "ACTIVE, one port")

    @pytest.mark.parametrize("when", ["in the build", "after the build"])
    def test_a_delete_of_a_build_whose_host_dies(
        self, only_first: Cloud, table: faults.Table, when: str
    ) -> None:
        cloud = only_first
        point = "build.after_network" if when == "in the build" else "build.after_finish"
        faults.arm(cloud, point, FIRST)
        uuid = boot(cloud)
        cloud.wait_dead(FIRST)
        cloud.api.delete(uuid)
        cloud.start(FIRST)
        cloud.api.wait_gone(uuid, faults.PROMISE)
        cloud.assert_books(faults.PROMISE)
        eventually(lambda: ports(cloud) == {}, what="the port is given back")
        table.add(f"delete with a port, host dies {when}", "gone, no port")
