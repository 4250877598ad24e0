# SPDX-License-Identifier: Apache-2.0
"""The application of identity v3: its routes, its version document, its catalogue lists."""

from typing import Any

import falcon

from novalite.neighbors import http
from novalite.neighbors.endpoints import Endpoints
from novalite.neighbors.identity import assignments, auth, entities
from novalite.neighbors.identity.tokens import Tokens
from novalite.neighbors.store import Doc, Store


class Versions:
    """``/`` (300, a list) and ``/v3`` (200, the one)."""

    anonymous = ("GET", "HEAD")

    def __init__(self, base: str, one: bool):
        version: Doc = {
            "id": "v3.14",
            "status": "stable",
            "updated": "2020-04-07T00:00:00Z",
            "links": [{"rel": "self", "href": f"{base}/v3/"}],
            "media-types": [
                {
                    "base": "application/json",
                    "type": "application/vnd.openstack.identity-v3+json",
                }
            ],
        }
        self._body: Doc = {"version": version} if one else {"versions": {"values": [version]}}
        self._status = 200 if one else 300

    def on_get(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Show the document."""
        http.reply(resp, self._body, self._status)

    on_head = on_get


class Fixed:
    """A list, the same for every caller, whose items can be shown one by one."""

    def __init__(self, plural: str, items: list[Doc]):
        self._plural = plural
        self._items = items

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List the items that match the query."""
        params = http.query(req)
        found = [
            item
            for item in self._items
            if all(http.same(item[key], params[key][-1]) for key in params if key in item)
        ]
        http.reply(resp, {self._plural: found, "links": {"self": req.uri, "next": None}})

    def on_get_one(self, _req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Show one item."""
        singular = self._plural.removesuffix("s")
        for item in self._items:
            if item["id"] == record_id:
                http.reply(resp, {singular: item})
                return
        raise http.Fault(404, f"Could not find {singular}: {record_id}.")


def make_app(store: Store, issuer: Tokens, endpoints: Endpoints) -> http.App:
    """Return the WSGI application of identity v3."""
    base = endpoints.identity
    routes: list[tuple[str, object]] = [
        ("/", Versions(base, one=False)),
        ("/v3", Versions(base, one=True)),
        ("/v3/", Versions(base, one=True)),
        ("/v3/auth/tokens", auth.TokenResource(store, issuer, endpoints)),
        ("/v3/auth/projects", auth.Scopes(store, "project")),
        ("/v3/auth/domains", auth.Scopes(store, "domain")),
        ("/v3/auth/system", auth.SystemScope(store)),
        ("/v3/auth/catalog", auth.CatalogResource(endpoints)),
        ("/v3/role_assignments", assignments.RoleAssignments(store)),
        ("/v3/users/{record_id}/projects", assignments.UserProjects(store)),
        ("/v3/users/{record_id}/password", assignments.UserPassword(store)),
        ("/v3/groups", Fixed("groups", [])),
        ("/v3/users/{record_id}/groups", _NoGroups()),
    ]
    for kind in entities.KINDS:
        routes.append((f"/v3/{kind.plural}", entities.Collection(store, kind, base)))
        routes.append((f"/v3/{kind.plural}/{{record_id}}", entities.Item(store, kind, base)))
    app = http.make_app("identity", issuer, routes, http.standard_error)
    _add_grants(app, store)
    _add_catalog(app, endpoints)
    return app


def _add_grants(app: http.App, store: Store) -> None:
    for kind, prefix in (
        ("project", "/v3/projects/{record_id}"),
        ("domain", "/v3/domains/{record_id}"),
        ("system", "/v3/system"),
    ):
        grants = assignments.Grants(store, kind)
        app.add_route(f"{prefix}/users/{{user_id}}/roles", grants)
        app.add_route(f"{prefix}/users/{{user_id}}/roles/{{role_id}}", grants, suffix="role")


def _add_catalog(app: http.App, endpoints: Endpoints) -> None:
    services: list[Doc] = []
    flat: list[Doc] = []
    for service in endpoints.catalog("$(project_id)s"):
        common: Doc = {"enabled": True, "links": {}}
        own = {"id": service["id"], "type": service["type"], "name": service["name"]}
        services.append({**own, "description": "", **common})
        flat.extend(
            {**item, "service_id": service["id"], **common} for item in service["endpoints"]
        )
    region: Doc = {"id": endpoints.region, "description": "", "parent_region_id": None, "links": {}}
    lists: dict[str, list[Doc]] = {"services": services, "endpoints": flat, "regions": [region]}
    for plural, items in lists.items():
        fixed = Fixed(plural, items)
        app.add_route(f"/v3/{plural}", fixed)
        app.add_route(f"/v3/{plural}/{{record_id}}", fixed, suffix="one")


class _NoGroups:
    def on_get(self, _req: falcon.Request, resp: falcon.Response, **_params: Any) -> None:
        """List no groups: the stand-in has none."""
        http.reply(resp, {"groups": [], "links": {}})
