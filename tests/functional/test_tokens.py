# SPDX-License-Identifier: Apache-2.0
"""Tokens of the stand-in and, when NOVALITE_TEST_KEYSTONE names one, of a real Keystone.

NOVALITE_TEST_KEYSTONE is http://USER:PASSWORD@HOST:PORT/v3 with an administrator's account in the
project ``admin``. Projects and users are made there and left there.
"""

import os
import secrets
import socket
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from novalite.devcloud.client import Client
from tests.functional import api as api_module
from tests.functional.cloud import PASSWORDS, Cloud
from tests.functional.waiting import eventually

Make = Callable[..., Cloud]

REAL = os.environ.get("NOVALITE_TEST_KEYSTONE")
DOMAIN = {"id": "default"}


class Identity:
    """An identity service with an administrator's account; makes others."""

    def __init__(self, url: str, user: str, password: str):
        self.url = url
        self.passwords = {user: password}
        self._admin = Client(url, {"X-Auth-Token": self.token(user, "admin")})
        self._roles = {role["name"]: role["id"] for role in self._admin.get("/roles")["roles"]}
        self._projects: dict[str, str] = {}
        self.suffix = secrets.token_hex(3)

    def add_project(self, name: str) -> str:
        """Make a project and return its id."""
        body = {"project": {"name": name, "domain_id": "default"}}
        self._projects[name] = str(self._admin.post("/projects", body)["project"]["id"])
        return self._projects[name]

    def add_user(self, name: str, project: str, *roles: str) -> None:
        """Make a user with these roles in a project."""
        self.passwords[name] = secrets.token_urlsafe(12)
        user = {"name": name, "password": self.passwords[name], "domain_id": "default"}
        key = self._admin.post("/users", {"user": user})["user"]["id"]
        for role in roles:
            path = f"/projects/{self._projects[project]}/users/{key}/roles/{self._roles[role]}"
            assert self._admin.request("PUT", path).status == 204

    def token(self, user: str, project: str | None = None, scope: Any = None) -> str:
        """Return a token for a project, for another scope, or for none."""
        account = {"name": user, "domain": DOMAIN, "password": self.passwords[user]}
        auth: dict[str, Any] = {
            "identity": {"methods": ["password"], "password": {"user": account}},
            "scope": scope or "unscoped",
        }
        if project is not None:
            auth["scope"] = {"project": {"name": project, "domain": DOMAIN}}
        answer = Client(self.url, {}).request("POST", "/auth/tokens", {"auth": auth})
        assert answer.status == 201, answer
        return str(answer.headers["x-subject-token"])

    def revoke(self, token: str) -> None:
        """End a token before its time."""
        client = Client(self.url, {"X-Auth-Token": token, "X-Subject-Token": token})
        assert client.request("DELETE", "/auth/tokens").status == 204


class World:
    """A cloud that asks one identity service, with users of two projects there."""

    def __init__(self, cloud: Cloud, identity: Identity):
        self.cloud = cloud
        self.identity = identity
        one, two = f"one-{identity.suffix}", f"two-{identity.suffix}"
        self.projects = (one, two)
        identity.add_project(one)
        identity.add_project(two)
        for name, project, role in (
            ("member", one, "member"),
            ("reader", one, "reader"),
            ("stranger", two, "member"),
        ):
            identity.add_user(f"{name}-{identity.suffix}", project, role)

    def token(self, name: str, scoped: bool = True) -> str:
        project = self.projects[name == "stranger"] if scoped else None
        return self.identity.token(f"{name}-{self.identity.suffix}", project)

    def api(self, token: str) -> api_module.Api:
        return api_module.Api(
            self.cloud.endpoints.compute_url, token, image=self.cloud.client().image
        )

    def status(self, token: str, path: str = "/servers") -> int:
        return self.api(token).request("GET", path).status


def real() -> Identity:
    """Return the Keystone of the environment, with an account for novalite itself."""
    assert REAL is not None
    url = urllib.parse.urlsplit(REAL)
    place = f"{url.scheme}://{url.hostname}:{url.port}{url.path}"
    found = Identity(place, str(url.username), str(url.password))
    service = f"service-{found.suffix}"
    found.add_project(service)
    found.add_user(f"nova-{found.suffix}", service, "admin", "service")
    return found


@pytest.fixture(
    scope="class",
    params=[
        "stand-in",
        pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="no real Keystone named")),
    ],
)
def world(request: pytest.FixtureRequest, make_class_cloud: Make) -> Iterator[World]:
    cloud = make_class_cloud(
        auth="keystone", config={"keystone_authtoken": {"token_cache_time": 1}}
    )
    identity = Identity(cloud.endpoints.auth_url, "admin", PASSWORDS["admin"])
    if request.param == "real":
        identity = real()
        nova = f"nova-{identity.suffix}"
        cloud.configure(
            {
                "keystone_authtoken": {
                    "auth_url": identity.url,
                    "www_authenticate_uri": identity.url,
                    "username": nova,
                    "password": identity.passwords[nova],
                    "project_name": f"service-{identity.suffix}",
                }
            }
        )
        cloud.restart("api")
    yield World(cloud, identity)


class TestTokens:
    def test_a_member_boots_and_others_do_not_see_it(self, world: World) -> None:
        member, reader = world.api(world.token("member")), world.api(world.token("reader"))
        server = member.boot()
        member.wait(server)
        assert reader.show(server)["name"] == "vm"
        assert reader.create().status == 403
        assert reader.request("DELETE", f"/servers/{server}").status == 403
        stranger = world.api(world.token("stranger"))
        for method in ("GET", "DELETE", "PUT"):
            body = {"server": {"name": "mine"}} if method == "PUT" else None
            assert stranger.request(method, f"/servers/{server}", body).status == 404
        assert stranger.servers() == []
        member.delete(server)

    def test_scopes_other_than_a_project(self, world: World) -> None:
        unscoped = world.token("member", scoped=False)
        assert world.status(unscoped) == 403
        system = world.identity.token("admin", scope={"system": {"all": True}})
        assert world.status(system) == 403
        assert world.status(system, "/os-services") == 403
        admin = world.identity.token("admin", "admin")
        assert world.status(admin, "/os-services") == 200

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "garbage",
            # In the form of a Fernet token, signed by nobody we know.
            "gAAAAABm" + "A" * 180 + "==",
            "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
            "x" * 4000,
            "a b\tc",
            "\xe9\xff",
            "../../v3/users",
        ],
        ids=range(8),
    )
    def test_what_is_no_token(self, world: World, token: str) -> None:
        # By hand, since clients refuse some of these.
        host = urllib.parse.urlsplit(world.cloud.endpoints.compute_url)
        with socket.create_connection((str(host.hostname), int(host.port or 0)), 20) as plug:
            lines = ("GET /v2.1/servers HTTP/1.1", "Host: x", "Connection: close")
            head = "\r\n".join((*lines, f"X-Auth-Token: {token}", "", ""))
            plug.sendall(head.encode("latin-1"))
            answer = plug.makefile("rb").read().decode()
        assert answer.split()[1] == "401", answer[:300]
        assert f'Keystone uri="{world.identity.url}"' in answer
        assert "Traceback" not in answer

    def test_a_revoked_token_ends_with_the_memory_of_it(self, world: World) -> None:
        token = world.token("member")
        assert world.status(token) == 200
        world.identity.revoke(token)
        eventually(lambda: world.status(token) == 401, 20, "the token is refused")
