# SPDX-License-Identifier: Apache-2.0
"""Server groups: forms of policy and rules by microversion, members, and who may see them."""

from typing import Any

import pytest

from novalite.objects import base
from tests.unit.api.cloud import Cloud

UNKNOWN = "12345678-0000-0000-0000-000000000000"
OLD = {"id", "name", "members", "policies", "metadata"}
OWNER = {"project_id", "user_id"}
NEW = {"id", "name", "members", "policy", "rules"} | OWNER


def post(cloud: Cloud, version: str = "2.64", user: str = "joe:p", **values: Any) -> Any:
    body = {"server_group": {"name": "g", **values}}
    return cloud.call("POST", "/os-server-groups", body, version=version, user=user)


def make(cloud: Cloud, user: str = "joe:p", name: str = "g", **values: Any) -> str:
    result = post(cloud, user=user, name=name, policy="anti-affinity", **values)
    assert result.status_code == 200, result.text
    return str(result.json["server_group"]["id"])


def show(cloud: Cloud, key: str, version: str = "2.64", user: str = "joe:p") -> Any:
    return cloud.get(f"/os-server-groups/{key}", version=version, user=user)["server_group"]


def names(cloud: Cloud, query: str = "", user: str = "joe:p") -> list[str]:
    found = cloud.get(f"/os-server-groups{query}", user=user)["server_groups"]
    return [group["name"] for group in found]


@pytest.mark.parametrize(
    ("version", "keys"), [("2.1", OLD), ("2.13", OLD | OWNER), ("2.63", OLD | OWNER)]
)
def test_until_2_63_with_a_list(cloud: Cloud, version: str, keys: set[str]) -> None:
    result = post(cloud, version, policies=["affinity"])
    assert result.status_code == 200, result.text
    group = result.json["server_group"]
    assert set(group) == keys
    assert (group["policies"], group["metadata"], group["members"]) == (["affinity"], {}, [])
    assert show(cloud, group["id"], version) == group
    path = "/os-server-groups"
    assert cloud.get(path, version=version, user="joe:p") == {"server_groups": [group]}
    assert set(show(cloud, group["id"], "2.64")) == NEW


def test_from_2_64_with_one_policy_and_rules(cloud: Cloud) -> None:
    rules = {"max_server_per_host": "3"}
    group = post(cloud, policy="anti-affinity", rules=rules).json["server_group"]
    assert set(group) == NEW
    assert (group["policy"], group["rules"]) == ("anti-affinity", {"max_server_per_host": 3})
    assert (group["project_id"], group["user_id"]) == ("p", "joe")
    assert show(cloud, group["id"]) == group
    assert set(show(cloud, group["id"], "2.63")) == OLD | OWNER
    assert post(cloud, policy="soft-affinity").json["server_group"]["rules"] == {}


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("2.1", {}),
    ("2.1", {"policies": []}),
    ("2.1", {"policies": ["affinity", "anti-affinity"]}),
    ("2.1", {"policies": ["affinity", "affinity"]}),
    ("2.1", {"policies": ["storage-affinity"]}),
    ("2.1", {"policies": ["soft-affinity"]}),
    ("2.1", {"policies": "affinity"}),
    ("2.1", {"policy": "affinity"}),
    ("2.1", {"policies": ["affinity"], "name": ""}),
    ("2.1", {"policies": ["affinity"], "name": "x" * 256}),
    ("2.1", {"policies": ["affinity"], "name": "\0"}),
    ("2.1", {"policies": ["affinity"], "metadata": {}}),
    ("2.63", {"policies": ["affinity"], "rules": {}}),
    ("2.64", {"policies": ["affinity"]}),
    ("2.64", {"policy": ["affinity"]}),
    ("2.64", {"policy": "affinity", "rules": {"max_server_per_host": 1}}),
    ("2.64", {"policy": "anti-affinity", "rules": {"max_server_per_host": 0}}),
    ("2.64", {"policy": "anti-affinity", "rules": {"max_server_per_host": "x"}}),
    ("2.64", {"policy": "anti-affinity", "rules": {"other": 1}}),
]


def test_refused(cloud: Cloud) -> None:
    for version, values in REFUSED:
        result = post(cloud, version, **values)
        assert result.status_code == 400, (version, values, result.text)
    assert names(cloud) == []


def test_soft_policies_from_2_15_on(cloud: Cloud) -> None:
    for policy in ("soft-affinity", "soft-anti-affinity"):
        assert post(cloud, "2.15", policies=[policy]).status_code == 200
        assert post(cloud, "2.14", policies=[policy]).status_code == 400


def test_delete(cloud: Cloud) -> None:
    key = make(cloud)
    for expected in (204, 404):
        result = cloud.call("DELETE", f"/os-server-groups/{key}", user="joe:p")
        assert result.status_code == expected
    message = result.json["itemNotFound"]["message"]
    assert message == f"Instance group {key} could not be found."


def test_other_projects_do_not_see_it(cloud: Cloud) -> None:
    key = make(cloud)
    for method in ("GET", "DELETE"):
        result = cloud.call(method, f"/os-server-groups/{key}", user="ann:q")
        assert result.status_code == 404
    assert names(cloud, user="ann:q") == []
    assert names(cloud, "?all_projects=True", user="ann:q") == []
    assert show(cloud, key, user="admin:admin")["id"] == key
    assert names(cloud, user="admin:admin") == []
    assert cloud.call("DELETE", f"/os-server-groups/{key}", user="admin:admin").status_code == 204


