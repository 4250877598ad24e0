# SPDX-License-Identifier: Apache-2.0
import json
from typing import Any

import pytest
import sqlalchemy as sa

from tests.unit.api.cloud import Cloud

SHORT = {"id", "hypervisor_hostname", "state", "status"}
LONG = SHORT | {
    *("service", "vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used"),
    *("local_gb_used", "hypervisor_type", "hypervisor_version", "free_ram_mb", "free_disk_gb"),
    *("current_workload", "running_vms", "cpu_info", "disk_available_least", "host_ip"),
}


@pytest.fixture
def nodes(cloud: Cloud) -> list[str]:
    used = {"memory_mb_used": 17000, "cpu_info": {"model": "x"}, "disk_available_least": 7}
    return [cloud.add_node("node-1", **used), cloud.add_node("node-2"), cloud.add_node("other")]


def listed(cloud: Cloud, path: str = "", version: str = "2.53") -> list[Any]:
    found: list[Any] = cloud.get(f"/os-hypervisors{path}", version=version)["hypervisors"]
    return found


def test_short_and_long(cloud: Cloud, nodes: list[str]) -> None:
    assert all(set(shown) == SHORT for shown in listed(cloud))
    shown = listed(cloud, "/detail", "2.1")[0]
    assert set(shown) == LONG
    assert (shown["id"], shown["service"]["id"], shown["state"]) == (1, 1, "up")
    assert shown["free_ram_mb"] == 16384 - 17000
    assert shown["disk_available_least"] == 7
    assert shown["hypervisor_type"] == "QEMU"


def test_ids_are_uuids_from_253(cloud: Cloud, nodes: list[str]) -> None:
    shown = listed(cloud, "/detail")[0]
    assert shown["id"] == nodes[0]
    assert len(shown["service"]["id"]) == 36
    assert cloud.get("/os-hypervisors/2", version="2.52")["hypervisor"]["id"] == 2
    path = f"/os-hypervisors/{nodes[1]}"
    assert cloud.get(path, version="2.53")["hypervisor"]["hypervisor_hostname"] == "node-2"
    assert cloud.call("GET", "/os-hypervisors/2", version="2.53").status_code == 400
    assert cloud.call("GET", path, version="2.52").status_code == 404
    assert cloud.call("GET", "/os-hypervisors/99", version="2.52").status_code == 404


def test_cpu_info_is_text_until_227_and_an_object_from_228(cloud: Cloud, nodes: list[str]) -> None:
    assert json.loads(listed(cloud, "/detail", "2.27")[0]["cpu_info"]) == {"model": "x"}
    assert listed(cloud, "/detail", "2.28")[0]["cpu_info"] == {"model": "x"}


def test_pages_from_233(cloud: Cloud, nodes: list[str]) -> None:
    assert len(listed(cloud, "?limit=1", "2.32")) == 3
    body = cloud.get("/os-hypervisors?limit=2", version="2.33")
    assert [shown["id"] for shown in body["hypervisors"]] == [1, 2]
    assert body["hypervisors_links"][0]["href"].endswith("/os-hypervisors?limit=2&marker=2")
    rest = cloud.get("/os-hypervisors/detail?limit=2&marker=2", version="2.33")
    assert [shown["id"] for shown in rest["hypervisors"]] == [3]
    assert "hypervisors_links" not in rest
    assert cloud.get("/os-hypervisors?limit=0", version="2.33") == {"hypervisors": []}
    assert cloud.call("GET", "/os-hypervisors?marker=9", version="2.33").status_code == 400
    assert listed(cloud, f"?marker={nodes[1]}")[0]["id"] == nodes[2]


def test_servers_from_253(cloud: Cloud, nodes: list[str]) -> None:
    key = cloud.boot()
    cloud.change(key, host="node-1", node="node-1")
    servers = [{"name": "instance-00000001", "uuid": key}]
    first, second, _third = listed(cloud, "?with_servers=true")
    assert first["servers"] == servers
    assert "servers" not in second
    path = f"/os-hypervisors/{nodes[0]}"
    shown = cloud.get(f"{path}?with_servers=True", version="2.53")["hypervisor"]
    assert shown["servers"] == servers
    assert "servers" not in cloud.get(path, version="2.53")["hypervisor"]
    assert cloud.call("GET", f"{path}?with_servers=x", version="2.53").status_code == 400


