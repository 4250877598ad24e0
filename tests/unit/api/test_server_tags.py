# SPDX-License-Identifier: Apache-2.0
"""/servers/{id}/tags: 2.26."""

from typing import Any

import pytest

from tests.unit.api.cloud import Cloud

LATEST = "latest"


@pytest.fixture
def key(cloud: Cloud) -> str:
    """An active server of u:p with the tags a and b."""
    made = cloud.boot(user="u:p", tags=["b", "a"], version="2.52")
    cloud.change(made, vm_state="active", task_state=None)
    return made


def ask(cloud: Cloud, method: str, path: str, body: Any = None, **kwargs: Any) -> Any:
    return cloud.call(method, path, body, **{"user": "u:p", "version": "2.26", **kwargs})


def tags(cloud: Cloud, key: str) -> list[str]:
    found = cloud.get(f"/servers/{key}/tags", user="u:p", version="2.26")
    assert set(found) == {"tags"}
    shown: list[str] = cloud.get(f"/servers/{key}", user="u:p", version="2.26")["server"]["tags"]
    assert found["tags"] == shown
    return shown


def test_one_by_one(cloud: Cloud, key: str) -> None:
    path = f"/servers/{key}/tags"
    assert tags(cloud, key) == ["a", "b"]
    result = ask(cloud, "PUT", f"{path}/c")
    assert (result.status_code, result.text) == (201, "")
    assert result.headers["location"] == f"http://falconframework.org/v2.1{path}/c"
    result = ask(cloud, "PUT", f"{path}/c")
    assert (result.status_code, result.text) == (204, "")
    assert result.headers["location"].endswith("/tags/c")
    assert tags(cloud, key) == ["a", "b", "c"]
    assert ask(cloud, "GET", f"{path}/c").status_code == 204
    assert ask(cloud, "DELETE", f"{path}/c").status_code == 204
    for method in ("GET", "DELETE"):
        gone = ask(cloud, method, f"{path}/c")
        assert gone.status_code == 404
        assert gone.json["itemNotFound"]["message"] == f"Server {key} has no tag 'c'"
    assert tags(cloud, key) == ["a", "b"]


def test_all_at_once(cloud: Cloud, key: str) -> None:
    path = f"/servers/{key}/tags"
    result = ask(cloud, "PUT", path, {"tags": ["y", "x", "x"]})
    assert (result.status_code, result.json) == (200, {"tags": ["x", "y"]})
    assert tags(cloud, key) == ["x", "y"]
    assert ask(cloud, "DELETE", path).status_code == 204
    assert tags(cloud, key) == []


def test_a_tag_of_any_letters_comes_back(cloud: Cloud, key: str) -> None:
    result = ask(cloud, "PUT", f"/servers/{key}/tags/gr%C3%BCn%20%3F")
    assert result.status_code == 201
    assert result.headers["location"].endswith("/tags/gr%C3%BCn%20%3F")
    assert tags(cloud, key) == ["a", "b", "grün ?"]
    assert ask(cloud, "GET", f"/servers/{key}/tags/gr%C3%BCn%20%3F").status_code == 204


def test_capitals_make_another_tag_v30(cloud: Cloud, key: str) -> None:
    assert ask(cloud, "PUT", f"/servers/{key}/tags/A").status_code == 201
    assert tags(cloud, key) == ["A", "a", "b"]


@pytest.mark.parametrize(
    ("tag", "status"), [("t" * 60, 201), ("t" * 61, 400), ("a,b", 400), ("a%2Fb", 404), ("", 404)]
)
def test_form_of_one_tag_v30(cloud: Cloud, key: str, tag: str, status: int) -> None:
    assert ask(cloud, "PUT", f"/servers/{key}/tags/{tag}").status_code == status


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"tags": [f"t{n}" for n in range(50)]}, 200),
        ({"tags": [f"t{n}" for n in range(51)]}, 400),
        ({"tags": [""]}, 400),
        ({"tags": ["t" * 61]}, 400),
        ({"tags": ["a/b"]}, 400),
        ({"tags": ["a,b"]}, 400),
        ({"tags": [1]}, 400),
        ({"tags": None}, 400),
        ({}, 400),
        ({"tags": [], "more": 1}, 400),
    ],
)
def test_form_of_all_tags_v30(cloud: Cloud, key: str, body: Any, status: int) -> None:
    assert ask(cloud, "PUT", f"/servers/{key}/tags", body).status_code == status
    if status != 200:
        assert tags(cloud, key) == ["a", "b"]


def test_the_51st_is_refused_and_the_50th_stays_v30(cloud: Cloud, key: str) -> None:
    path = f"/servers/{key}/tags"
    ask(cloud, "PUT", path, {"tags": [f"t{n}" for n in range(50)]})
    result = ask(cloud, "PUT", f"{path}/more")
    assert result.status_code == 400
    assert "The number of tags exceeded the per-server limit 50" in result.text
    assert ask(cloud, "PUT", f"{path}/t7").status_code == 204


def test_a_body_next_to_a_tag_is_refused(cloud: Cloud, key: str) -> None:
    assert ask(cloud, "PUT", f"/servers/{key}/tags/c", {"tag": "c"}).status_code == 400
    assert ask(cloud, "PUT", f"/servers/{key}/tags/c", raw=b"null").status_code == 201


@pytest.mark.parametrize("state", ["building", "error"])
def test_servers_that_are_not_settled_keep_their_tags(cloud: Cloud, key: str, state: str) -> None:
    cloud.change(key, vm_state=state)
    path = f"/servers/{key}/tags"
    for method, url, body in (
        ("PUT", f"{path}/c", None),
        ("PUT", path, {"tags": []}),
        ("DELETE", f"{path}/a", None),
        ("DELETE", path, None),
    ):
        result = ask(cloud, method, url, body)
        assert result.status_code == 409
        assert f"while it is in vm_state {state}" in result.json["conflictingRequest"]["message"]
    assert tags(cloud, key) == ["a", "b"]


def test_who_may(cloud: Cloud, key: str) -> None:
    path = f"/servers/{key}/tags"
    for method, url, body in (
        ("GET", path, None),
        ("GET", f"{path}/a", None),
        ("PUT", f"{path}/c", None),
        ("PUT", path, {"tags": []}),
        ("DELETE", f"{path}/a", None),
        ("DELETE", path, None),
    ):
        assert ask(cloud, method, url, body, user="u:other").status_code == 404
        assert ask(cloud, method, url, body, version="2.25").status_code == 404
    assert ask(cloud, "PUT", f"{path}/c", user="admin:admin").status_code == 201


def test_a_change_is_a_change_of_the_server(cloud: Cloud, key: str) -> None:
    cloud.change(key, updated_at=1.0)
    ask(cloud, "PUT", f"/servers/{key}/tags/a")
    assert cloud.row("instances", uuid=key).updated_at == 1.0
    ask(cloud, "PUT", f"/servers/{key}/tags/c")
    assert cloud.row("instances", uuid=key).updated_at > 1.0
