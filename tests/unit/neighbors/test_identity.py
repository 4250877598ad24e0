# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from novalite.neighbors.identity import passwords
from novalite.neighbors.identity.tokens import InvalidToken, Tokens
from tests.unit.neighbors.support import PASSWORD, Cloud, login, scope

SERVICES = {"identity", "image", "network", "volumev3", "block-storage", "compute"}


def post_token(cloud: Cloud, auth: dict[str, Any]) -> Any:
    return cloud.identity.simulate_post("/v3/auth/tokens", json={"auth": auth})


def test_version_documents_need_no_token(cloud: Cloud) -> None:
    one = cloud.identity.simulate_get("/v3")
    assert one.status_code == 200
    assert one.json["version"]["id"] == "v3.14"
    several = cloud.identity.simulate_get("/")
    assert several.status_code == 300
    assert several.json["versions"]["values"] == [one.json["version"]]


def test_token_has_project_roles_and_catalogue(cloud: Cloud) -> None:
    answer = post_token(cloud, {**login("admin"), **scope("demo")})
    assert answer.status_code == 201
    assert answer.headers["X-Subject-Token"]
    token = answer.json["token"]
    assert token["project"]["name"] == "demo"
    assert token["project"]["domain"] == {"id": "default", "name": "Default"}
    assert {role["name"] for role in token["roles"]} == {"admin", "member", "reader"}
    assert token["user"]["name"] == "admin"
    assert token["expires_at"].endswith("Z") and token["issued_at"].endswith("Z")
    catalog = {item["type"]: item["endpoints"] for item in token["catalog"]}
    assert set(catalog) == SERVICES
    for endpoints in catalog.values():
        assert {item["interface"] for item in endpoints} == {"public", "internal", "admin"}
        for item in endpoints:
            assert item["region"] == item["region_id"] == "RegionOne"
            assert item["id"]
    assert catalog["image"][0]["url"] == "http://image.test"
    assert catalog["network"][0]["url"] == "http://network.test"
    assert catalog["compute"][0]["url"].endswith("/v2.1")


def test_member_implies_reader_only(cloud: Cloud) -> None:
    token = post_token(cloud, {**login("demo"), **scope("demo")}).json["token"]
    assert {role["name"] for role in token["roles"]} == {"member", "reader"}


def test_unscoped_token_has_neither_roles_nor_catalogue(cloud: Cloud) -> None:
    for auth in (login("admin"), {**login("admin"), "scope": "unscoped"}):
        token = post_token(cloud, auth).json["token"]
        assert not {"roles", "catalog", "project", "domain"} & set(token)


def test_domain_and_system_scope(cloud: Cloud) -> None:
    domain = post_token(cloud, {**login("admin"), "scope": {"domain": {"id": "default"}}})
    assert domain.json["token"]["domain"]["id"] == "default"
    system = post_token(cloud, {**login("admin"), "scope": {"system": {"all": True}}})
    assert system.json["token"]["system"] == {"all": True}
    refused = post_token(cloud, {**login("demo"), "scope": {"system": {"all": True}}})
    assert refused.status_code == 401


@pytest.mark.parametrize(
    "auth",
    [
        login("admin", "wrong") | scope("admin"),
        login("nobody") | scope("admin"),
        login("admin") | scope("no-such-project"),
        login("demo") | scope("admin"),
        {"identity": {"methods": ["token"], "token": {"id": "x"}}},
        {"identity": {"methods": ["totp"], "totp": {}}},
    ],
    ids=["password", "user", "project", "no-role", "token", "method"],
)
def test_what_is_not_right_is_401(cloud: Cloud, auth: dict[str, Any]) -> None:
    answer = post_token(cloud, auth)
    assert answer.status_code == 401
    assert answer.json["error"]["code"] == 401
    assert PASSWORD not in answer.text


@pytest.mark.parametrize(
    "body", [{}, {"auth": []}, {"auth": {}}, {"auth": {"identity": {"methods": []}}}]
)
def test_malformed_login_is_400(cloud: Cloud, body: Any) -> None:
    answer = cloud.identity.simulate_post("/v3/auth/tokens", json=body)
    assert answer.status_code == 400
    assert answer.json["error"]["message"]


def test_token_can_be_shown_checked_and_revoked(cloud: Cloud) -> None:
    admin = cloud.user()
    subject = {"X-Subject-Token": cloud.token("demo", "demo")}
    shown = admin("identity", "GET", "/v3/auth/tokens", headers=subject)
    assert shown["token"]["user"]["name"] == "demo"
    assert "catalog" in shown["token"]
    short = admin("identity", "GET", "/v3/auth/tokens", headers=subject, query_string="nocatalog")
    assert "catalog" not in short["token"]
    admin("identity", "HEAD", "/v3/auth/tokens", headers=subject)
    admin("identity", "DELETE", "/v3/auth/tokens", headers=subject, expect=204)
    admin("identity", "GET", "/v3/auth/tokens", headers=subject, expect=404)


