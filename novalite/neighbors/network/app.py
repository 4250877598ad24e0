# SPDX-License-Identifier: Apache-2.0
"""The application of network v2.0: its routes, and the resources that serve every kind alike."""

from urllib import parse

import falcon

from novalite.neighbors import http
from novalite.neighbors.endpoints import Endpoints
from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Caller, Tokens
from novalite.neighbors.network import base, quotas, routers, security_groups
from novalite.neighbors.network.base import Kind
from novalite.neighbors.network.networks import Networks, Subnets
from novalite.neighbors.network.ports import Ports
from novalite.neighbors.store import Doc, Store

# alias: name
EXTENSIONS = {
    "binding": "Port Binding",
    "external-net": "Neutron external network",
    "extraroute": "Neutron Extra Route",
    "net-mtu": "Network MTU",
    "pagination": "Pagination support",
    "port-security": "Port Security",
    "project-id": "project_id field enabled",
    "quota_details": "Quota details management support",
    "quotas": "Quota management support",
    "router": "Neutron L3 Router",
    "security-group": "security-group",
    "sorting": "Sorting support",
    "standard-attr-description": "standard-attr-description",
    "standard-attr-revisions": "Resource revision numbers",
    "standard-attr-tag": "Tag support for resources with standard attribute",
    "standard-attr-timestamp": "Resource timestamps",
}
UPDATED = "2020-01-01T00:00:00-00:00"


def network_error(fault: Fault) -> Doc:
    """Render a fault as network v2.0 does."""
    return {"NeutronError": {"type": fault.kind, "message": fault.message, "detail": ""}}


class Collection:
    """``/v2.0/KINDs``."""

    def __init__(self, store: Store, kind: Kind):
        self._store = store
        self._kind = kind

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List what the caller sees and the query wants."""
        caller, params, kind = http.caller(req), http.query(req), self._kind
        if kind.name == "security_group":
            self._need_default(caller)
        with self._store.read() as tx:
            found = [shown for _doc, shown in base.select(kind, tx, caller, params)]
        keys = params.get("sort_key") or []
        found = http.sort(found, keys, params.get("sort_dir") or [])
        body: Doc = {}
        if "limit" in params:
            size = http.limit(params, max(1, len(found)))
            found, more = http.page(found, params, size)
            body[f"{kind.plural}_links"] = _links(req, params, found, more)
        fields = params.get("fields")
        if fields:
            found = [{key: item[key] for key in fields if key in item} for item in found]
        http.reply(resp, {kind.plural: found, **body})

    def _need_default(self, caller: Caller) -> None:
        if caller.project_id:
            with self._store.read() as tx:
                have = tx.count("security_group", owner=caller.project_id, name="default")
            if not have:
                with self._store.write() as tx:
                    security_groups.default_group(tx, caller.project_id)

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Make one record, or several of which all are made or none."""
        caller, kind, body = http.caller(req), self._kind, http.body(req)
        several = body.get(kind.plural) if isinstance(body, dict) else None
        asked = several if isinstance(several, list) else [http_object(body, kind.name)]
        if not all(isinstance(item, dict) for item in asked) or not asked:
            raise base.bad_request(f"Each of '{kind.plural}' must be an object.")
        with self._store.write() as tx:
            made = []
            for item in asked:
                project = item.get("project_id") or item.get("tenant_id") or caller.project_id
                quotas.check(tx, kind.name, str(project), 1)
                made.append(kind.view(tx, caller, kind.create(tx, caller, item)))
        answer = {kind.plural: made} if isinstance(several, list) else {kind.name: made[0]}
        http.reply(resp, answer, 201)


def http_object(body: object, key: str) -> Doc:
    """Return the object under *key*.

    :raises Fault: 400 naming the key
    """
    found = body.get(key) if isinstance(body, dict) else None
    if not isinstance(found, dict):
        raise base.bad_request(f"Unable to find '{key}' in request body", "HTTPBadRequest")
    return found


def _links(
    req: falcon.Request, params: dict[str, list[str]], found: list[Doc], more: bool
) -> list[Doc]:
    if not more or not found:
        return []
    kept = {**params, "marker": [found[-1]["id"]]}
    text = parse.urlencode(kept, doseq=True)
    return [{"rel": "next", "href": f"{req.prefix}{req.path}?{text}"}]


