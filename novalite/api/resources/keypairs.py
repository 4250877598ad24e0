# SPDX-License-Identifier: Apache-2.0
"""/os-keypairs: the public keys of a user; an administrator may name the user (2.10)."""

from typing import Any

import falcon
import sqlalchemy as sa

from novalite.api import http, key_material, links, paging, quotas, validation
from novalite.api.parts import Resource
from novalite.api.schemas import keypairs as schemas
from novalite.api.views import keypairs as view
from novalite.db import key_pairs
from novalite.db import quotas as db_quotas
from novalite.objects.key_pair import SSH, KeyPair

COLLECTION = "os-keypairs"


class _Keypairs(Resource):
    """What all of them have in common."""

    def _user(self, req: http.Request, rule: str, asked: str | None) -> str:
        """Return whose key pairs are meant, if the caller may do *rule* to them.

        :raises exception.PolicyNotAuthorized: they are another user's
        """
        context = req.state.context
        user = str(context.user_id or "") if asked is None or req.state.version < 10 else asked
        self.policy.check(context, f"os-keypairs:{rule}", user_id=user)
        return user

    def _named_user(self, req: http.Request, rule: str) -> str:
        query = paging.values(req)
        paging.refuse_unknown(query, req.state.version, "user_id")
        return self._user(req, rule, paging.last(query, "user_id"))


class KeypairsResource(_Keypairs):
    """/os-keypairs"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List a user's key pairs by name; in pages from 2.35 on."""
        version = req.state.version
        query = paging.values(req)
        paging.refuse_unknown(query, version, "user_id", "limit", "marker")
        user = self._user(req, "index", paging.last(query, "user_id"))
        part = paging.page(self.conf, query) if version >= 35 else None
        marker, limit = (part.marker, part.limit) if part else (None, None)
        pairs, more = self.database.read(
            lambda conn: key_pairs.page(conn, user, marker=marker, limit=limit)
        )
        body: dict[str, Any] = {"keypairs": [view.listed(pair, version) for pair in pairs]}
        if more:
            urls = links.Links(self.conf, req)
            body["keypairs_links"] = urls.next_page(req, COLLECTION, pairs[-1].name)
        http.send(resp, body)

    @validation.body(schemas.CREATE)
    def on_post(self, req: http.Request, resp: falcon.Response) -> None:
        """Store a public key, or make a key and tell its private half once."""
        # Before the body is looked at: who may not even have keys of their own hears that first.
        self._user(req, "create", None)
        version, asked = req.state.version, req.state.body["keypair"]
        user = self._user(req, "create", asked.get("user_id"))
        kind, public = asked.get("type", SSH), asked.get("public_key")
        private = None
        if public is None:
            made = key_material.make(kind, user)
            public, private, fingerprint = made.public_key, made.private_key, made.fingerprint
        else:
            fingerprint = key_material.fingerprint(kind, public)
        pair = KeyPair(user, asked["name"], kind, public, fingerprint)
        project, limits = str(req.state.context.project_id or ""), quotas.options(self.conf)

        def work(conn: sa.Connection) -> None:
            db_quotas.enforce(conn, limits, project, user, {"key_pairs": 1})
            key_pairs.create(conn, pair)

        self.database.transaction(work)
        http.send(
            resp, {"keypair": view.created(pair, version, private)}, 200 if version < 2 else 201
        )


class KeypairResource(_Keypairs):
    """/os-keypairs/{keypair_name}"""

    def on_get(self, req: http.Request, resp: falcon.Response, keypair_name: str) -> None:
        """Show a key pair."""
        user = self._named_user(req, "show")
        pair = self.database.read(lambda conn: key_pairs.get(conn, user, keypair_name))
        http.send(resp, {"keypair": view.detail(pair, req.state.version)})

    def on_delete(self, req: http.Request, resp: falcon.Response, keypair_name: str) -> None:
        """Remove a key pair; servers made with it keep its name."""
        user = self._named_user(req, "delete")
        self.database.transaction(lambda conn: key_pairs.delete(conn, user, keypair_name))
        http.send_nothing(resp, 202 if req.state.version < 2 else 204)
