# SPDX-License-Identifier: Apache-2.0
"""/os-services and /os-availability-zone."""

import time
from typing import Any

import pytest

from tests.unit.api.cloud import Cloud

KEYS = {"id", "binary", "host", "zone", "status", "state", "updated_at", "disabled_reason"}


def listed(cloud: Cloud, query: str = "", version: str = "2.53") -> list[Any]:
    found: list[Any] = cloud.get(f"/os-services{query}", version=version)["services"]
    return found


def test_list_by_version(cloud: Cloud) -> None:
    key = cloud.add_service("h1")
    cloud.add_service("c1", "nova-conductor", last_seen_up=time.time() - 1000)
    compute, conductor = listed(cloud, version="2.10")
    assert set(compute) == KEYS
    assert (compute["id"], compute["zone"], compute["status"], compute["state"]) == (
        1,
        "nova",
        "enabled",
        "up",
    )
    assert "Z" not in compute["updated_at"]
    assert (conductor["zone"], conductor["state"]) == ("internal", "down")
    assert set(listed(cloud, version="2.11")[0]) == KEYS | {"forced_down"}
    assert listed(cloud, version="2.53")[0]["id"] == key


def test_filters(cloud: Cloud) -> None:
    cloud.add_service("h1")
    cloud.add_service("h2")
    cloud.add_service("h1", "nova-conductor")
    assert [s["host"] for s in listed(cloud, "?binary=nova-compute")] == ["h1", "h2"]
    assert [s["binary"] for s in listed(cloud, "?host=h1")] == ["nova-compute", "nova-conductor"]
    assert listed(cloud, "?host=h1&binary=nova-compute")[0]["host"] == "h1"
    assert listed(cloud, "?host=nope") == []


def test_unknown_parameters_from_275(cloud: Cloud) -> None:
    assert cloud.call("GET", "/os-services?x=1", version="2.74").status_code == 200
    assert cloud.call("GET", "/os-services?x=1", version="2.75").status_code == 400
    assert listed(cloud, "?host=h1&binary=nova-compute", "2.79") == []


def test_only_administrators(cloud: Cloud) -> None:
    assert cloud.call("GET", "/os-services", user="u:p").status_code == 403
    assert cloud.call("GET", "/os-hypervisors", user="u:p").status_code == 403
    assert cloud.call("GET", "/os-availability-zone/detail", user="u:p").status_code == 403


class TestVerbsBelow253:
    NAMED = {"host": "h1", "binary": "nova-compute"}

    def put(self, cloud: Cloud, verb: str, version: str = "2.52", **more: Any) -> Any:
        return cloud.call("PUT", f"/os-services/{verb}", {**self.NAMED, **more}, version=version)

    def test_disable_and_enable(self, cloud: Cloud) -> None:
        cloud.add_service("h1")
        result = self.put(cloud, "disable")
        assert result.json == {"service": {**self.NAMED, "status": "disabled"}}
        assert listed(cloud)[0]["status"] == "disabled"
        result = self.put(cloud, "disable-log-reason", disabled_reason="maint")
        assert result.json["service"]["disabled_reason"] == "maint"
        assert listed(cloud)[0]["disabled_reason"] == "maint"
        self.put(cloud, "enable")
        service = listed(cloud)[0]
        assert (service["status"], service["disabled_reason"]) == ("enabled", None)

    def test_force_down_from_211(self, cloud: Cloud) -> None:
        cloud.add_service("h1")
        assert self.put(cloud, "force-down", "2.10", forced_down=True).status_code == 404
        result = self.put(cloud, "force-down", "2.11", forced_down="true")
        assert result.json == {"service": {**self.NAMED, "forced_down": True}}
        service = listed(cloud)[0]
        assert (service["state"], service["forced_down"]) == ("down", True)

    def test_unknown(self, cloud: Cloud) -> None:
        assert self.put(cloud, "enable").status_code == 404
        assert self.put(cloud, "nonsense").status_code == 404

    @pytest.mark.parametrize(
        ("verb", "body"),
        [
            ("disable", {"host": "h1"}),
            ("disable", {"host": "", "binary": "nova-compute"}),
            ("disable-log-reason", NAMED),
            ("disable-log-reason", {**NAMED, "disabled_reason": " "}),
            ("disable-log-reason", {**NAMED, "disabled_reason": "x" * 256}),
            ("force-down", {**NAMED, "forced_down": "maybe"}),
        ],
    )
    def test_refused(self, cloud: Cloud, verb: str, body: Any) -> None:
        cloud.add_service("h1")
        result = cloud.call("PUT", f"/os-services/{verb}", body, version="2.52")
        assert result.status_code == 400


