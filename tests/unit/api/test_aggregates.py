# SPDX-License-Identifier: Apache-2.0
"""/os-aggregates and the zones that they make."""

from typing import Any

import pytest

from tests.unit.api.cloud import Cloud


def make(cloud: Cloud, name: str = "a", **values: Any) -> str:
    result = cloud.call("POST", "/os-aggregates", {"aggregate": {"name": name, **values}})
    assert result.status_code == 200, result.text
    return str(result.json["aggregate"]["id"])


def act(cloud: Cloud, key: str, action: str, **values: Any) -> Any:
    return cloud.call("POST", f"/os-aggregates/{key}/action", {action: values})


def put(cloud: Cloud, key: str, **values: Any) -> Any:
    return cloud.call("PUT", f"/os-aggregates/{key}", {"aggregate": values})


def show(cloud: Cloud, key: str, version: str = "2.41") -> Any:
    return cloud.get(f"/os-aggregates/{key}", version=version)["aggregate"]


def test_from_create_to_delete(cloud: Cloud) -> None:
    cloud.add_node("h1")
    key = make(cloud, availability_zone="left")
    shown = show(cloud, key)
    assert shown["metadata"] == {"availability_zone": "left"}
    assert (shown["availability_zone"], shown["hosts"], shown["deleted"]) == ("left", [], False)
    assert "Z" not in shown["created_at"] and shown["updated_at"] is None
    assert act(cloud, key, "add_host", host="h1").json["aggregate"]["hosts"] == ["h1"]
    changed = act(cloud, key, "set_metadata", metadata={"ssd": "true"}).json["aggregate"]
    assert changed["metadata"] == {"availability_zone": "left", "ssd": "true"}
    assert put(cloud, key, name="b", availability_zone="right").json["aggregate"] == show(
        cloud, key, "2.1"
    )
    assert put(cloud, key, availability_zone=None).json["aggregate"]["metadata"] == {"ssd": "true"}
    assert [each["name"] for each in cloud.get("/os-aggregates")["aggregates"]] == ["b"]
    assert cloud.call("DELETE", f"/os-aggregates/{key}").status_code == 400
    assert act(cloud, key, "remove_host", host="h1").json["aggregate"]["hosts"] == []
    result = cloud.call("DELETE", f"/os-aggregates/{key}")
    assert (result.status_code, result.text) == (200, "")
    assert cloud.call("GET", f"/os-aggregates/{key}").status_code == 404


@pytest.mark.parametrize("key", ["99", "-1", "a", "1.0", "9" * 30, "\u0661"])
def test_what_is_no_aggregate_is_not_found(cloud: Cloud, key: str) -> None:
    path = f"/os-aggregates/{key}"
    assert cloud.call("GET", path).status_code == 404
    assert cloud.call("DELETE", path).status_code == 404
    assert put(cloud, key, name="b").status_code == 404
    assert act(cloud, key, "add_host", host="h1").status_code == 404


def test_conflicts(cloud: Cloud) -> None:
    cloud.add_node("h1")
    left, right = make(cloud, availability_zone="left"), make(cloud, "b", availability_zone="right")
    assert cloud.call("POST", "/os-aggregates", {"aggregate": {"name": "a"}}).status_code == 409
    assert put(cloud, right, name="a").status_code == 409
    assert act(cloud, left, "remove_host", host="h1").status_code == 404
    assert act(cloud, left, "add_host", host="h2").status_code == 404
    assert act(cloud, left, "add_host", host="h1").status_code == 200
    assert act(cloud, left, "add_host", host="h1").status_code == 409
    refused = act(cloud, right, "add_host", host="h1")
    assert refused.status_code == 409
    assert refused.json["conflictingRequest"]["message"] == (
        f"Cannot add host to aggregate {right}. Reason: One or more hosts already in availability "
        "zone(s) ['left']."
    )
    cloud.change(cloud.boot(), host="h1")
    assert act(cloud, left, "remove_host", host="h1").status_code == 409
    assert put(cloud, left, availability_zone="other").status_code == 400
    metadata = {"availability_zone": None}
    assert act(cloud, left, "set_metadata", metadata=metadata).status_code == 400
    assert show(cloud, left)["availability_zone"] == "left"


WRONG_ZONES_V11 = ["rack:1", "", "z" * 256, "  ", " left", "left ", "a\nb", 5]


