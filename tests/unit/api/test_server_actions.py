# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
import sqlalchemy as sa

from novalite import exception
from novalite.api.views import servers
from novalite.db import actions
from novalite.objects.action import ActionEvent
from tests.unit.api.cloud import Cloud


@pytest.fixture
def active(cloud: Cloud) -> str:
    key = cloud.boot(user="u:p")
    cloud.change(key, vm_state="active", task_state=None, host="h1", node="n1")
    return key


def act(cloud: Cloud, key: str, body: Any, user: str = "u:p") -> Any:
    return cloud.call("POST", f"/servers/{key}/action", body, user=user)


@pytest.mark.parametrize(
    ("length", "lines"),
    [({}, None), ({"length": None}, None), ({"length": -1}, None), ({"length": "2"}, 2)],
)
def test_console_output(cloud: Cloud, active: str, length: Any, lines: int | None) -> None:
    cloud.computes.text = "one\x00\x1b[0m\ntwo\n"
    result = act(cloud, active, {"os-getConsoleOutput": length})
    assert (result.status_code, result.json) == (200, {"output": "one[0m\ntwo\n"})
    asked = cloud.computes.asked[0]
    assert (asked["host"], asked["instance_uuid"], asked["tail_length"]) == ("h1", active, lines)


@pytest.mark.parametrize("length", ["x", 1.5, -2, True, "9" * 40])
def test_console_output_wrong_length(cloud: Cloud, active: str, length: Any) -> None:
    assert act(cloud, active, {"os-getConsoleOutput": {"length": length}}).status_code == 400
    assert cloud.computes.asked == []


def test_console_output_before_there_is_a_guest(cloud: Cloud) -> None:
    key = cloud.boot(user="u:p")
    assert act(cloud, key, {"os-getConsoleOutput": {}}).status_code == 409


def test_console_of_a_silent_host_is_503(
    cloud: Cloud, active: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_args: Any, **_kwargs: Any) -> str:
        raise exception.BusUnavailable()

    monkeypatch.setattr(cloud.computes, "get_console_output", silent)
    assert act(cloud, active, {"os-getConsoleOutput": {}}).status_code == 503


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"os-nonsense": None}, "There is no such action: os-nonsense"),
        ({}, ""),
        ({"os-start": None, "os-stop": None}, ""),
        ([], ""),
    ],
)
def test_unknown_action(cloud: Cloud, active: str, body: Any, words: str) -> None:
    result = act(cloud, active, body)
    assert result.status_code == 400
    assert words in result.json["badRequest"]["message"]


def test_action_on_a_foreign_server_is_404(cloud: Cloud, active: str) -> None:
    assert act(cloud, active, {"forceDelete": None}, user="u:other").status_code == 404


def test_force_delete(cloud: Cloud) -> None:
    key = cloud.boot(user="u:p")
    result = act(cloud, key, {"forceDelete": None})
    assert (result.status_code, result.text) == (202, "")
    assert cloud.call("GET", f"/servers/{key}", user="u:p").status_code == 404
    found = cloud.get(f"/servers/{key}/os-instance-actions", user="u:p", version="2.21")
    assert [action["action"] for action in found["instanceActions"]] == ["forceDelete", "create"]


class TestHistory:
    def test_list_and_show(self, cloud: Cloud) -> None:
        result = cloud.create(user="u:p")
        key, request = result.json["server"]["id"], result.headers["x-openstack-request-id"]
        path = f"/servers/{key}/os-instance-actions"
        listed = cloud.get(path, user="u:p")["instanceActions"]
        assert len(listed) == 1
        assert set(listed[0]) == {
            *("action", "instance_uuid", "request_id", "user_id", "project_id", "start_time"),
            "message",
        }
        assert (listed[0]["request_id"], listed[0]["action"]) == (request, "create")
        assert "Z" not in listed[0]["start_time"]
        assert len(listed[0]["start_time"].partition(".")[2]) == 6
        assert cloud.get(f"{path}/{request}", user="u:p") == {"instanceAction": listed[0]}

    def test_events_for_owners_from_251_and_traceback_for_administrators(
        self, cloud: Cloud
    ) -> None:
        result = cloud.create(user="u:p")
        key, request = result.json["server"]["id"], result.headers["x-openstack-request-id"]
        action = cloud.row("instance_actions", instance_uuid=key).id
        event = ActionEvent("spawn", "h1", 1767225600.0, None, "Success", traceback="deep inside")
        cloud.database.transaction(
            lambda conn: actions.put_events(conn, action, 1, [event], new=True)
        )
        path = f"/servers/{key}/os-instance-actions/{request}"
        assert "events" not in cloud.get(path, user="u:p", version="2.50")["instanceAction"]
        shown = {
            "event": "spawn",
            "start_time": "2026-01-01T00:00:00.000000",
            "finish_time": None,
            "result": "Success",
        }
        events = cloud.get(path, user="u:p", version="2.51")["instanceAction"]["events"]
        assert events == [shown]
        for version in ("2.1", "2.51"):
            events = cloud.get(path, version=version)["instanceAction"]["events"]
            assert events == [{**shown, "traceback": "deep inside"}]

    def test_of_a_deleted_server_from_221(self, cloud: Cloud) -> None:
        key = cloud.boot(user="u:p")
        cloud.call("DELETE", f"/servers/{key}", user="u:p")
        path = f"/servers/{key}/os-instance-actions"
        assert cloud.call("GET", path, user="u:p", version="2.20").status_code == 404
        assert len(cloud.get(path, user="u:p", version="2.21")["instanceActions"]) == 2

    def test_unknown(self, cloud: Cloud) -> None:
        key = cloud.boot(user="u:p")
        path = f"/servers/{key}/os-instance-actions"
        assert cloud.call("GET", f"{path}/req-nope", user="u:p").status_code == 404
        assert cloud.call("GET", path, user="u:other").status_code == 404