def test_a_user_sees_its_own_token_only(cloud: Cloud) -> None:
    demo = cloud.user("demo", "demo")
    demo("identity", "GET", "/v3/auth/tokens", headers={"X-Subject-Token": demo.token})
    other = {"X-Subject-Token": cloud.token()}
    demo("identity", "GET", "/v3/auth/tokens", headers=other, expect=403)


def test_a_token_gives_another_scope_but_no_longer_life(cloud: Cloud) -> None:
    first = post_token(cloud, login("admin"))
    proof = {"identity": {"methods": ["token"], "token": {"id": first.headers["X-Subject-Token"]}}}
    second = post_token(cloud, {**proof, **scope("demo")}).json["token"]
    assert second["project"]["name"] == "demo"
    assert second["expires_at"] == first.json["token"]["expires_at"]
    assert second["methods"] == ["token", "password"]
    assert second["audit_ids"][1] == first.json["token"]["audit_ids"][0]


def test_tokens_expire(cloud: Cloud) -> None:
    now = [1000.0]
    issuer = Tokens(cloud.store, 60.0, clock=lambda: now[0])
    with cloud.store.write() as tx:
        token, _holder = issuer.issue(tx, "u", "", ["password"])
    assert issuer.caller(token).user_id == "u"
    now[0] += 60
    with pytest.raises(InvalidToken):
        issuer.caller(token)


def test_the_file_holds_no_token_and_no_password(cloud: Cloud) -> None:
    token = cloud.token()
    with cloud.store.write() as tx:
        tx.run("SELECT 1")
    written = b"".join(path.read_bytes() for path in cloud.store.path.parent.glob("neighbors.db*"))
    assert token.encode() not in written
    assert PASSWORD.encode() not in written


def test_hashes_are_salted() -> None:
    first, second = passwords.hashed("p"), passwords.hashed("p")
    assert first != second
    assert passwords.matches("p", first) and passwords.matches("p", second)
    assert not passwords.matches("q", first)


def test_life_of_a_test_account(cloud: Cloud) -> None:
    """What a test suite does to make itself a project and a user."""
    admin = cloud.user()
    found = admin("identity", "GET", "/v3/domains", query_string="name=Default")["domains"]
    assert [domain["id"] for domain in found] == ["default"]
    made = {"project": {"name": "p1", "domain_id": "default", "description": "d"}}
    project = admin("identity", "POST", "/v3/projects", made, 201)["project"]
    assert len(project["id"]) == 32
    assert project["enabled"] is True and project["is_domain"] is False
    admin("identity", "POST", "/v3/projects", made, 409)
    asked = {"name": "u1", "password": "x", "email": "a@b", "default_project_id": project["id"]}
    user = admin("identity", "POST", "/v3/users", {"user": asked}, 201)["user"]
    assert "password" not in user
    roles = admin("identity", "GET", "/v3/roles")["roles"]
    member = next(role["id"] for role in roles if role["name"] == "member")
    path = f"/v3/projects/{project['id']}/users/{user['id']}/roles/{member}"
    admin("identity", "HEAD", path, expect=404)
    admin("identity", "PUT", path, expect=204)
    admin("identity", "PUT", path, expect=204)
    admin("identity", "HEAD", path, expect=204)
    auth = {**login("u1", "x"), **scope("p1")}
    token = post_token(cloud, auth)
    assert token.status_code == 201
    by_default = post_token(cloud, login("u1", "x")).json["token"]
    assert by_default["project"]["id"] == project["id"]
    admin("identity", "DELETE", f"/v3/users/{user['id']}", expect=204)
    gone = {"X-Subject-Token": token.headers["X-Subject-Token"]}
    admin("identity", "GET", "/v3/auth/tokens", headers=gone, expect=404)
    admin("identity", "DELETE", f"/v3/projects/{project['id']}", expect=204)
    admin("identity", "GET", f"/v3/projects/{project['id']}", expect=404)


def test_a_name_in_the_id_position_is_404(cloud: Cloud) -> None:
    admin = cloud.user()
    for path in ("projects/demo", "users/demo", "roles/member", "domains/Default"):
        answer = admin("identity", "GET", f"/v3/{path}", expect=404)
        assert answer["error"]["title"] == "Not Found"


