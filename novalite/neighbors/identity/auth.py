# SPDX-License-Identifier: Apache-2.0
"""``/v3/auth``: getting, showing and revoking tokens, and what a token may be scoped to.

Called by every client at its log-in, and by keystonemiddleware for each token it has not cached.
"""

from typing import Any

import falcon

from novalite.neighbors import http
from novalite.neighbors.endpoints import Endpoints
from novalite.neighbors.http import Fault
from novalite.neighbors.identity import passwords, tokens
from novalite.neighbors.identity.tokens import Caller, InvalidToken, Tokens
from novalite.neighbors.store import Doc, Store, Tx

DENIED = "The request you have made requires authentication."


class Auth:
    """Turns what a client proves and asks for into a user and a scope."""

    def __init__(self, store: Store, issuer: Tokens):
        self._store = store
        self._issuer = issuer

    def issue(self, request: Doc) -> tuple[str, Caller]:
        """Answer the ``auth`` object of a log-in with a token.

        :raises Fault: 400 for a malformed request, 401 for anything that is not right
        """
        identity = _object(request, "identity")
        methods = identity.get("methods")
        if not isinstance(methods, list) or not methods:
            raise Fault(400, "auth.identity.methods must be a list with at least one method.")
        with self._store.read() as tx:
            user, parent = self._prove(tx, identity, methods)
            target = self._scope(tx, user, request.get("scope"), parent)
        used = list(dict.fromkeys([*methods, *(parent.methods if parent else ())]))
        with self._store.write() as tx:
            return self._issuer.issue(tx, user["id"], target, used, parent)

    def _prove(self, tx: Tx, identity: Doc, methods: list[Any]) -> tuple[Doc, Caller | None]:
        user: Doc | None = None
        parent: Caller | None = None
        for method in methods:
            if method == "password":
                found = self._by_password(tx, _object(_object(identity, "password"), "user"))
            elif method == "token":
                parent = self._by_token(tx, _object(identity, "token"))
                found = tx.get("user", parent.user_id)
            else:
                raise Fault(
                    401, f"The method {method} is not supported; supported: password, token."
                )
            if found is None or (user is not None and user["id"] != found["id"]):
                raise Fault(401, DENIED)
            user = found
        if user is None or not user["enabled"]:
            raise Fault(401, DENIED)
        return user, parent

    def _by_password(self, tx: Tx, wanted: Doc) -> Doc | None:
        user = _named(tx, "user", wanted)
        row = tx.one("SELECT hash FROM passwords WHERE user_id = ?", user["id"]) if user else None
        password = wanted.get("password")
        if not isinstance(password, str):
            return None
        if row is None:
            passwords.pretend(password)
            return None
        return user if passwords.matches(password, row[0]) else None

    def _by_token(self, tx: Tx, wanted: Doc) -> Caller:
        try:
            return self._issuer.look_up(tx, str(wanted.get("id") or ""))
        except InvalidToken as error:
            raise Fault(401, DENIED) from error

    def _scope(self, tx: Tx, user: Doc, scope: Any, parent: Caller | None) -> str:
        if scope is None and parent is None and user.get("default_project_id"):
            target = tokens.target_of("project", user["default_project_id"])
            return target if tokens.roles_on(tx, user["id"], target) else tokens.UNSCOPED
        if scope is None or scope == "unscoped" or (isinstance(scope, dict) and not scope):
            return tokens.UNSCOPED
        target = _scope_target(tx, scope)
        if not tokens.roles_on(tx, user["id"], target):
            raise Fault(401, f"User {user['id']} has no access to the scope that was asked for.")
        return target


def _scope_target(tx: Tx, scope: Any) -> str:
    if not isinstance(scope, dict):
        raise Fault(400, "auth.scope must be an object or 'unscoped'.")
    if "system" in scope:
        return tokens.SYSTEM
    if "unscoped" in scope:
        return tokens.UNSCOPED
    for kind in ("project", "domain"):
        if kind in scope:
            found = _named(tx, kind, _object(scope, kind))
            if found is None or not found["enabled"]:
                raise Fault(401, DENIED)
            return tokens.target_of(kind, found["id"])
    raise Fault(400, "auth.scope must name a project, a domain or the system.")


def _named(tx: Tx, kind: str, wanted: Doc) -> Doc | None:
    """Return the record that is given by id, or by name (within a domain unless it is one)."""
    if wanted.get("id"):
        return tx.get(kind, str(wanted["id"]))
    name = wanted.get("name")
    if not isinstance(name, str):
        raise Fault(400, f"The {kind} must be given by id or by name.")
    if kind == "domain":
        found = tx.find("domain", name=name)
    else:
        domain = _named(tx, "domain", _object(wanted, "domain"))
        found = tx.find(kind, name=name, owner=domain["id"]) if domain else []
    return found[0] if found else None


def _object(parent: Doc, key: str) -> Doc:
    found = parent.get(key)
    if not isinstance(found, dict):
        raise Fault(400, f"The request lacks the object '{key}'.")
    return found


