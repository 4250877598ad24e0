# SPDX-License-Identifier: Apache-2.0
"""Who has which role where; called by administrators and by test suites that make accounts."""

import falcon

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.identity import auth, entities, passwords, tokens
from novalite.neighbors.store import Doc, Store, Tx


class Grants:
    """``/v3/{projects|domains}/{id}/users/{user}/roles[/{role}]`` and the same on the system."""

    def __init__(self, store: Store, kind: str):
        self._store = store
        self._kind = kind

    def _target(self, tx: Tx, target_id: str, user_id: str) -> str:
        if self._kind != "system" and tx.get(self._kind, target_id) is None:
            raise Fault(404, f"Could not find {self._kind}: {target_id}.")
        if tx.get("user", user_id) is None:
            raise Fault(404, f"Could not find user: {user_id}.")
        return tokens.target_of(self._kind, target_id)

    def on_get(
        self, req: falcon.Request, resp: falcon.Response, user_id: str, record_id: str = "all"
    ) -> None:
        """List the roles that were given, without the implied ones."""
        entities.require_admin(http.caller(req), "identity:list_grants")
        with self._store.read() as tx:
            target = self._target(tx, record_id, user_id)
            rows = tx.run(
                "SELECT role_id FROM assignments WHERE user_id = ? AND target = ?", user_id, target
            )
            ids = [row[0] for row in rows.fetchall()]
            roles = tx.find("role", id=ids) if ids else []
        http.reply(resp, {"roles": roles, "links": {"self": req.uri, "next": None}})

    def on_put_role(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        user_id: str,
        role_id: str,
        record_id: str = "all",
    ) -> None:
        """Give a role; giving it again is harmless."""
        entities.require_admin(http.caller(req), "identity:create_grant")
        with self._store.write() as tx:
            target = self._target(tx, record_id, user_id)
            if tx.get("role", role_id) is None:
                raise Fault(404, f"Could not find role: {role_id}.")
            tx.run("INSERT OR IGNORE INTO assignments VALUES (?, ?, ?)", user_id, target, role_id)
        resp.status = 204

    def on_head_role(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        user_id: str,
        role_id: str,
        record_id: str = "all",
    ) -> None:
        """Say whether the role was given."""
        entities.require_admin(http.caller(req), "identity:check_grant")
        with self._store.read() as tx:
            target = self._target(tx, record_id, user_id)
            if tx.one(_GRANT, user_id, target, role_id) is None:
                raise Fault(404, f"Could not find role assignment with role: {role_id}.")
        resp.status = 204

    on_get_role = on_head_role

    def on_delete_role(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        user_id: str,
        role_id: str,
        record_id: str = "all",
    ) -> None:
        """Take a role away."""
        entities.require_admin(http.caller(req), "identity:revoke_grant")
        with self._store.write() as tx:
            target = self._target(tx, record_id, user_id)
            done = tx.run(
                "DELETE FROM assignments WHERE user_id = ? AND target = ? AND role_id = ?",
                user_id,
                target,
                role_id,
            )
            if not done.rowcount:
                raise Fault(404, f"Could not find role assignment with role: {role_id}.")
        resp.status = 204


_GRANT = "SELECT 1 FROM assignments WHERE user_id = ? AND target = ? AND role_id = ?"


class RoleAssignments:
    """``/v3/role_assignments``."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List who has which role where."""
        entities.require_admin(http.caller(req), "identity:list_role_assignments")
        params = http.query(req)
        names = http.boolean(params.get("include_names")) or "include_names" in params
        with self._store.read() as tx:
            rows = tx.run("SELECT user_id, target, role_id FROM assignments").fetchall()
            found = [_assignment(tx, row, names) for row in rows if _wanted(params, *row)]
        http.reply(resp, {"role_assignments": found, "links": {"self": req.uri, "next": None}})


def _wanted(params: dict[str, list[str]], user_id: str, target: str, role_id: str) -> bool:
    kind, _, target_id = target.partition(":")
    have = {
        "user.id": user_id,
        "role.id": role_id,
        "scope.project.id": target_id if kind == "project" else "",
        "scope.domain.id": target_id if kind == "domain" else "",
    }
    if "scope.system" in params and kind != "system":
        return False
    if "group.id" in params:
        return False
    return all(value in params[key] for key, value in have.items() if key in params)


def _assignment(tx: Tx, row: tuple[str, str, str], names: bool) -> Doc:
    user_id, target, role_id = row
    kind, _, target_id = target.partition(":")
    scope: Doc = {"all": True} if kind == "system" else _reference(tx, kind, target_id, names)
    return {
        "user": _reference(tx, "user", user_id, names),
        "role": _reference(tx, "role", role_id, names),
        "scope": {kind: scope},
        "links": {},
    }


def _reference(tx: Tx, kind: str, record_id: str, names: bool) -> Doc:
    found = tx.get(kind, record_id) if names else None
    if found is None:
        return {"id": record_id}
    short: Doc = {"id": record_id, "name": found["name"]}
    if found.get("domain_id"):
        domain = tx.get("domain", found["domain_id"]) or {"name": ""}
        short["domain"] = {"id": found["domain_id"], "name": domain["name"]}
    return short


class UserProjects:
    """``/v3/users/{id}/projects``."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """List the projects on which the user has a role."""
        caller = http.caller(req)
        if caller.user_id != record_id:
            entities.require_admin(caller, "identity:list_user_projects")
        with self._store.read() as tx:
            found = auth.reachable(tx, record_id, "project")
        http.reply(resp, {"projects": found, "links": {"self": req.uri, "next": None}})


class UserPassword:
    """``/v3/users/{id}/password``."""

    # The user may hold no token that still works; the present password is the proof.
    anonymous = ("POST",)

    def __init__(self, store: Store):
        self._store = store

    def on_post(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Change a password by its owner, who must know the present one."""
        asked = http.body_object(req, "user")
        with self._store.read() as tx:
            row = tx.one("SELECT hash FROM passwords WHERE user_id = ?", record_id)
        present = asked.get("original_password")
        if row is None or not isinstance(present, str) or not passwords.matches(present, row[0]):
            raise Fault(401, auth.DENIED)
        with self._store.write() as tx:
            entities.set_password(tx, record_id, asked.get("password"))
            tokens.revoke(tx, user_id=record_id)
        resp.status = 204
