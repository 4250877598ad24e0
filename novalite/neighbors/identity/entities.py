# SPDX-License-Identifier: Apache-2.0
"""Domains, projects, users and roles: one small class of rules each, two resources for all.

Administrators do everything here; others may look at themselves and at their own project.
"""

import sqlite3
from typing import Any

import falcon

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.identity import passwords, tokens
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.store import Doc, Store, Tx

PAGING = ("limit", "marker", "sort_key", "sort_dir", "fields")


class Kind:
    """Rules of one kind of record; the base is what a domain and the others have in common."""

    name = ""
    longest_name = 64
    # Key: (type, default); a default of None may stay None. ``name`` is always there.
    fields: dict[str, tuple[type, Any]] = {}

    @property
    def plural(self) -> str:
        """The key of a list."""
        return f"{self.name}s"

    def make(self, tx: Tx, caller: Caller, asked: Doc) -> Doc:
        """Return a new record from what was asked for.

        :raises Fault: 400 naming the field, 404 for what it refers to
        """
        name = asked.get("name")
        if not isinstance(name, str) or not name.strip() or len(name) > self.longest_name:
            raise Fault(
                400, f"The {self.name} needs a 'name' of 1 to {self.longest_name} characters."
            )
        doc: Doc = {"id": http.hex_id(), "name": name}
        for key, (_type, default) in self.fields.items():
            doc[key] = default
        doc.update(self.checked(asked))
        return doc

    def checked(self, asked: Doc) -> Doc:
        """Return the known fields of *asked*, each of its type; others are kept as they are."""
        for key, value in asked.items():
            kind, default = self.fields.get(key, (object, None))
            if key == "name":
                kind, default = str, ""
            if not isinstance(value, kind) and not (value is None and default is None):
                raise Fault(400, f"'{key}' must be of type {kind.__name__}.")
        return {key: value for key, value in asked.items() if key not in ("id", "password")}

    def changed(self, tx: Tx, doc: Doc, asked: Doc) -> None:
        """Take note of a change that was written."""

    def erase(self, tx: Tx, doc: Doc) -> None:
        """Delete what hangs on the record.

        :raises Fault: if it may not be deleted
        """

    def mine(self, tx: Tx, caller: Caller, record_id: str) -> bool:
        """Tell whether someone who is no administrator may see the record."""
        return False


class Domains(Kind):
    name = "domain"
    fields = {
        "description": (str, ""),
        "enabled": (bool, True),
        "options": (dict, {}),
        "tags": (list, []),
    }

    def changed(self, tx: Tx, doc: Doc, asked: Doc) -> None:
        if not doc["enabled"]:
            for user in tx.find("user", owner=doc["id"]):
                tokens.revoke(tx, user_id=user["id"])
            for project in tx.find("project", owner=doc["id"]):
                tokens.revoke(tx, target=tokens.target_of("project", project["id"]))

    def erase(self, tx: Tx, doc: Doc) -> None:
        if doc["enabled"]:
            raise Fault(403, "A domain must be disabled before it can be deleted.")
        for kind in (Users(), Projects()):
            for record in tx.find(kind.name, owner=doc["id"]):
                kind.erase(tx, record)
                tx.remove(kind.name, record["id"])
        _forget_target(tx, tokens.target_of("domain", doc["id"]))

    def mine(self, tx: Tx, caller: Caller, record_id: str) -> bool:
        user = tx.get("user", caller.user_id)
        return user is not None and user["domain_id"] == record_id


class Projects(Kind):
    name = "project"
    fields = {
        "description": (str, ""),
        "domain_id": (str, None),
        "enabled": (bool, True),
        "is_domain": (bool, False),
        "parent_id": (str, None),
        "options": (dict, {}),
        "tags": (list, []),
    }

    def make(self, tx: Tx, caller: Caller, asked: Doc) -> Doc:
        doc = super().make(tx, caller, asked)
        if doc["is_domain"]:
            raise Fault(400, "'is_domain': projects that act as a domain are not supported.")
        parent = tx.get("project", doc["parent_id"]) if doc["parent_id"] else None
        if parent is not None:
            doc["domain_id"] = parent["domain_id"]
        doc["domain_id"] = _domain_of(tx, doc["domain_id"])
        doc["parent_id"] = doc["parent_id"] or doc["domain_id"]
        return doc

    def changed(self, tx: Tx, doc: Doc, asked: Doc) -> None:
        if not doc["enabled"]:
            tokens.revoke(tx, target=tokens.target_of("project", doc["id"]))

    def erase(self, tx: Tx, doc: Doc) -> None:
        _forget_target(tx, tokens.target_of("project", doc["id"]))

    def mine(self, tx: Tx, caller: Caller, record_id: str) -> bool:
        return caller.project_id == record_id


class Users(Kind):
    name = "user"
    longest_name = 255
    fields = {
        "description": (str, None),
        "domain_id": (str, None),
        "default_project_id": (str, None),
        "email": (str, None),
        "enabled": (bool, True),
        "options": (dict, {}),
    }

    def make(self, tx: Tx, caller: Caller, asked: Doc) -> Doc:
        doc = super().make(tx, caller, asked)
        doc["domain_id"] = _domain_of(tx, doc["domain_id"])
        doc["password_expires_at"] = None
        if asked.get("password") is not None:
            set_password(tx, doc["id"], asked["password"])
        return doc

    def changed(self, tx: Tx, doc: Doc, asked: Doc) -> None:
        if asked.get("password") is not None:
            set_password(tx, doc["id"], asked["password"])
        if asked.get("password") is not None or not doc["enabled"]:
            tokens.revoke(tx, user_id=doc["id"])

    def erase(self, tx: Tx, doc: Doc) -> None:
        tokens.revoke(tx, user_id=doc["id"])
        tx.run("DELETE FROM passwords WHERE user_id = ?", doc["id"])
        tx.run("DELETE FROM assignments WHERE user_id = ?", doc["id"])

    def mine(self, tx: Tx, caller: Caller, record_id: str) -> bool:
        return caller.user_id == record_id