class TestByUuidFrom253:
    def put(self, cloud: Cloud, key: str, body: Any) -> Any:
        return cloud.call("PUT", f"/os-services/{key}", body, version="2.53")

    def test_update(self, cloud: Cloud) -> None:
        key = cloud.add_service("h1")
        result = self.put(cloud, key, {"status": "disabled", "disabled_reason": "maint"})
        assert result.json["service"] == listed(cloud)[0]
        assert result.json["service"]["disabled_reason"] == "maint"
        self.put(cloud, key, {"forced_down": True})
        service = listed(cloud)[0]
        assert (service["forced_down"], service["status"]) == (True, "disabled")
        self.put(cloud, key, {"status": "enabled"})
        assert listed(cloud)[0]["disabled_reason"] is None

    @pytest.mark.parametrize(
        "body",
        [{}, {"status": "on"}, {"disabled_reason": "x"}, {"status": "enabled", "more": 1}]
        + [{"status": "enabled", "disabled_reason": "x"}],
    )
    def test_refused(self, cloud: Cloud, body: Any) -> None:
        key = cloud.add_service("h1")
        assert self.put(cloud, key, body).status_code == 400

    def test_wrong_id(self, cloud: Cloud) -> None:
        cloud.add_service("h1")
        assert self.put(cloud, "1", {"status": "enabled"}).status_code == 400
        unknown = "12345678-1234-1234-1234-123456789abc"
        assert self.put(cloud, unknown, {"status": "enabled"}).status_code == 404

    def test_only_computes(self, cloud: Cloud) -> None:
        key = cloud.add_service("c1", "nova-conductor")
        assert self.put(cloud, key, {"status": "disabled"}).status_code == 400


class TestDelete:
    def test_by_uuid_with_its_node(self, cloud: Cloud) -> None:
        cloud.add_node("h1")
        key = listed(cloud)[0]["id"]
        assert cloud.call("DELETE", f"/os-services/{key}", version="2.53").status_code == 204
        assert listed(cloud) == []
        assert cloud.row("compute_nodes") is None

    def test_by_number_below_253(self, cloud: Cloud) -> None:
        cloud.add_service("h1")
        assert cloud.call("DELETE", "/os-services/1", version="2.1").status_code == 204
        assert cloud.call("DELETE", "/os-services/1", version="2.1").status_code == 404
        assert cloud.call("DELETE", "/os-services/x", version="2.1").status_code == 400

    def test_with_servers_is_refused(self, cloud: Cloud) -> None:
        key = cloud.add_service("h1")
        server = cloud.boot()
        cloud.change(server, host="h1")
        result = cloud.call("DELETE", f"/os-services/{key}", version="2.53")
        assert result.status_code == 409
        assert len(listed(cloud)) == 1


class TestZones:
    def test_short(self, cloud: Cloud) -> None:
        cloud.add_service("h1")
        cloud.add_service("c1", "nova-conductor")
        assert cloud.get("/os-availability-zone", user="u:p") == {
            "availabilityZoneInfo": [
                {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None}
            ]
        }

    def test_not_available_when_all_are_disabled(self, cloud: Cloud) -> None:
        cloud.add_service("h1", disabled=True)
        zone = cloud.get("/os-availability-zone")["availabilityZoneInfo"][0]
        assert zone["zoneState"] == {"available": False}

    def test_detail(self, cloud: Cloud) -> None:
        cloud.add_service("h1")
        cloud.add_service("c1", "nova-conductor", last_seen_up=1767225600.0)
        internal, nova = cloud.get("/os-availability-zone/detail")["availabilityZoneInfo"]
        assert internal["hosts"] == {
            "c1": {
                "nova-conductor": {
                    "available": False,
                    "active": True,
                    "updated_at": "2026-01-01T00:00:00.000000",
                }
            }
        }
        assert nova["hosts"]["h1"]["nova-compute"]["available"] is True
