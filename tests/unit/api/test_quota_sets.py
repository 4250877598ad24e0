# SPDX-License-Identifier: Apache-2.0
"""/os-quota-sets, /os-quota-class-sets, /limits: bodies at each microversion, changes, policy."""

from typing import Any

import pytest

from tests.unit.api.cloud import Cloud

NETWORK = {"fixed_ips", "floating_ips", "security_groups", "security_group_rules"}
FILES = {"injected_files", "injected_file_content_bytes", "injected_file_path_bytes"}
GROUPS = {"server_groups", "server_group_members"}
ALWAYS = {"instances", "cores", "ram", "metadata_items", "key_pairs"}
ALL = NETWORK | FILES | GROUPS | ALWAYS
NOVA = {
    "instances": 10,
    "cores": 20,
    "ram": 51200,
    "metadata_items": 128,
    "injected_files": 5,
    "injected_file_content_bytes": 10240,
    "injected_file_path_bytes": 255,
    "key_pairs": 100,
    "server_groups": 10,
    "server_group_members": 10,
}
SETS = [
    ("2.1", ALL),
    ("2.35", ALL),
    ("2.36", ALL - NETWORK),
    ("2.56", ALL - NETWORK),
    ("2.57", ALL - NETWORK - FILES),
]
CLASSES = [
    ("2.1", ALL - GROUPS),
    ("2.49", ALL - GROUPS),
    ("2.50", ALL - NETWORK),
    ("2.57", ALL - NETWORK - FILES),
]