class Roles(Kind):
    name = "role"
    longest_name = 255
    fields = {"description": (str, None), "domain_id": (str, None), "options": (dict, {})}

    def erase(self, tx: Tx, doc: Doc) -> None:
        tx.run("DELETE FROM assignments WHERE role_id = ?", doc["id"])


KINDS: tuple[Kind, ...] = (Domains(), Projects(), Users(), Roles())


def set_password(tx: Tx, user_id: str, password: Any) -> None:
    """Store the hash of a user's password.

    :raises Fault: 400 if it is no text
    """
    if not isinstance(password, str) or not password:
        raise Fault(400, "'password' must be a text that is not empty.")
    tx.run("INSERT OR REPLACE INTO passwords VALUES (?, ?)", user_id, passwords.hashed(password))


def _domain_of(tx: Tx, domain_id: str | None) -> str:
    found = domain_id or "default"
    if tx.get("domain", found) is None:
        raise http.not_found("domain", found)
    return found


def _forget_target(tx: Tx, target: str) -> None:
    tokens.revoke(tx, target=target)
    tx.run("DELETE FROM assignments WHERE target = ?", target)


def require_admin(caller: Caller, action: str) -> None:
    """Refuse a caller without the role admin.

    :raises Fault: 403
    """
    if not caller.is_admin:
        raise Fault(403, f"You are not authorized to perform the requested action: {action}.")


def shown(kind: Kind, doc: Doc, base: str) -> Doc:
    """Return the record as the API shows it."""
    return {**doc, "links": {"self": f"{base}/v3/{kind.plural}/{doc['id']}"}}


class Collection:
    """``/v3/KINDs``."""

    def __init__(self, store: Store, kind: Kind, base: str):
        self._store = store
        self._kind = kind
        self._base = base

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List the records that match every parameter of the query."""
        kind = self._kind
        require_admin(http.caller(req), f"identity:list_{kind.plural}")
        params = http.query(req)
        columns = {"name": params["name"]} if "name" in params else {}
        with self._store.read() as tx:
            docs = tx.find(kind.name, **columns)
        wanted = {key: values for key, values in params.items() if key not in PAGING}
        docs = [doc for doc in docs if _matches(doc, wanted)]
        size = http.limit(params, 10000)
        docs, _more = http.page(docs, params, size)
        body = [shown(kind, doc, self._base) for doc in docs]
        links = {"self": req.uri, "next": None, "previous": None}
        http.reply(resp, {kind.plural: body, "links": links})

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Make a record."""
        kind, caller = self._kind, http.caller(req)
        require_admin(caller, f"identity:create_{kind.name}")
        asked = http.body_object(req, kind.name)
        try:
            with self._store.write() as tx:
                doc = tx.insert(kind.name, kind.make(tx, caller, asked))
        except sqlite3.IntegrityError as error:
            raise _taken(kind, asked["name"], error) from error
        http.reply(resp, {kind.name: shown(kind, doc, self._base)}, 201)


class Item:
    """``/v3/KINDs/{id}``."""

    def __init__(self, store: Store, kind: Kind, base: str):
        self._store = store
        self._kind = kind
        self._base = base

    def on_get(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Show a record."""
        caller = http.caller(req)
        with self._store.read() as tx:
            if not self._kind.mine(tx, caller, record_id):
                require_admin(caller, f"identity:get_{self._kind.name}")
            doc = self._get(tx, record_id)
        http.reply(resp, {self._kind.name: shown(self._kind, doc, self._base)})

    def on_patch(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Change a record."""
        kind = self._kind
        require_admin(http.caller(req), f"identity:update_{kind.name}")
        asked = http.body_object(req, kind.name)
        changes = kind.checked(asked)
        try:
            with self._store.write() as tx:
                doc = self._get(tx, record_id)
                if changes.get("domain_id", doc.get("domain_id")) != doc.get("domain_id"):
                    raise Fault(400, "'domain_id' cannot be changed.")
                doc.update(changes)
                tx.replace(kind.name, doc)
                kind.changed(tx, doc, asked)
        except sqlite3.IntegrityError as error:
            raise _taken(kind, str(asked.get("name")), error) from error
        http.reply(resp, {kind.name: shown(kind, doc, self._base)})

    def on_delete(self, req: falcon.Request, resp: falcon.Response, record_id: str) -> None:
        """Delete a record with everything that hangs on it."""
        require_admin(http.caller(req), f"identity:delete_{self._kind.name}")
        with self._store.write() as tx:
            doc = self._get(tx, record_id)
            self._kind.erase(tx, doc)
            tx.remove(self._kind.name, record_id)
        resp.status = 204

    def _get(self, tx: Tx, record_id: str) -> Doc:
        doc = tx.get(self._kind.name, record_id)
        if doc is None:
            raise Fault(404, f"Could not find {self._kind.name}: {record_id}.")
        return doc


def _matches(doc: Doc, wanted: dict[str, list[str]]) -> bool:
    return all(
        any(http.same(doc.get(key), value) for value in values)
        for key, values in wanted.items()
        if key in doc
    )


def _taken(kind: Kind, name: str, error: sqlite3.IntegrityError) -> Fault:
    return http.integrity(
        error, f"Conflict occurred attempting to store {kind.name} - the name {name} is in use."
    )
