# SPDX-License-Identifier: Apache-2.0
"""A cloud with two of everything that a list can show, for the tests of whole bodies."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from novalite.db import actions
from novalite.objects import base
from novalite.objects.action import ActionEvent
from novalite.objects.block_device import BlockDevice
from novalite.objects.instance import NetworkInfo
from tests.unit.api.cloud import FLAVOR, Cloud

PROJECT = "admin"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN1uKmuHJochoaji53iDlBgUKicsU6Ee9sY3cUCZKyXl joe@box"
NETWORK = NetworkInfo(
    port_id=str(uuid.uuid4()),
    network_id=str(uuid.uuid4()),
    network_name="net",
    mac_address="fa:16:3e:00:00:01",
    fixed_ips=[{"subnet_id": "s", "ip_address": "10.0.0.7"}],
)
# Their keys are names that users or hypervisors make up.
VOLUME = BlockDevice("volume", volume_id="v", boot_index=None, device_name="/dev/vdb")
FREE = frozenset(("metadata", "meta", "extra_specs", "cpu_info", "rules", "addresses", "hosts"))


@dataclass
class World:
    """The cloud, and what stands for the names in braces of a URL."""

    cloud: Cloud
    values: dict[str, str]

    def url(self, route: str) -> str:
        """Return the URL of a route, which may name a query."""
        return route.format(**self.values)


def make(cloud: Cloud) -> World:
    """Fill the cloud."""
    group = _made(cloud, "/os-server-groups", "server_group", name="g", policies=["affinity"])
    _made(cloud, "/os-server-groups", "server_group", name="h", policies=["affinity"])
    for name in ("one", "two"):
        _made(cloud, "/os-keypairs", "keypair", name=name, public_key=KEY)
    private = {"vcpus": 1, "ram": 1, "disk": 1, "os-flavor-access:is_public": False}
    _made(cloud, "/flavors", "flavor", name="private", id="private", **private)
    access = {"addTenantAccess": {"tenant": PROJECT}}
    assert cloud.call("POST", "/flavors/private/action", access).status_code == 200
    node = cloud.add_node("h1")
    empty = cloud.add_node("h2")
    aggregate = _made(cloud, "/os-aggregates", "aggregate", name="a", availability_zone="left")
    _made(cloud, "/os-aggregates", "aggregate", name="b")
    joined = {"add_host": {"host": "h2"}}
    path = f"/os-aggregates/{aggregate['id']}/action"
    assert cloud.call("POST", path, joined).status_code == 200
    servers = [
        cloud.boot(metadata={"key": "value"}, tags=["tag"], hints={"group": group["id"]})
        for _ in range(2)
    ]
    for server in servers:
        cloud.change(
            server,
            **{"vm_state": "active", "task_state": None, "host": "h1", "node": "h1"},
            **{"launched_at": 1767225600.5, "network_info": base.encode([NETWORK])},
            block_devices=base.encode([VOLUME]),
        )
    # The older one, so that the list of the other has a next page.
    server = servers[0]
    body: dict[str, Any] = {"lock": None}
    assert cloud.call("POST", f"/servers/{server}/action", body).status_code == 202
    action = cloud.row("instance_actions", instance_uuid=server, action="create")
    event = ActionEvent("spawn", "h1", 1767225600.0, 1767225601.0, "Success")
    cloud.database.transaction(
        lambda conn: actions.put_events(conn, action.id, 1, [event], new=True)
    )
    service = cloud.row("services", host="h1")
    return World(
        cloud,
        {
            "server_id": server,
            "request_id": action.request_id,
            "flavor_id": FLAVOR,
            "tag": "tag",
            "key": "key",
            "network": "net",
            "volume_id": str(VOLUME.volume_id),
            "node": node,
            "empty_node": empty,
            "number": str(cloud.row("compute_nodes", uuid=node).id),
            "service_id": service.uuid,
            "keypair_name": "one",
            "server_group_id": str(group["id"]),
            "aggregate_id": str(aggregate["id"]),
            "tenant_id": PROJECT,
        },
    )


def _made(cloud: Cloud, path: str, key: str, **values: Any) -> Any:
    answer = cloud.call("POST", path, {key: values}, version="2.2")
    assert answer.status_code in (200, 201), answer.text
    return answer.json[key]


def places(body: Any, place: str = "") -> Iterator[tuple[str, frozenset[str]]]:
    """Yield every place in an answer that holds an object, with its keys.

    Of a list the first item stands for all. Links are the same everywhere and not looked into.
    """
    if isinstance(body, list):
        for item in body[:1]:
            yield from places(item, f"{place}[]")
    elif isinstance(body, dict):
        yield place, frozenset(body)
        for name, value in body.items():
            if name not in FREE and not name.endswith("links"):
                yield from places(value, f"{place}.{name}" if place else name)