@pytest.mark.parametrize("change", [{"enabled": False}, {"password": "new"}])
def test_disabling_or_a_new_password_ends_tokens(cloud: Cloud, change: dict[str, Any]) -> None:
    admin, demo = cloud.user(), cloud.user("demo", "demo")
    with cloud.store.read() as tx:
        user_id = tx.find("user", name="demo")[0]["id"]
    admin("identity", "PATCH", f"/v3/users/{user_id}", {"user": change})
    demo("identity", "GET", "/v3/auth/projects", expect=401)
    assert post_token(cloud, login("demo")).status_code == 401


def test_others_see_only_what_is_theirs(cloud: Cloud) -> None:
    demo = cloud.user("demo", "demo")
    project_id = cloud.project_id("demo")
    assert demo("identity", "GET", f"/v3/projects/{project_id}")["project"]["name"] == "demo"
    assert demo("identity", "GET", "/v3/domains/default")["domain"]["name"] == "Default"
    projects = demo("identity", "GET", "/v3/auth/projects")["projects"]
    assert [project["name"] for project in projects] == ["demo"]
    for method, path, body in (
        ("GET", "/v3/users", None),
        ("GET", "/v3/projects", None),
        ("GET", f"/v3/projects/{cloud.project_id('admin')}", None),
        ("POST", "/v3/projects", {"project": {"name": "x"}}),
        ("DELETE", f"/v3/projects/{project_id}", None),
        ("GET", "/v3/role_assignments", None),
    ):
        answer = demo("identity", method, path, body, 403)
        assert "not authorized" in answer["error"]["message"]


def test_role_assignments_are_filtered_and_named(cloud: Cloud) -> None:
    admin = cloud.user()
    query = f"scope.project.id={cloud.project_id('demo')}&include_names=True"
    found = admin("identity", "GET", "/v3/role_assignments", query_string=query)
    pairs = {(item["user"]["name"], item["role"]["name"]) for item in found["role_assignments"]}
    assert pairs == {("admin", "admin"), ("demo", "member")}


def test_a_domain_must_be_disabled_first(cloud: Cloud) -> None:
    admin = cloud.user()
    domain = admin("identity", "POST", "/v3/domains", {"domain": {"name": "d2"}}, 201)["domain"]
    inside = {"user": {"name": "demo", "domain_id": domain["id"], "password": "x"}}
    user = admin("identity", "POST", "/v3/users", inside, 201)["user"]
    path = f"/v3/domains/{domain['id']}"
    admin("identity", "DELETE", path, expect=403)
    admin("identity", "PATCH", path, {"domain": {"enabled": False}})
    admin("identity", "DELETE", path, expect=204)
    admin("identity", "GET", f"/v3/users/{user['id']}", expect=404)


def test_bad_fields_are_named(cloud: Cloud) -> None:
    admin = cloud.user()
    for body, field in (
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"name": "x", "is_domain": True}, "is_domain"),
        ({"name": "x", "enabled": "yes"}, "enabled"),
    ):
        answer = admin("identity", "POST", "/v3/projects", {"project": body}, 400)
        assert field in answer["error"]["message"]
    admin("identity", "POST", "/v3/projects", {"project": {"name": "x", "domain_id": "no"}}, 404)


def test_unknown_paths_and_methods_are_404(cloud: Cloud) -> None:
    admin = cloud.user()
    for method, path in (("GET", "/v3/nothing"), ("PUT", "/v3/users"), ("DELETE", "/v3/users/")):
        admin("identity", method, path, expect=404)


def test_every_answer_has_a_request_id(cloud: Cloud) -> None:
    for path in ("/", "/v3", "/v3/users", "/nothing"):
        answer = cloud.identity.simulate_get(path)
        assert answer.headers["X-OpenStack-Request-ID"].startswith("req-")


def test_the_owner_changes_a_password_by_knowing_it(cloud: Cloud) -> None:
    with cloud.store.read() as tx:
        user_id = tx.find("user", name="demo")[0]["id"]
    path = f"/v3/users/{user_id}/password"
    wrong = {"user": {"password": "n", "original_password": "wrong"}}
    assert cloud.identity.simulate_post(path, json=wrong).status_code == 401
    right = {"user": {"password": "n", "original_password": PASSWORD}}
    assert cloud.identity.simulate_post(path, json=right).status_code == 204
    assert post_token(cloud, login("demo", "n")).status_code == 201


def test_catalogue_lists(cloud: Cloud) -> None:
    admin = cloud.user()
    services = admin("identity", "GET", "/v3/services")["services"]
    assert {item["type"] for item in services} == SERVICES
    endpoints = admin("identity", "GET", "/v3/endpoints", query_string="interface=public")
    assert len(endpoints["endpoints"]) == len(SERVICES)
    admin("identity", "GET", f"/v3/services/{services[0]['id']}")
    admin("identity", "GET", "/v3/regions/RegionOne")
    admin("identity", "GET", "/v3/regions/Nowhere", expect=404)