@pytest.mark.parametrize("zone", WRONG_ZONES_V11)
def test_zones_that_nobody_could_ask_for_v11(cloud: Cloud, zone: Any) -> None:
    asked = {"name": "b", "availability_zone": zone}
    assert cloud.call("POST", "/os-aggregates", {"aggregate": asked}).status_code == 400
    key = make(cloud)
    assert put(cloud, key, availability_zone=zone).status_code == 400
    metadata = {"availability_zone": zone}
    assert act(cloud, key, "set_metadata", metadata=metadata).status_code == 400
    assert show(cloud, key)["availability_zone"] is None
    assert len(cloud.get("/os-aggregates")["aggregates"]) == 1


def test_a_long_zone_can_be_made_and_asked_for_v11(cloud: Cloud) -> None:
    cloud.add_node("h1")
    zone = "z" * 255
    key = make(cloud, availability_zone=zone)
    assert cloud.create(availability_zone=zone).status_code == 400
    act(cloud, key, "add_host", host="h1")
    assert cloud.create(availability_zone=zone).status_code == 202


@pytest.mark.parametrize(
    "body",
    [
        {"aggregate": {}},
        {"aggregate": {"name": ""}},
        {"aggregate": {"name": " a"}},
        {"aggregate": {"name": "a" * 256}},
        {"aggregate": {"name": "a", "hosts": []}},
        {},
    ],
)
def test_bodies_that_are_refused(cloud: Cloud, body: Any) -> None:
    assert cloud.call("POST", "/os-aggregates", body).status_code == 400
    assert cloud.call("PUT", f"/os-aggregates/{make(cloud, 'b')}", body).status_code == 400


def test_a_wrong_metadata_item_changes_nothing(cloud: Cloud) -> None:
    key = make(cloud)
    for metadata in ({"a/b": "1"}, {"a": "1" * 256}, {"a": 1}, {"": "1"}, []):
        assert act(cloud, key, "set_metadata", metadata=metadata).status_code == 400
    assert show(cloud, key)["metadata"] == {}


def test_unknown_parameters_from_275(cloud: Cloud) -> None:
    for path in ("/os-aggregates", f"/os-aggregates/{make(cloud)}"):
        assert cloud.call("GET", f"{path}?x=1", version="2.74").status_code == 200
        assert cloud.call("GET", f"{path}?x=1", version="2.75").status_code == 400


class TestZones:
    def test_are_listed_with_their_hosts(self, cloud: Cloud) -> None:
        for host in ("h1", "h2", "h3"):
            cloud.add_node(host)
        cloud.add_service("h1", "nova-conductor")
        left = make(cloud, availability_zone="left")
        make(cloud, "empty", availability_zone="mars")
        act(cloud, left, "add_host", host="h1")
        act(cloud, left, "add_host", host="h2")
        short = cloud.get("/os-availability-zone", user="u:p")["availabilityZoneInfo"]
        assert [zone["zoneName"] for zone in short] == ["left", "nova"]
        detail = cloud.get("/os-availability-zone/detail")["availabilityZoneInfo"]
        hosts = {zone["zoneName"]: sorted(zone["hosts"]) for zone in detail}
        assert hosts == {"internal": ["h1"], "left": ["h1", "h2"], "nova": ["h3"]}
        found = cloud.get("/os-services")["services"]
        assert [each["zone"] for each in found] == ["left", "left", "nova", "internal"]

    def test_a_server_can_be_asked_for_in_a_zone_with_hosts_v10(self, cloud: Cloud) -> None:
        cloud.add_node("h1")
        key = make(cloud, availability_zone="left")
        assert cloud.create(availability_zone="left").status_code == 400
        act(cloud, key, "add_host", host="h1")
        assert cloud.create(availability_zone="left").status_code == 202
        refused = cloud.create(availability_zone="mars")
        assert refused.status_code == 400
        assert "zone is not available" in refused.json["badRequest"]["message"]

    def test_a_host_that_is_forgotten_leaves_its_aggregates_v23(self, cloud: Cloud) -> None:
        cloud.add_node("h1")
        key = make(cloud, availability_zone="left")
        act(cloud, key, "add_host", host="h1")
        conductor = cloud.add_service("h1", "nova-conductor")
        path = f"/os-services/{conductor}"
        assert cloud.call("DELETE", path, version="2.53").status_code == 204
        assert show(cloud, key)["hosts"] == ["h1"] and cloud.row("compute_nodes", host="h1")
        compute = cloud.row("services", host="h1").uuid
        server = cloud.boot()
        cloud.change(server, host="h1")
        path = f"/os-services/{compute}"
        assert cloud.call("DELETE", path, version="2.53").status_code == 409
        assert show(cloud, key)["hosts"] == ["h1"] and cloud.row("compute_nodes", host="h1")
        cloud.change(server, host=None)
        assert cloud.call("DELETE", path, version="2.53").status_code == 204
        assert show(cloud, key)["hosts"] == [] and cloud.row("compute_nodes", host="h1") is None
