# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from tests.unit.api.cloud import Cloud


@pytest.fixture
def key(cloud: Cloud) -> str:
    """An active server of u:p with one item."""
    made = cloud.boot(user="u:p", metadata={"role": "web"})
    cloud.change(made, vm_state="active", task_state=None)
    return made


def ask(cloud: Cloud, method: str, path: str, body: Any = None, user: str = "u:p") -> Any:
    return cloud.call(method, path, body, user=user)


def items(cloud: Cloud, key: str) -> dict[str, str]:
    found = cloud.get(f"/servers/{key}/metadata", user="u:p")
    shown: dict[str, str] = cloud.get(f"/servers/{key}", user="u:p")["server"]["metadata"]
    assert found == {"metadata": shown}
    return shown


def test_post_adds_and_put_replaces(cloud: Cloud, key: str) -> None:
    path = f"/servers/{key}/metadata"
    result = ask(cloud, "POST", path, {"metadata": {"a": "1", "role": "db"}})
    assert (result.status_code, result.json) == (200, {"metadata": {"role": "db", "a": "1"}})
    assert items(cloud, key) == {"role": "db", "a": "1"}
    result = ask(cloud, "PUT", path, {"metadata": {"b": "2"}})
    assert (result.status_code, result.json) == (200, {"metadata": {"b": "2"}})
    assert items(cloud, key) == {"b": "2"}
    assert ask(cloud, "POST", path, {"metadata": {}}).json == {"metadata": {"b": "2"}}
    assert ask(cloud, "PUT", path, {"metadata": {}}).json == {"metadata": {}}


def test_one_item(cloud: Cloud, key: str) -> None:
    path = f"/servers/{key}/metadata"
    assert cloud.get(f"{path}/role", user="u:p") == {"meta": {"role": "web"}}
    result = ask(cloud, "PUT", f"{path}/a%20b", {"meta": {"a b": "1"}})
    assert (result.status_code, result.json) == (200, {"meta": {"a b": "1"}})
    assert items(cloud, key) == {"role": "web", "a b": "1"}
    result = ask(cloud, "DELETE", f"{path}/role")
    assert (result.status_code, result.text) == (204, "")
    for method in ("GET", "DELETE"):
        result = ask(cloud, method, f"{path}/role")
        assert result.status_code == 404
        assert result.json["itemNotFound"]["message"] == "Metadata item was not found"
    assert items(cloud, key) == {"a b": "1"}


def test_capitals_make_another_key_v30(cloud: Cloud, key: str) -> None:
    ask(cloud, "PUT", f"/servers/{key}/metadata/Role", {"meta": {"Role": "x"}})
    assert items(cloud, key) == {"role": "web", "Role": "x"}
    ask(cloud, "DELETE", f"/servers/{key}/metadata/role")
    assert items(cloud, key) == {"Role": "x"}


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({"k" * 255: "v" * 255}, 200),
        ({"k" * 256: "v"}, 400),
        ({"": "v"}, 400),
        ({"k": "v" * 256}, 400),
        ({"k": ""}, 200),
        ({"k": 1}, 400),
        ({"k": None}, 400),
        ({"a/b": "v"}, 400),
        (None, 400),
        ([], 400),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_form_v30(cloud: Cloud, key: str, method: str, metadata: Any, status: int) -> None:
    result = ask(cloud, method, f"/servers/{key}/metadata", {"metadata": metadata})
    assert result.status_code == status
    if status == 400:
        assert items(cloud, key) == {"role": "web"}


@pytest.mark.parametrize(
    "body",
    [
        {"meta": {"b": "1"}},
        {"meta": {"a": "1", "b": "2"}},
        {"meta": {}},
        {"metadata": {"a": "1"}},
        {"meta": {"a": "v" * 256}},
        {"meta": {"a": "1"}, "more": 1},
    ],
)
def test_form_of_one_item(cloud: Cloud, key: str, body: Any) -> None:
    assert ask(cloud, "PUT", f"/servers/{key}/metadata/a", body).status_code == 400


def test_the_129th_is_refused_v30(cloud: Cloud, key: str) -> None:
    path = f"/servers/{key}/metadata"
    many = {f"k{n}": "v" for n in range(128)}
    assert ask(cloud, "POST", path, {"metadata": many}).status_code == 403
    assert items(cloud, key) == {"role": "web"}
    assert ask(cloud, "PUT", path, {"metadata": many}).status_code == 200
    result = ask(cloud, "PUT", f"{path}/more", {"meta": {"more": "v"}})
    assert result.status_code == 403
    assert result.json["forbidden"]["message"] == "Maximum number of metadata items exceeds 128"
    assert ask(cloud, "PUT", f"{path}/k7", {"meta": {"k7": "w"}}).status_code == 200
    cloud.conf.set_override("metadata_items", 5, group="quota")
    assert ask(cloud, "DELETE", f"{path}/k7").status_code == 204
    cloud.conf.set_override("metadata_items", -1, group="quota")
    assert (
        ask(cloud, "POST", path, {"metadata": {f"m{n}": "v" for n in range(9)}}).status_code == 200
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"vm_state": "building"}, "vm_state building"),
        ({"vm_state": "error"}, "vm_state error"),
        ({"task_state": "deleting"}, "task_state deleting"),
    ],
)
def test_only_of_a_server_at_rest(cloud: Cloud, key: str, values: Any, words: str) -> None:
    cloud.change(key, **values)
    path = f"/servers/{key}/metadata"
    for method, url, body in changes(path):
        result = ask(cloud, method, url, body)
        assert result.status_code == 409
        assert words in result.json["conflictingRequest"]["message"]
    assert items(cloud, key) == {"role": "web"}


def changes(path: str) -> list[tuple[str, str, Any]]:
    return [
        ("POST", path, {"metadata": {"a": "1"}}),
        ("PUT", path, {"metadata": {"a": "1"}}),
        ("PUT", f"{path}/a", {"meta": {"a": "1"}}),
        ("DELETE", f"{path}/role", None),
    ]


def test_a_locked_server_is_for_administrators(cloud: Cloud, key: str) -> None:
    cloud.change(key, locked=True)
    path = f"/servers/{key}/metadata"
    for method, url, body in changes(path):
        result = ask(cloud, method, url, body)
        assert result.status_code == 409
        assert result.json["conflictingRequest"]["message"] == f"Instance {key} is locked"
        assert ask(cloud, method, url, body, user="admin:admin").status_code in (200, 204, 404)
    assert items(cloud, key) == {"a": "1"}


def test_foreign_servers_are_not_there(cloud: Cloud, key: str) -> None:
    path = f"/servers/{key}/metadata"
    for method, url, body in [("GET", path, None), ("GET", f"{path}/role", None), *changes(path)]:
        assert ask(cloud, method, url, body, user="u:other").status_code == 404