class Item:
    """``/v2.0/KINDs/{id}``."""

    def __init__(self, store: Store, kind: Kind):
        self._store = store
        self._kind = kind

    def on_get(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Show a record."""
        caller, kind = http.caller(req), self._kind
        fields = http.query(req).get("fields")
        with self._store.read() as tx:
            shown = kind.view(tx, caller, kind.get(tx, caller, record_id))
        if fields:
            shown = {key: shown[key] for key in fields if key in shown}
        http.reply(resp, {kind.name: shown})

    def on_put(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Change a record."""
        caller, kind = http.caller(req), self._kind
        asked = http_object(http.body(req), kind.name)
        with self._store.write() as tx:
            doc = kind.get(tx, caller, record_id)
            _refuse_foreign(kind, caller, doc, "update")
            changes = kind.checked(caller, asked, new=False)
            shown = kind.view(tx, caller, kind.update(tx, caller, doc, changes))
        http.reply(resp, {kind.name: shown})

    def on_delete(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Delete a record."""
        caller, kind = http.caller(req), self._kind
        with self._store.write() as tx:
            doc = kind.get(tx, caller, record_id)
            _refuse_foreign(kind, caller, doc, "delete")
            kind.delete(tx, caller, doc)
        resp.status = 204


def _refuse_foreign(kind: Kind, caller: Caller, doc: Doc, verb: str) -> None:
    """What a caller sees but does not own (a shared network) it may not change."""
    if not base.owned(caller, doc):
        raise base.forbidden(kind, verb)


class Tags:
    """``/v2.0/KINDs/{id}/tags``."""

    def __init__(self, store: Store, kind: Kind):
        self._store = store
        self._kind = kind

    def on_get(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """List the tags."""
        with self._store.read() as tx:
            doc = self._kind.get(tx, http.caller(req), record_id)
        http.reply(resp, {"tags": doc["tags"]})

    def on_put(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Replace all tags."""
        body = http.body(req)
        tags = body.get("tags") if isinstance(body, dict) else None
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise base.bad_request("'tags' must be a list of texts.")
        self._write(req, record_id, list(dict.fromkeys(tags)))
        http.reply(resp, {"tags": tags})

    def on_delete(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Take all tags away."""
        self._write(req, record_id, [])
        resp.status = 204

    def _write(self, req: falcon.Request, record_id: str, tags: list[str]) -> None:
        caller = http.caller(req)
        with self._store.write() as tx:
            doc = self._kind.get(tx, caller, record_id)
            _refuse_foreign(self._kind, caller, doc, "tag")
            doc["tags"] = tags
            self._kind.save(tx, doc)


class RouterInterface:
    """``/v2.0/routers/{id}/add_router_interface`` and ``remove_router_interface``."""

    def __init__(self, store: Store, kind: routers.Routers, add: bool):
        self._store = store
        self._kind = kind
        self._act = kind.add_interface if add else kind.remove_interface

    def on_put(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Connect or disconnect."""
        caller, asked = http.caller(req), http.body(req)
        if not isinstance(asked, dict):
            raise base.bad_request("The body must be an object.")
        with self._store.write() as tx:
            doc = self._kind.get(tx, caller, record_id)
            http.reply(resp, self._act(tx, caller, doc, asked))


class Versions:
    """``/``: the list of versions; ``/v2.0``: the resources of the one."""

    anonymous = ("GET", "HEAD")

    def __init__(self, url: str, plurals: list[str] | None = None):
        links = [{"rel": "self", "href": f"{url}/v2.0/"}]
        self._body: Doc = {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]}
        if plurals is not None:
            self._body = {
                "resources": [
                    {
                        "name": plural.removesuffix("s"),
                        "collection": plural,
                        "links": [{"rel": "self", "href": f"{url}/v2.0/{plural}"}],
                    }
                    for plural in plurals
                ]
            }

    def on_get(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Show the document."""
        http.reply(resp, self._body)

    on_head = on_get


class Extensions:
    """``/v2.0/extensions[/{alias}]``."""

    def on_get(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """List what the stand-in can do beyond the core."""
        http.reply(resp, {"extensions": [_extension(alias) for alias in EXTENSIONS]})

    def on_get_one(self, _req: falcon.Request, resp: falcon.Response, alias: str) -> None:
        """Show one."""
        if alias not in EXTENSIONS:
            raise Fault(404, f"Extension with alias {alias} does not exist", "ExtensionNotFound")
        http.reply(resp, {"extension": _extension(alias)})


def _extension(alias: str) -> Doc:
    name = EXTENSIONS[alias]
    common: Doc = {"description": name, "updated": UPDATED, "links": []}
    return {"alias": alias, "name": name, **common}


def make_app(store: Store, issuer: Tokens, endpoints: Endpoints) -> http.App:
    """Return the WSGI application of network v2.0."""
    networks = Networks()
    subnets = Subnets(networks)
    ports = Ports(networks)
    groups = security_groups.SecurityGroups()
    router = routers.Routers(networks, subnets, ports)
    kinds: list[Kind] = [
        networks,
        subnets,
        ports,
        router,
        routers.FloatingIps(networks, subnets, ports),
        groups,
        security_groups.SecurityGroupRules(groups),
    ]
    plurals = [kind.path for kind in kinds]
    extensions, quota = Extensions(), quotas.Quota(store)
    routes: list[tuple[str, object]] = [
        ("/", Versions(endpoints.network)),
        ("/v2.0", Versions(endpoints.network, plurals)),
        ("/v2.0/", Versions(endpoints.network, plurals)),
        ("/v2.0/extensions", extensions),
        ("/v2.0/quotas", quotas.Quotas(store)),
        ("/v2.0/quotas/{project_id}", quota),
    ]
    for verb in ("add", "remove"):
        path = f"/v2.0/routers/{{record_id}}/{verb}_router_interface"
        routes.append((path, RouterInterface(store, router, add=verb == "add")))
    for kind in kinds:
        routes.append((f"/v2.0/{kind.path}", Collection(store, kind)))
        routes.append((f"/v2.0/{kind.path}/{{record_id}}", Item(store, kind)))
        routes.append((f"/v2.0/{kind.path}/{{record_id}}/tags", Tags(store, kind)))
    app = http.make_app("network", issuer, routes, network_error)
    app.add_route("/v2.0/extensions/{alias}", extensions, suffix="one")
    app.add_route("/v2.0/quotas/{project_id}/default", quota, suffix="default")
    app.add_route("/v2.0/quotas/{project_id}/details", quota, suffix="details")
    return app
