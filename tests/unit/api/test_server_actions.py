# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from novalite import exception
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
