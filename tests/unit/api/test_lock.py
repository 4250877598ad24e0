# SPDX-License-Identifier: Apache-2.0
"""Actions lock and unlock, and what a lock keeps out."""

from typing import Any

import pytest

from tests.unit.api.cloud import Cloud


@pytest.fixture
def key(cloud: Cloud) -> str:
    """An active server of u:p."""
    made = cloud.boot(user="u:p")
    cloud.change(made, vm_state="active", task_state=None, host="h1", node="h1")
    return made


def act(cloud: Cloud, key: str, body: Any, user: str = "u:p", version: str = "2.73") -> int:
    result = cloud.call("POST", f"/servers/{key}/action", body, user=user, version=version)
    return int(result.status_code)


def shown(cloud: Cloud, key: str) -> tuple[bool, str | None]:
    server = cloud.get(f"/servers/{key}", user="u:p", version="2.73")["server"]
    return server["locked"], server["locked_reason"]


def test_lock_and_unlock(cloud: Cloud, key: str) -> None:
    assert shown(cloud, key) == (False, None)
    assert act(cloud, key, {"lock": {"locked_reason": "do not touch"}}) == 202
    assert shown(cloud, key) == (True, "do not touch")
    assert act(cloud, key, {"lock": {"locked_reason": "again"}}) == 202
    assert shown(cloud, key) == (True, "do not touch")
    assert act(cloud, key, {"unlock": None}) == 202
    assert shown(cloud, key) == (False, None)


def test_it_is_in_the_history(cloud: Cloud, key: str) -> None:
    act(cloud, key, {"lock": None})
    act(cloud, key, {"lock": None})  # changes nothing, so it is not
    act(cloud, key, {"unlock": None})
    path = f"/servers/{key}/os-instance-actions"
    found = cloud.get(path, user="u:p", version="2.62")["instanceActions"]
    assert [action["action"] for action in found] == ["unlock", "lock", "create"]
    action = cloud.get(f"{path}/{found[1]['request_id']}", version="2.62")["instanceAction"]
    (event,) = action["events"]
    assert (event["event"], event["result"]) == ("api_lock", "Success")
    assert event["host"] == cloud.conf.host
    assert cloud.row("instances", uuid=key).action_id is not None  # the open one is untouched


@pytest.mark.parametrize(
    ("body", "version", "status"),
    [
        ({"lock": None}, "2.1", 202),
        ({"lock": {}}, "2.1", 202),
        ({"lock": {"locked_reason": "ignored, as any value"}}, "2.72", 202),
        ({"lock": None}, "2.73", 202),
        ({"lock": {}}, "2.73", 202),
        ({"lock": {"locked_reason": ""}}, "2.73", 400),
        ({"lock": {"locked_reason": "x" * 255}}, "2.73", 202),
        ({"lock": {"locked_reason": "x" * 256}}, "2.73", 400),
        ({"lock": {"locked_reason": None}}, "2.73", 400),
        ({"lock": {"more": "x"}}, "2.73", 400),
        ({"lock": "text"}, "2.73", 400),
    ],
)
def test_bodies(cloud: Cloud, key: str, body: Any, version: str, status: int) -> None:
    assert act(cloud, key, body, version=version) == status
    assert shown(cloud, key)[0] == (status == 202)
    if version == "2.72":
        assert shown(cloud, key) == (True, None)


def test_what_an_administrator_has_locked_its_owner_does_not_unlock(cloud: Cloud, key: str) -> None:
    assert act(cloud, key, {"lock": {"locked_reason": "bill"}}, user="admin:admin") == 202
    assert act(cloud, key, {"unlock": None}) == 403
    assert act(cloud, key, {"lock": {"locked_reason": "mine"}}) == 202
    assert shown(cloud, key) == (True, "bill")
    assert act(cloud, key, {"unlock": None}, user="admin:admin") == 202
    assert shown(cloud, key) == (False, None)


def test_an_administrator_unlocks_what_an_owner_has_locked(cloud: Cloud, key: str) -> None:
    act(cloud, key, {"lock": None})
    assert act(cloud, key, {"unlock": None}, user="admin:admin") == 202
    assert shown(cloud, key) == (False, None)


def test_a_locked_server_is_not_deleted_but_by_administrators(cloud: Cloud, key: str) -> None:
    act(cloud, key, {"lock": None})
    result = cloud.call("DELETE", f"/servers/{key}", user="u:p")
    assert result.status_code == 409
    assert result.json["conflictingRequest"]["message"] == f"Instance {key} is locked"
    assert act(cloud, key, {"forceDelete": None}) == 409
    assert cloud.wakeup.destroys == []
    assert cloud.call("DELETE", f"/servers/{key}").status_code == 204


def test_a_name_may_still_change_as_in_nova(cloud: Cloud, key: str) -> None:
    act(cloud, key, {"lock": None})
    body = {"server": {"name": "other"}}
    assert cloud.call("PUT", f"/servers/{key}", body, user="u:p").status_code == 200


def test_foreign_servers_are_not_there(cloud: Cloud, key: str) -> None:
    for body in ({"lock": None}, {"unlock": None}):
        assert act(cloud, key, body, user="u:other") == 404