class TestHistoryByPages:
    """2.58, and 2.66 for changes-before."""

    @pytest.fixture
    def path(self, cloud: Cloud) -> str:
        """A history of five actions that ended at 0 to 4 seconds after a certain hour."""
        key = cloud.boot(user="u:p")
        for number in range(4):
            assert act(cloud, key, {"unlock" if number % 2 else "lock": None}).status_code == 202
        statement = "update instance_actions set updated = 1767225600 + id - (select min(id) from "
        statement += "instance_actions)"
        cloud.database.transaction(lambda conn: conn.execute(sa.text(statement)))
        return f"/servers/{key}/os-instance-actions"

    def ends(self, cloud: Cloud, path: str, version: str = "2.66") -> list[str]:
        found = cloud.get(path, user="u:p", version=version)["instanceActions"]
        return [action["updated_at"][17:19] for action in found]

    def test_pages(self, cloud: Cloud, path: str) -> None:
        found, url = [], f"{path}?limit=2"
        while url:
            body = cloud.get(url, user="u:p", version="2.58")
            found.append([action["updated_at"][17:19] for action in body["instanceActions"]])
            links = body.get("links", [])
            assert [link["rel"] for link in links] == ["next"] * len(links)
            url = links[0]["href"].partition("/v2.1")[2] if links else ""
        assert found == [["04", "03"], ["02", "01"], ["00"]]

    def test_no_pages_before_258(self, cloud: Cloud, path: str) -> None:
        body = cloud.get(f"{path}?limit=2", user="u:p", version="2.57")
        assert len(body["instanceActions"]) == 5
        assert set(body) == {"instanceActions"}

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("changes-since=2026-01-01T00:00:03Z", ["04", "03"]),
            ("changes-since=2026-01-01T00:00:05Z", []),
            ("changes-before=2026-01-01T00:00:01", ["01", "00"]),
            ("changes-since=2026-01-01T00:00:02&changes-before=2026-01-01T00:00:02", ["02"]),
            ("changes-since=2026-01-01T00:00:01&limit=1", ["04"]),
            ("limit=0", []),
        ],
    )
    def test_parts(self, cloud: Cloud, path: str, query: str, found: list[str]) -> None:
        assert self.ends(cloud, f"{path}?{query}") == found

    @pytest.mark.parametrize(
        ("query", "version"),
        [
            ("x=1", "2.58"),
            ("changes-before=2026-01-01T00:00:00", "2.65"),
            ("changes-since=noon", "2.58"),
            ("changes-since=2026-01-01T00:00:02&changes-before=2026-01-01T00:00:01", "2.66"),
            ("limit=-1", "2.58"),
            ("limit=x", "2.58"),
            ("marker=req-nope", "2.58"),
        ],
    )
    def test_wrong(self, cloud: Cloud, path: str, query: str, version: str) -> None:
        result = cloud.call("GET", f"{path}?{query}", user="u:p", version=version)
        assert result.status_code == 400, result.text

    def test_the_marker_of_another_server_is_none(self, cloud: Cloud, path: str) -> None:
        other = cloud.create(user="u:p").headers["x-openstack-request-id"]
        result = cloud.call("GET", f"{path}?marker={other}", user="u:p", version="2.58")
        assert result.status_code == 400


def test_hosts_of_events_from_262(cloud: Cloud) -> None:
    result = cloud.create(user="u:p")
    key, request = result.json["server"]["id"], result.headers["x-openstack-request-id"]
    action = cloud.row("instance_actions", instance_uuid=key).id
    events = [ActionEvent("schedule", None, 1.0), ActionEvent("spawn", "h1", 2.0)]
    cloud.database.transaction(lambda conn: actions.put_events(conn, action, 1, events, new=True))
    path = f"/servers/{key}/os-instance-actions/{request}"
    opaque = ["", servers.host_id("p", "h1")]
    seen = cloud.get(path, user="u:p", version="2.62")["instanceAction"]["events"]
    assert [event["hostId"] for event in seen] == opaque
    assert all("host" not in event for event in seen)
    seen = cloud.get(path, version="2.62")["instanceAction"]["events"]
    assert [(event["host"], event["hostId"]) for event in seen] == list(
        zip(["", "h1"], opaque, strict=True)
    )
    seen = cloud.get(path, version="2.61")["instanceAction"]["events"]
    assert all({"host", "hostId"}.isdisjoint(event) for event in seen)
