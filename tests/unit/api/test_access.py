# SPDX-License-Identifier: Apache-2.0
"""Every route asked by every kind of caller about objects of two projects; see access_table.py.

Bodies are wrong on purpose: who may do a thing hears 400 and nothing is changed, everybody else
must be refused before anybody looks at the body.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from novalite import context as context_module
from novalite.api import app, auth, microversion, rules
from novalite.api.resources import aggregates, flavor_access, server_actions
from novalite.db import actions
from tests.unit.api import access_table
from tests.unit.api.cloud import FLAVOR, Cloud, make_conf
from tests.unit.api.conftest import make_cloud

CALLERS, ROWS, WHO = access_table.CALLERS, access_table.ROWS, access_table.WHO
ROLES = {
    "admin": ["admin", "member", "reader"],
    "member": ["member", "reader"],
    "reader": ["reader"],
    "none": [],
}
VOLUMES = [{"volume_id": "v", "device_name": "/dev/vdb"}]
NETWORK = [
    {
        "port_id": "p",
        "network_name": "net",
        "mac_address": "fa:16:3e:00:00:01",
        "fixed_ips": [{"ip_address": "10.0.0.1"}],
    }
]
ACTIONS: dict[str, dict[str, Any]] = {
    "server_id": server_actions.ACTIONS,
    "flavor_id": flavor_access.ACTIONS,
    "aggregate_id": aggregates.ACTIONS,
}
METHODS = ("GET", "POST", "PUT", "DELETE")
PUBLIC_KEY = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{43 * 'A'}"
cells = 0


def context_of(caller: str, request_id: str) -> context_module.RequestContext:
    """Return the context of a caller as its token would make it."""
    values: dict[str, Any] = {"user_id": caller, "request_id": request_id, "is_admin": None}
    if caller == "unscoped":
        return context_module.RequestContext(roles=[], **values)
    if caller == "system":
        return context_module.RequestContext(roles=ROLES["admin"], system_scope="all", **values)
    project, _, role = caller.partition(".")
    return context_module.RequestContext(project_id=project, roles=ROLES[role], **values)


class World:
    """The cloud with one object of each kind for each project."""

    def __init__(self, cloud: Cloud):
        self.cloud = cloud
        self.service = cloud.add_service("spare")
        self.node = cloud.add_node("h1")
        self.hypervisor_number = str(cloud.row("compute_nodes", uuid=self.node).id)
        self.servers: dict[str, str] = {}
        self.requests: dict[str, str] = {}
        private = {"name": "private", "id": "private", "vcpus": 1, "ram": 1, "disk": 1}
        body = {"flavor": {**private, "os-flavor-access:is_public": False}}
        assert self.call("POST", "/flavors", "A.admin", body) == 200
        for project in "AB":
            self.add_server(project)

    def call(self, method: str, path: str, caller: str, body: Any = None, version: str = "") -> int:
        kwargs = {"version": version or microversion.text(microversion.MAX)}
        return self.cloud.call(method, path, body, user=caller, **kwargs).status_code

    def add_server(self, project: str) -> None:
        key = self.cloud.boot(
            user=f"{project}.member", metadata={"key": "value"}, tags=["tag"], version="2.53"
        )
        self.cloud.change(key, network_info=NETWORK, host="h1", node="h1", vm_state="active")
        found = self.cloud.database.read(lambda conn: actions.list_for_instance(conn, key))
        self.servers[project], self.requests[project] = key, found[0].request_id

    def make(self, path: str, caller: str, body: Any, key: str, member: str) -> str:
        """Create one thing by the API, or find it there; return its id or name."""
        answer = self.cloud.call("POST", path, body, user=caller, version="2.53")
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json[key][member])

    def values(self, url: str, project: str) -> dict[str, str]:
        """Return what stands for the names in braces, made when it is not there (any more)."""
        member = f"{project}.member"
        values = {
            "server_id": self.servers[project],
            "request_id": self.requests[project],
            "flavor_id": "private" if "os-flavor-access" in url else FLAVOR,
            "service_id": self.service,
            "hypervisor_id": self.node if "@" not in url else "h1",
            "network": "net",
            "volume_id": "v",
            "key": "hw:foo" if "flavor" in url else "key",
            "tag": "tag",
            "tenant_id": project,
            "project_id": project,
            "quota_class": "default",
            "id": project,
        }
        if "aggregate_id" in url:
            found = self.cloud.call("GET", "/os-aggregates", user="A.admin").json["aggregates"]
            if not found:
                self.make(
                    "/os-aggregates", "A.admin", {"aggregate": {"name": "a"}}, "aggregate", "id"
                )
                return self.values(url, project)
            values["aggregate_id"] = str(found[0]["id"])
        if "volume_id" in url:
            self.cloud.change(self.servers[project], block_devices=VOLUMES)
        if "keypair_name" in url:
            name = values["keypair_name"] = f"key-{project}"
            if self.call("GET", f"/os-keypairs/{name}", member) == 404:
                body = {"keypair": {"name": name, "public_key": PUBLIC_KEY}}
                self.make("/os-keypairs", member, body, "keypair", "name")
        if "server_group_id" in url:
            body = {"server_group": {"name": "g", "policies": ["anti-affinity"]}}
            values["server_group_id"] = self.make(
                "/os-server-groups", member, body, "server_group", "id"
            )
        return values

    def restore(self, url: str, method: str, project: str) -> None:
        """Make again what a permitted DELETE has removed."""
        if method != "DELETE":
            return
        if "server_id" in url:
            self.add_server(project)
        elif "os-extra_specs" in url:
            body = {"extra_specs": {"hw:foo": "bar"}}
            assert self.call("POST", f"/flavors/{FLAVOR}/os-extra_specs", "A.admin", body) == 200
        elif "flavor_id" in url:
            self.cloud.call(
                "POST",
                "/flavors",
                {"flavor": {"name": "m1", "id": FLAVOR, "vcpus": 1, "ram": 512, "disk": 1}},
                user="A.admin",
            )
            body = {"extra_specs": {"hw:foo": "bar"}}
            self.call("POST", f"/flavors/{FLAVOR}/os-extra_specs", "A.admin", body)
        elif "service_id" in url:
            self.service = self.cloud.add_service(f"spare-{uuid.uuid4()}")


@pytest.fixture(scope="module")
def world(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One world for all rows: what a permitted request removes is made again."""

    def authenticate(
        _self: Any, environ: dict[str, Any], request_id: str, _global: str | None
    ) -> context_module.RequestContext:
        return context_of(environ["HTTP_X_AUTH_TOKEN"], request_id)

    folder = tmp_path_factory.mktemp("access")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth.NoAuth, "authenticate", authenticate)
        conf = make_conf(folder)
        conf.set_override("server_groups", -1, group="quota")
        yield World(make_cloud(conf, template, folder))