@pytest.fixture(autouse=True)
def _served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies are right up to here whatever is announced."""
    monkeypatch.setattr("novalite.api.microversion.MAX", 79)


def put(cloud: Cloud, limits: dict[str, Any], path: str = "p1", **kwargs: Any) -> Any:
    return cloud.call("PUT", f"/os-quota-sets/{path}", {"quota_set": limits}, **kwargs)


def shown(cloud: Cloud, path: str = "p1", **kwargs: Any) -> dict[str, Any]:
    found: dict[str, Any] = cloud.get(f"/os-quota-sets/{path}", **kwargs)["quota_set"]
    return found


@pytest.mark.parametrize(("version", "keys"), SETS)
def test_keys_of_a_set(cloud: Cloud, version: str, keys: set[str]) -> None:
    body = shown(cloud, version=version)
    assert body.pop("id") == "p1"
    assert body == {name: NOVA.get(name, -1) for name in keys}
    assert shown(cloud, "p1/defaults", version=version) == {"id": "p1", **body}
    assert shown(cloud, "p1/detail", version=version) == {
        "id": "p1",
        **{name: {"limit": limit, "in_use": 0, "reserved": 0} for name, limit in body.items()},
    }
    changed = put(cloud, {"cores": 21}, version=version)
    assert changed.json == {"quota_set": {**body, "cores": 21}}


@pytest.mark.parametrize(("version", "keys"), CLASSES)
def test_keys_of_a_class(cloud: Cloud, version: str, keys: set[str]) -> None:
    url = "/os-quota-class-sets/default"
    body = cloud.get(url, version=version)["quota_class_set"]
    assert body.pop("id") == "default"
    assert body == {name: NOVA.get(name, -1) for name in keys}
    changed = cloud.call("PUT", url, {"quota_class_set": {"ram": 7}}, version=version)
    assert changed.json == {"quota_class_set": {**body, "ram": 7}}


@pytest.mark.parametrize(
    ("version", "more"),
    [
        ("2.1", {"network", "image", "files"}),
        ("2.36", {"image", "files"}),
        ("2.39", {"files"}),
        ("2.57", set()),
    ],
)
def test_keys_of_limits(cloud: Cloud, version: str, more: set[str]) -> None:
    cloud.boot(user="bob:p1")
    expected = {
        "maxTotalInstances": 10,
        "maxTotalCores": 20,
        "maxTotalRAMSize": 51200,
        "maxTotalKeypairs": 100,
        "maxServerMeta": 128,
        "maxServerGroups": 10,
        "maxServerGroupMembers": 10,
        "totalInstancesUsed": 1,
        "totalCoresUsed": 1,
        "totalRAMUsed": 512,
        "totalServerGroupsUsed": 0,
    }
    if "network" in more:
        expected |= {
            "maxTotalFloatingIps": -1,
            "totalFloatingIpsUsed": 0,
            "maxSecurityGroups": -1,
            "totalSecurityGroupsUsed": 0,
            "maxSecurityGroupRules": -1,
        }
    if "image" in more:
        expected["maxImageMeta"] = 128
    if "files" in more:
        expected |= {"maxPersonality": 5, "maxPersonalitySize": 10240}
    body = cloud.get("/limits", user="bob:p1", version=version)
    assert body == {"limits": {"rate": [], "absolute": expected}}


def test_limits_of_another_project(cloud: Cloud) -> None:
    cloud.boot(user="bob:p1")
    body = cloud.get("/limits?tenant_id=p1&reserved=1")
    assert body["limits"]["absolute"]["totalInstancesUsed"] == 1
    assert cloud.get("/limits")["limits"]["absolute"]["totalInstancesUsed"] == 0
    assert cloud.call("GET", "/limits?tenant_id=p2", user="bob:p1").status_code == 403
    assert cloud.call("GET", "/limits?tenant_id=p1", user="bob:p1").status_code == 200


def test_unknown_parameters_from_2_75_on(cloud: Cloud) -> None:
    for url in ("/limits?x=1", "/os-quota-sets/p1?x=1", "/os-quota-sets/p1/detail?x=1"):
        assert cloud.call("GET", url, version="2.74").status_code == 200
        assert cloud.call("GET", url, version="2.75").status_code == 400


@pytest.mark.parametrize("limit", [2147483647, "2147483647", 0, "0", -1, "-1"])
def test_limits_that_can_be_set(cloud: Cloud, limit: Any) -> None:
    """V29."""
    assert put(cloud, {"cores": limit}).status_code == 200
    assert shown(cloud)["cores"] == int(limit)


@pytest.mark.parametrize(
    "limit", [2147483648, "2147483648", -2, "-2", "x", "", " 1", "1.0", 1.5, None, True, [], "²"]
)
def test_limits_that_cannot_be_set(cloud: Cloud, limit: Any) -> None:
    """V29."""
    result = put(cloud, {"cores": limit})
    assert result.status_code == 400, result.text
    assert "cores" in result.json["badRequest"]["message"]
    assert shown(cloud)["cores"] == 20


@pytest.mark.parametrize("wrong", [{"ram": -5}, {"disk": 1}, {"force": "perhaps"}])
def test_a_mixed_update_changes_nothing(cloud: Cloud, wrong: dict[str, Any]) -> None:
    """V29."""
    assert put(cloud, {"instances": 50, **wrong}).status_code == 400
    assert shown(cloud)["instances"] == 10


def test_a_limit_below_use_changes_nothing_unless_forced(cloud: Cloud) -> None:
    cloud.boot(user="bob:p1", min_count=3)
    result = put(cloud, {"cores": 50, "instances": 2})
    assert result.json["badRequest"]["message"] == (
        "Quota limit 2 for instances must be greater than or equal to already used and reserved 3."
    )
    assert shown(cloud)["cores"] == 20
    assert put(cloud, {"cores": 50, "instances": 3}).status_code == 200
    forced = put(cloud, {"instances": 2, "force": "True"})
    assert forced.json["quota_set"]["instances"] == 2
    assert cloud.create(user="bob:p1").status_code == 403


@pytest.mark.parametrize(("version", "name"), [("2.36", "fixed_ips"), ("2.57", "injected_files")])
def test_keys_that_are_gone(cloud: Cloud, version: str, name: str) -> None:
    assert put(cloud, {name: 1}, version=version).status_code == 400
    assert put(cloud, {name: 1}, version="2.35").json["quota_set"][name] == 1
    body = {"quota_class_set": {name: 1}}
    assert (
        cloud.call("PUT", "/os-quota-class-sets/default", body, version="2.57").status_code == 400
    )


def test_limits_of_a_user(cloud: Cloud) -> None:
    assert put(cloud, {"cores": 5}, "p1?user_id=bob").json["quota_set"]["cores"] == 5
    assert shown(cloud, "p1?user_id=bob")["cores"] == 5
    assert shown(cloud, "p1?user_id=carol")["cores"] == 20
    assert shown(cloud)["cores"] == 20
    cloud.boot(user="bob:p1")
    cloud.boot(user="carol:p1")
    detail = shown(cloud, "p1/detail?user_id=bob")
    assert detail["cores"] == {"limit": 5, "in_use": 1, "reserved": 0}
    assert shown(cloud, "p1/detail")["cores"]["in_use"] == 2


def test_a_user_gets_no_more_than_the_project_has_left(cloud: Cloud) -> None:
    assert put(cloud, {"cores": 15}, "p1?user_id=bob").status_code == 200
    result = put(cloud, {"cores": 6}, "p1?user_id=carol")
    assert result.json["badRequest"]["message"] == (
        "Quota limit 6 for cores must be less than or equal to 5."
    )
    assert put(cloud, {"cores": -1}, "p1?user_id=carol").status_code == 400
    assert put(cloud, {"cores": 5}, "p1?user_id=carol").status_code == 200
    assert put(cloud, {"cores": 15}, "p1?user_id=bob").status_code == 200
    assert put(cloud, {"cores": 19}).status_code == 400
    assert put(cloud, {"cores": 99, "force": True}, "p1?user_id=carol").status_code == 200


def test_a_user_in_an_unlimited_project(cloud: Cloud) -> None:
    put(cloud, {"cores": -1})
    assert put(cloud, {"cores": 1000000}, "p1?user_id=bob").status_code == 200
    assert put(cloud, {"cores": -1}, "p1?user_id=bob").status_code == 200


def test_delete_takes_limits_back(cloud: Cloud) -> None:
    put(cloud, {"cores": 10})
    put(cloud, {"cores": 5}, "p1?user_id=bob")
    assert cloud.call("DELETE", "/os-quota-sets/p1?user_id=bob").status_code == 202
    assert shown(cloud, "p1?user_id=bob")["cores"] == 10
    put(cloud, {"cores": 5}, "p1?user_id=bob")
    assert cloud.call("DELETE", "/os-quota-sets/p1").status_code == 202
    assert shown(cloud)["cores"] == shown(cloud, "p1?user_id=bob")["cores"] == 20


def test_defaults_are_those_of_the_class(cloud: Cloud) -> None:
    body = {"quota_class_set": {"instances": 3}}
    assert cloud.call("PUT", "/os-quota-class-sets/default", body).status_code == 200
    assert cloud.call("PUT", "/os-quota-class-sets/gold", body).status_code == 200
    put(cloud, {"instances": 7})
    assert shown(cloud, "p1/defaults")["instances"] == 3
    assert shown(cloud, "p2")["instances"] == 3
    assert shown(cloud)["instances"] == 7
    assert cloud.create(user="bob:p2", min_count=4).status_code == 403


def test_defaults_follow_the_options(cloud: Cloud) -> None:
    cloud.conf.set_override("injected_file_path_length", 11, group="quota")
    assert shown(cloud, "p1/defaults")["injected_file_path_bytes"] == 11


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", "/os-quota-sets/"),
        ("GET", "/os-quota-sets"),
        ("POST", "/os-quota-sets/p1"),
        ("DELETE", "/os-quota-class-sets/default"),
        ("GET", "/os-quota-class-sets"),
    ],
)
def test_what_is_not_there(cloud: Cloud, method: str, url: str) -> None:
    assert cloud.call(method, url, {} if method == "POST" else None).status_code == 404


@pytest.mark.parametrize(
    "path", ["p" * 256, f"p1?user_id={'u' * 256}", "a%0A"], ids=["project", "user", "line feed"]
)
def test_ids_that_nobody_has(cloud: Cloud, path: str) -> None:
    for method, body in (("GET", None), ("PUT", {"quota_set": {}}), ("DELETE", None)):
        assert cloud.call(method, f"/os-quota-sets/{path}", body).status_code == 400


def test_members_see_their_own(cloud: Cloud) -> None:
    assert shown(cloud, user="bob:p1")["cores"] == 20
    assert shown(cloud, "p1/detail", user="bob:p1")["cores"]["limit"] == 20
    assert shown(cloud, "p2/defaults", user="bob:p1")["cores"] == 20
    for path in ("p2", "p2/detail"):
        assert cloud.call("GET", f"/os-quota-sets/{path}", user="bob:p1").status_code == 403
    assert put(cloud, {"cores": 99}, user="bob:p1").status_code == 403
    assert cloud.call("DELETE", "/os-quota-sets/p1", user="bob:p1").status_code == 403
    assert cloud.call("GET", "/os-quota-class-sets/default", user="bob:p1").status_code == 403