def token_body(tx: Tx, caller: Caller, endpoints: Endpoints, catalog: bool) -> Doc:
    """Return the ``token`` object that stands for *caller*."""
    user = tx.get("user", caller.user_id)
    if user is None:
        raise Fault(404, "The token's user could not be found.")
    body: Doc = {
        "methods": list(caller.methods),
        "user": {
            "id": user["id"],
            "name": user["name"],
            "domain": _short(tx, "domain", user["domain_id"]),
            "password_expires_at": None,
        },
        "audit_ids": list(caller.audit_ids),
        "issued_at": http.isotime(caller.issued, fraction=True),
        "expires_at": http.isotime(caller.expires, fraction=True),
    }
    kind, _, target_id = caller.target.partition(":")
    if kind == "project":
        project = tx.get("project", target_id) or {}
        domain = _short(tx, "domain", project.get("domain_id", ""))
        body["project"] = {"id": target_id, "name": project.get("name"), "domain": domain}
        body["is_domain"] = bool(project.get("is_domain"))
    elif kind == "domain":
        body["domain"] = _short(tx, "domain", target_id)
    elif kind == "system":
        body["system"] = {"all": True}
    if kind:
        roles = tokens.roles_on(tx, caller.user_id, caller.target)
        body["roles"] = [{"id": role["id"], "name": role["name"]} for role in roles]
        if catalog:
            body["catalog"] = endpoints.catalog(target_id if kind == "project" else "")
    return body


def _short(tx: Tx, kind: str, record_id: str) -> Doc:
    found = tx.get(kind, record_id) or {"id": record_id, "name": record_id}
    return {"id": found["id"], "name": found["name"]}


class TokenResource:
    """``/v3/auth/tokens``."""

    anonymous = ("POST",)

    def __init__(self, store: Store, issuer: Tokens, endpoints: Endpoints):
        self._store = store
        self._issuer = issuer
        self._endpoints = endpoints
        self._auth = Auth(store, issuer)

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Issue a token."""
        token, holder = self._auth.issue(http.body_object(req, "auth"))
        resp.set_header("X-Subject-Token", token)
        resp.set_header("Vary", "X-Auth-Token")
        self._show(req, resp, holder, 201)

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Show the token in X-Subject-Token."""
        token, holder = self._subject(req)
        resp.set_header("X-Subject-Token", token)
        self._show(req, resp, holder, 200)

    def on_head(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Say whether the token in X-Subject-Token is valid."""
        self._subject(req)
        resp.status = 200

    def on_delete(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Revoke the token in X-Subject-Token."""
        _token, holder = self._subject(req)
        with self._store.write() as tx:
            tokens.revoke(tx, token_hash=holder.hash)
        resp.status = 204

    def _show(
        self, req: falcon.Request, resp: falcon.Response, holder: Caller, status: int
    ) -> None:
        with self._store.read() as tx:
            body = token_body(tx, holder, self._endpoints, "nocatalog" not in http.query(req))
        http.reply(resp, {"token": body}, status)

    def _subject(self, req: falcon.Request) -> tuple[str, Caller]:
        token = req.get_header("X-Subject-Token") or ""
        asker = http.caller(req)
        with self._store.read() as tx:
            try:
                holder = self._issuer.look_up(tx, token)
            except InvalidToken as error:
                raise Fault(404, "The token in X-Subject-Token could not be found.") from error
        if holder.user_id != asker.user_id and not asker.roles & {"admin", "service"}:
            raise Fault(403, "You are not authorized to see the token of another user.")
        return token, holder


class Scopes:
    """``/v3/auth/projects`` and ``/v3/auth/domains``: what the caller may scope a token to."""

    def __init__(self, store: Store, kind: str):
        self._store = store
        self._kind = kind

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List them."""
        with self._store.read() as tx:
            found = reachable(tx, http.caller(req).user_id, self._kind)
        http.reply(resp, {f"{self._kind}s": found, "links": {"self": req.uri, "next": None}})


def reachable(tx: Tx, user_id: str, kind: str) -> list[Doc]:
    """Return the projects or domains on which the user has a role."""
    rows = tx.run(
        "SELECT DISTINCT target FROM assignments WHERE user_id = ? AND target LIKE ?",
        user_id,
        f"{kind}:%",
    )
    ids = [row[0].partition(":")[2] for row in rows.fetchall()]
    return tx.find(kind, id=ids) if ids else []


class CatalogResource:
    """``/v3/auth/catalog``."""

    def __init__(self, endpoints: Endpoints):
        self._endpoints = endpoints

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Show the catalogue."""
        links = {"self": req.uri, "next": None, "previous": None}
        http.reply(
            resp,
            {"catalog": self._endpoints.catalog(http.caller(req).project_id or ""), "links": links},
        )


class SystemScope:
    """``/v3/auth/system``."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Say whether the caller has a role on the system."""
        with self._store.read() as tx:
            held = tokens.roles_on(tx, http.caller(req).user_id, tokens.SYSTEM)
        http.reply(resp, {"system": [{"all": True}] if held else [], "links": {"self": req.uri}})