def served() -> set[tuple[str, str]]:
    """Return (method, URL) of everything that the application serves, actions apart."""
    found = set()
    for url, resource in app.ROUTES.items():
        if url in access_table.DOCUMENTS:
            continue
        for method in METHODS:
            if hasattr(resource, f"on_{method.lower()}"):
                found.add((method, url))
    return found


def test_each_route_has_its_row() -> None:
    expected = set()
    for method, url in served():
        if url.endswith("/action"):
            [table] = [table for word, table in ACTIONS.items() if word in url]
            expected |= {(method, f"{url}#{name}") for name in table}
        else:
            expected.add((method, url))
    described = {(method, url.partition("@")[0]) for method, url in ROWS}
    assert expected - described == set(), "give these rows in access_table.py"
    assert described - expected == set(), "there is no such route any more"


def test_rows_name_rules_that_are_there() -> None:
    names = {rule[0] for rule in rules.RULES}
    assert {rule for rule, _kind in ROWS.values() if rule} <= names
    by_rule = {rule[0]: {operation.split(" ")[0] for operation in rule[3:]} for rule in rules.RULES}
    for (method, _url), (rule, _kind) in ROWS.items():
        assert not rule or method in by_rule[rule]


@pytest.mark.parametrize(("method", "url"), ROWS)
def test_who_may(world: World, method: str, url: str) -> None:
    global cells
    path, _, last = url.partition("@")
    path, _, action = path.partition("#")
    version = f"2.{last}" if last else ""
    body: Any = None
    if method in ("POST", "PUT"):
        body = {action: 5} if action else {}
    wrong = []
    for project, words in zip("AB", WHO[ROWS[method, url][1]], strict=True):
        for caller, expected in zip(CALLERS, words.split(), strict=True):
            full = path.format(**world.values(url, project))
            status = world.call(method, full, caller, body, version)
            refused = status in (401, 403, 404)
            if status >= 500 or (str(status) if refused else "yes") != expected:
                wrong.append(f"{caller} on {project}'s: {status}, not {expected}")
            if body is not None and expected == "yes" and status != 400:
                wrong.append(f"{caller} on {project}'s: {status}, but the body is wrong")
            if not refused:
                world.restore(url, method, project)
            cells += 1
    assert wrong == []


def test_methods_that_are_not_served(world: World) -> None:
    global cells
    there = served()
    for url in app.ROUTES:
        if url in access_table.DOCUMENTS:
            continue
        for method in (*METHODS, "PATCH", "OPTIONS", "TRACE"):
            if (method, url) in there:
                continue
            for caller in CALLERS:
                names = {"keypair_name": "k", "server_group_id": "g", "aggregate_id": "1"}
                path = url.format(**names, **world.values("", "A"))
                assert world.call(method, path, caller) == 404, (method, url, caller)
                cells += 1


def test_cells(request: pytest.FixtureRequest) -> None:
    """Print how many cells the tests above have played."""
    print(f"\n{len(ROWS)} operations, {len(CALLERS)} callers, {cells} cells")
    whole = sum(item.name.startswith("test_who_may") for item in request.session.items)
    if whole == len(ROWS):
        assert cells >= len(ROWS) * len(CALLERS) * 2