def test_search_and_servers_until_252(cloud: Cloud, nodes: list[str]) -> None:
    key = cloud.boot()
    cloud.change(key, host="node-1", node="node-1")
    assert [shown["id"] for shown in listed(cloud, "/node/search", "2.52")] == [1, 2]
    found = listed(cloud, "/node-1/servers", "2.52")
    assert found[0]["servers"] == [{"name": "instance-00000001", "uuid": key}]
    assert "servers" not in listed(cloud, "/node-2/servers", "2.52")[0]
    for verb in ("search", "servers"):
        assert cloud.call("GET", f"/os-hypervisors/x/{verb}", version="2.52").status_code == 404
        assert cloud.call("GET", f"/os-hypervisors/node/{verb}", version="2.53").status_code == 404


def test_pattern_from_253(cloud: Cloud, nodes: list[str]) -> None:
    query = "?hypervisor_hostname_pattern"
    assert [shown["id"] for shown in listed(cloud, f"{query}=node")] == nodes[:2]
    assert cloud.call("GET", f"/os-hypervisors{query}=x", version="2.53").status_code == 404
    both = f"/os-hypervisors{query}=node&limit=1"
    assert cloud.call("GET", both, version="2.53").status_code == 400
    assert len(listed(cloud, f"{query}=node", "2.52")) == 3


def test_statistics_are_sums(cloud: Cloud, nodes: list[str]) -> None:
    sums = cloud.get("/os-hypervisors/statistics")["hypervisor_statistics"]
    assert sums["count"] == 3
    assert sums["vcpus"] == 24
    assert sums["free_ram_mb"] == 3 * 16384 - 17000
    assert sums["disk_available_least"] == 7 + 200 + 200
    assert set(sums) == LONG - SHORT - {
        *("service", "hypervisor_type", "hypervisor_version", "cpu_info", "host_ip"),
    } | {"count"}


def test_uptime(cloud: Cloud, nodes: list[str]) -> None:
    shown = cloud.get("/os-hypervisors/2/uptime")["hypervisor"]
    assert shown["uptime"] == " 10:00:00 up 1 day, node-2 node-2"
    assert set(shown) == SHORT | {"uptime"}


def test_uptime_of_a_host_that_is_down(cloud: Cloud, nodes: list[str]) -> None:
    silenced = "update services set last_seen_up = last_seen_up - 1000 where host = 'node-1'"
    cloud.database.transaction(lambda conn: conn.execute(sa.text(silenced)))
    result = cloud.call("GET", "/os-hypervisors/1/uptime")
    assert result.status_code == 400
    assert "node-1" in result.json["badRequest"]["message"]


def test_no_nodes(cloud: Cloud) -> None:
    assert listed(cloud) == []
    assert cloud.get("/os-hypervisors/statistics")["hypervisor_statistics"]["count"] == 0


def test_no_servers_is_said_from_275_if_asked(cloud: Cloud, nodes: list[str]) -> None:
    asked = "?with_servers=true"
    for version, shows in (("2.74", False), ("2.75", True)):
        one = cloud.get(f"/os-hypervisors/{nodes[0]}{asked}", version=version)["hypervisor"]
        for shown in (
            one,
            *listed(cloud, asked, version),
            *listed(cloud, f"/detail{asked}", version),
        ):
            assert shown.get("servers") == ([] if shows else None)
        one = cloud.get(f"/os-hypervisors/{nodes[0]}", version=version)["hypervisor"]
        for shown in (one, *listed(cloud, "", version), *listed(cloud, "/detail", version)):
            assert "servers" not in shown


def test_unknown_parameters_from_253(cloud: Cloud, nodes: list[str]) -> None:
    for tail in ("", "/detail"):
        path = f"/os-hypervisors{tail}?x=1"
        assert cloud.call("GET", path, version="2.52").status_code == 200
        assert cloud.call("GET", path, version="2.53").status_code == 400
    path = f"/os-hypervisors/{nodes[0]}?limit=1"
    assert cloud.call("GET", path, version="2.53").status_code == 400
