# SPDX-License-Identifier: Apache-2.0
"""Tokens: rows in the store, found by the hash of the token so that the file gives none away.

Used by identity to issue and show them and by image and network, in the same process, to learn who
calls. Validating is two short queries and never hashes a password. Deleting or disabling a user or
a project deletes its tokens, so a row that is there and not expired is valid.
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from novalite.neighbors.store import Doc, Store, Tx

# Having the role on the left gives those on the right.
IMPLIED: dict[str, tuple[str, ...]] = {"admin": ("member", "reader"), "member": ("reader",)}

UNSCOPED = ""
SYSTEM = "system:all"


class InvalidToken(Exception):
    """The token is missing, unknown or expired."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who holds a token: the token's row, and the names of the roles it gives.

    ``target`` is what the token is for: ``project:ID``, ``domain:ID``, ``system:all`` or nothing.
    """

    user_id: str
    target: str
    methods: tuple[str, ...]
    audit_ids: tuple[str, ...]
    issued: float
    expires: float
    hash: str = ""
    roles: frozenset[str] = frozenset()

    @property
    def project_id(self) -> str:
        """Id of the project of the token's scope, or nothing."""
        kind, _, found = self.target.partition(":")
        return found if kind == "project" else ""

    @property
    def is_admin(self) -> bool:
        """Whether the roles hold ``admin``."""
        return "admin" in self.roles


def target_of(kind: str, target_id: str) -> str:
    """Return the text that names a scope in the tables."""
    return f"{kind}:{target_id}"


def roles_on(tx: Tx, user_id: str, target: str) -> list[Doc]:
    """Return the role records that a user has on a target, the implied ones included."""
    held = [
        json.loads(row[0])
        for row in tx.run(
            "SELECT r.doc FROM assignments a JOIN records r ON r.kind = 'role' AND r.id = a.role_id"
            " WHERE a.user_id = ? AND a.target = ? ORDER BY r.seq",
            user_id,
            target,
        )
    ]
    names = {role["name"] for role in held}
    missing = sorted({more for name in names for more in IMPLIED.get(name, ())} - names)
    return held + (tx.find("role", name=missing) if missing else [])


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _audit_id() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()


class Tokens:
    """Issues and validates tokens; ``lifetime`` is in seconds."""

    def __init__(self, store: Store, lifetime: float, clock: Callable[[], float] = time.time):
        self._store = store
        self._lifetime = lifetime
        self._clock = clock

    def issue(
        self, tx: Tx, user_id: str, target: str, methods: list[str], parent: Caller | None = None
    ) -> tuple[str, Caller]:
        """Make a token; one that was got with a *parent* token ends when that one ends."""
        now = self._clock()
        token = secrets.token_urlsafe(32)
        audit_ids = [_audit_id()] + ([parent.audit_ids[-1]] if parent else [])
        expires = parent.expires if parent else now + self._lifetime
        made = Caller(
            user_id=user_id,
            target=target,
            methods=tuple(methods),
            audit_ids=tuple(audit_ids),
            issued=now,
            expires=expires,
            hash=_hash(token),
        )
        tx.run("DELETE FROM tokens WHERE expires < ?", now)
        tx.run(
            "INSERT INTO tokens (hash, user_id, target, methods, audit_ids, issued, expires) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            made.hash,
            user_id,
            target,
            json.dumps(methods),
            json.dumps(audit_ids),
            now,
            expires,
        )
        return token, made

    def caller(self, token: str) -> Caller:
        """Return who holds the token, with roles.

        :raises InvalidToken: there is no such token, or it has expired
        """
        with self._store.read() as tx:
            found = self.look_up(tx, token)
            roles = roles_on(tx, found.user_id, found.target) if found.target else []
        return replace(found, roles=frozenset(role["name"] for role in roles))

    def look_up(self, tx: Tx, token: str) -> Caller:
        """Return the token's row, without roles.

        :raises InvalidToken: there is no such token, or it has expired
        """
        row = tx.one(
            "SELECT user_id, target, methods, audit_ids, issued, expires FROM tokens "
            "WHERE hash = ? AND expires > ?",
            _hash(token),
            self._clock(),
        )
        if row is None:
            raise InvalidToken("The request you have made requires authentication.")
        user_id, target, methods, audit_ids, issued, expires = row
        return Caller(
            user_id=user_id,
            target=target,
            methods=tuple(json.loads(methods)),
            audit_ids=tuple(json.loads(audit_ids)),
            issued=issued,
            expires=expires,
            hash=_hash(token),
        )


def revoke(tx: Tx, user_id: str = "", target: str = "", token_hash: str = "") -> None:
    """Delete the tokens of a user, of a target, or one by its hash."""
    if user_id:
        tx.run("DELETE FROM tokens WHERE user_id = ?", user_id)
    if target:
        tx.run("DELETE FROM tokens WHERE target = ?", target)
    if token_hash:
        tx.run("DELETE FROM tokens WHERE hash = ?", token_hash)
