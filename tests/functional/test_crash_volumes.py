# SPDX-License-Identifier: Apache-2.0
"""Crashes with volumes: a server has one volume, attached to its host, and leaves none."""

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
POINTS = ["volumes.after_create", "volumes.after_attach", "build.after_spawn"]


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


def volumes(cloud: Cloud) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return of each volume its state, and the servers and hosts that have it."""
    token = password_token(cloud.endpoints.auth_url, "admin", PASSWORDS["admin"], "admin")
    client = Client(cloud.endpoints.volume_url, {"X-Auth-Token": token})
    found: list[dict[str, Any]] = client.get("/v3/x/volumes/detail?all_tenants=1")["volumes"]
    return [
        (
            volume["status"],
            [(each["server_id"], each["host_name"]) for each in volume["attachments"]],
        )
        for volume in found
    ]


def boot(cloud: Cloud) -> str:
    """Ask for a server that boots from a new volume."""
    api = cloud.client("demo", "demo")
    device = {
        "source_type": "image",
        "destination_type": "volume",
        "uuid": api.image,
        "boot_index": 0,
        "volume_size": 1,
        "delete_on_termination": True,
    }
    return api.boot(imageRef="", block_device_mapping_v2=[device])


def remove(cloud: Cloud, uuid: str) -> None:
    """Delete the server; its volume goes with it."""
    cloud.api.delete(uuid)
    cloud.api.wait_gone(uuid)
    assert volumes(cloud) == []
    cloud.assert_books()


class TestVolumes:
    """One cloud with neighbours."""

    @pytest.mark.parametrize("point", POINTS)
    def test_a_build_that_starts_over(
        self, only_first: Cloud, table: faults.Table, point: str
    ) -> None:
        cloud = only_first
        faults.arm(cloud, point, FIRST)
        uuid = boot(cloud)
        cloud.wait_dead(FIRST)
        assert len(volumes(cloud)) == 1
        cloud.start(FIRST)
        cloud.api.wait(uuid, timeout=faults.PROMISE)
        assert volumes(cloud) == [("in-use", [(uuid, FIRST)])]
        remove(cloud, uuid)
        table.add(f"{point} with a volume, returns", "ACTIVE, one volume")

    def test_a_build_moves_and_its_volume_with_it(
        self, only_first: Cloud, table: faults.Table
    ) -> None:
        cloud = only_first
        faults.arm(cloud, "volumes.after_attach", FIRST)
        uuid = boot(cloud)
        cloud.wait_dead(FIRST)
        assert volumes(cloud) == [("in-use", [(uuid, FIRST)])]
        faults.enable(cloud, SECOND)
        with faults.stopwatch() as taken:
            cloud.api.wait(uuid, timeout=2 * (faults.DOWN_TIME + faults.MOVED))
        table.add("volumes.after_attach, never returns", "ACTIVE, one volume", taken[0])
        assert volumes(cloud) == [("in-use", [(uuid, SECOND)])]
        cloud.start(FIRST)
        cloud.assert_books(faults.PROMISE)
        assert volumes(cloud) == [("in-use", [(uuid, SECOND)])]
        remove(cloud, uuid)

    def test_a_delete_without_the_host(self, only_first: Cloud, table: faults.Table) -> None:
        cloud = only_first
        faults.arm(cloud, "volumes.after_attach", FIRST)
        uuid = boot(cloud)
        cloud.wait_dead(FIRST)
        with faults.stopwatch() as taken:
            cloud.api.delete(uuid)
            cloud.api.wait_gone(uuid, 2 * (faults.DOWN_TIME + faults.MOVED))
        eventually(lambda: volumes(cloud) == [], what="the volume is given back")
        table.add("delete with a volume, host never returns", "gone, no volume", taken[0])
        cloud.start(FIRST)
        cloud.assert_books(faults.PROMISE)
