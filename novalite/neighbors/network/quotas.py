# SPDX-License-Identifier: Apache-2.0
"""Quotas of network v2.0: unlimited until an administrator sets one for a project."""

import falcon

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.network import base
from novalite.neighbors.store import Doc, Store, Tx

UNLIMITED = -1
RESOURCES = (
    *("network", "subnet", "port", "router", "floatingip"),
    *("security_group", "security_group_rule"),
)
# Known to clients; the stand-in has none of these.
OTHERS = ("rbac_policy", "subnetpool", "trunk")


def check(tx: Tx, resource: str, project_id: str, new: int) -> None:
    """Refuse *new* more records when the project's quota does not have the room.

    :raises Fault: 409 OverQuota
    """
    limits = tx.get("quota", project_id)
    limit = UNLIMITED if limits is None else int(limits["limits"].get(resource, UNLIMITED))
    if limit >= 0 and tx.count(resource, owner=project_id) + new > limit:
        raise base.conflict(f"Quota exceeded for resources: ['{resource}'].", "OverQuota")


def _limits(tx: Tx, project_id: str) -> Doc:
    found = tx.get("quota", project_id)
    own = {} if found is None else found["limits"]
    return {resource: own.get(resource, UNLIMITED) for resource in (*RESOURCES, *OTHERS)}


def _may_see(caller: Caller, project_id: str) -> None:
    if not caller.is_admin and caller.project_id != project_id:
        raise Fault(403, "Only administrators see the quota of other projects.", "NotAuthorized")


class Quota:
    """``/v2.0/quotas/{project}`` with ``/default`` and ``/details``."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """Show the limits of a project."""
        _may_see(http.caller(req), project_id)
        with self._store.read() as tx:
            http.reply(resp, {"quota": _limits(tx, project_id)})

    def on_get_default(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """Show the limits of a project for which none were set."""
        _may_see(http.caller(req), project_id)
        http.reply(resp, {"quota": dict.fromkeys((*RESOURCES, *OTHERS), UNLIMITED)})

    def on_get_details(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """Show the limits and what is used of them."""
        _may_see(http.caller(req), project_id)
        body: Doc = {}
        with self._store.read() as tx:
            for resource, limit in _limits(tx, project_id).items():
                used = tx.count(resource, owner=project_id) if resource in RESOURCES else 0
                body[resource] = {"limit": limit, "used": used, "reserved": 0}
        http.reply(resp, {"quota": body})

    def on_put(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """Set limits; -1 is unlimited."""
        _require_admin(http.caller(req))
        asked = http.body_object(req, "quota")
        for key, value in asked.items():
            if key not in (*RESOURCES, *OTHERS):
                raise base.bad_request(f"Unrecognized attribute(s) '{key}'", "HTTPBadRequest")
            if isinstance(value, bool) or not isinstance(value, int) or value < UNLIMITED:
                raise base.invalid_input(f"'{value}' is not an integer of at least -1 for {key}")
        with self._store.write() as tx:
            found = tx.get("quota", project_id)
            if found is None:
                found = {"id": project_id, "project_id": project_id, "limits": {}}
                tx.insert("quota", found)
            found["limits"].update(asked)
            tx.replace("quota", found)
            http.reply(resp, {"quota": _limits(tx, project_id)})

    def on_delete(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """Go back to the defaults."""
        _require_admin(http.caller(req))
        with self._store.write() as tx:
            tx.remove("quota", project_id)
        resp.status = 204


class Quotas:
    """``/v2.0/quotas``."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List the projects for which limits were set."""
        _require_admin(http.caller(req))
        with self._store.read() as tx:
            found = [
                {**_limits(tx, quota["id"]), "project_id": quota["id"], "tenant_id": quota["id"]}
                for quota in tx.find("quota")
            ]
        http.reply(resp, {"quotas": found})


def _require_admin(caller: Caller) -> None:
    if not caller.is_admin:
        raise Fault(403, "Only administrators may do this.", "NotAuthorized")