def test_all_projects(cloud: Cloud) -> None:
    make(cloud, name="one")
    make(cloud, name="two", user="ann:q")
    assert names(cloud, "?all_projects", user="admin:admin") == ["one", "two"]
    assert names(cloud, "?all_projects=1", user="admin:admin") == ["one", "two"]
    assert names(cloud, "?all_projects=False", user="admin:admin") == []


def test_pages(cloud: Cloud) -> None:
    for name in "abcd":
        make(cloud, name=name)
    assert names(cloud, "?limit=2") == ["a", "b"]
    assert names(cloud, "?limit=2&offset=1") == ["b", "c"]
    assert names(cloud, "?offset=3") == ["d"]
    assert names(cloud, "?offset=9999999999999999999999") == []
    assert names(cloud, "?limit=0") == list("abcd")
    cloud.conf.set_override("max_limit", 3, group="api")
    assert names(cloud, "?limit=9") == names(cloud, "?limit=0") == names(cloud) == list("abc")


WRONG_PAGES = ["limit=-1", "limit=x", "offset=-1", "offset=%C2%B2"]


def test_wrong_pages(cloud: Cloud) -> None:
    for query in WRONG_PAGES:
        assert cloud.call("GET", f"/os-server-groups?{query}").status_code == 400, query


def test_unknown_parameters(cloud: Cloud) -> None:
    for version, status in (("2.74", 200), ("2.75", 400)):
        result = cloud.call("GET", "/os-server-groups?more=1", version=version)
        assert result.status_code == status
    known = "/os-server-groups?limit=1&offset=0&all_projects=1"
    assert cloud.call("GET", known, version="2.75").status_code == 200


class TestMembers:
    def test_a_server_joins_when_it_is_made_and_leaves_with_its_end(self, cloud: Cloud) -> None:
        key = make(cloud)
        result = cloud.create(user="joe:p", hints={"group": key}, max_count=2)
        assert result.status_code == 202
        first, second = show(cloud, key)["members"]
        assert {first, second} == {
            server["id"] for server in cloud.get("/servers", user="joe:p")["servers"]
        }
        spec = base.decode(cloud.row("request_specs", instance_uuid=first).spec)
        assert spec.scheduler_hints == {"group": key}
        cloud.call("DELETE", f"/servers/{first}", user="joe:p")
        assert show(cloud, key)["members"] == [second]
        cloud.call("DELETE", f"/os-server-groups/{key}", user="joe:p")
        assert cloud.get(f"/servers/{second}", user="joe:p")["server"]["id"] == second

    @pytest.mark.parametrize("user", ["ann:q", "admin:admin"])
    def test_a_foreign_group_is_as_good_as_none(self, cloud: Cloud, user: str) -> None:
        key = make(cloud)
        for group in (key, UNKNOWN):
            result = cloud.create(user=user, hints={"group": group})
            assert result.status_code == 400
            message = f"Instance group {group} could not be found."
            assert result.json["badRequest"]["message"] == message
        assert show(cloud, key)["members"] == []
        assert cloud.get("/servers", user=user)["servers"] == []

    def test_a_name_is_no_group(self, cloud: Cloud) -> None:
        assert cloud.create(hints={"group": "g"}).status_code == 400

    def test_a_refused_server_is_not_in_it(self, cloud: Cloud) -> None:
        key = make(cloud)
        cloud.conf.set_override("server_group_members", 2, group="quota")
        result = cloud.create(user="joe:p", hints={"group": key}, min_count=3)
        assert result.status_code == 403
        assert result.json["forbidden"]["message"] == "Quota exceeded, too many servers in group"
        assert show(cloud, key)["members"] == []
        assert cloud.get("/servers", user="joe:p")["servers"] == []
        assert cloud.create(user="joe:p", hints={"group": key}, min_count=2).status_code == 202
        assert cloud.create(user="joe:p", hints={"group": key}).status_code == 403
        assert cloud.create(user="joe:p").status_code == 202

    def test_a_group_that_goes_meanwhile(
        self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = make(cloud)
        validate = cloud.networks.validate

        def validate_late(context: Any, requested: Any, count: int) -> Any:
            cloud.call("DELETE", f"/os-server-groups/{key}", user="joe:p")
            return validate(context, requested, count)

        monkeypatch.setattr(cloud.networks, "validate", validate_late)
        assert cloud.create(user="joe:p", hints={"group": key}).status_code == 400
        assert cloud.get("/servers", user="joe:p")["servers"] == []


def test_quota_of_a_project(cloud: Cloud) -> None:
    cloud.conf.set_override("server_groups", 1, group="quota")
    key = make(cloud)
    result = post(cloud, user="ann:p", policy="affinity")
    assert result.status_code == 403
    assert result.json["forbidden"]["message"] == "Quota exceeded, too many server groups."
    make(cloud, user="ann:q")
    cloud.call("DELETE", f"/os-server-groups/{key}", user="joe:p")
    make(cloud, user="ann:p")
