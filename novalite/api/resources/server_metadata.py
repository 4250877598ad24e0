# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/metadata: what users write on their servers."""

from collections.abc import Callable
from typing import Any

import falcon
import sqlalchemy as sa

from novalite import exception
from novalite.api import http, quotas, server_state, validation
from novalite.api.parts import Resource
from novalite.api.resources import servers
from novalite.api.schemas import server_metadata as schemas
from novalite.api.views import servers as view
from novalite.db import instance_changes, quota_limits
from novalite.db import quotas as db_quotas

Metadata = dict[str, str]


class _Metadata(Resource):
    def _find(self, req: http.Request, server_id: str, rule: str) -> Any:
        return servers.find(self.parts, req, server_id, f"server-metadata:{rule}")

    def _write(
        self, req: http.Request, row: Any, change: Callable[[Metadata], Metadata]
    ) -> Metadata:
        """Change the items unless they become more than the quota allows."""
        limits_of = quotas.options(self.conf)

        def work(conn: sa.Connection) -> Metadata:
            found = self._change(conn, req, row, "update metadata", change)
            limits = quota_limits.limits(conn, limits_of, row.project_id, row.user_id)
            db_quotas.check_metadata(limits.effective("metadata_items"), len(found))
            return found

        return self.database.transaction(work)

    def _change(
        self,
        conn: sa.Connection,
        req: http.Request,
        row: Any,
        what: str,
        change: Callable[[Metadata], Metadata],
    ) -> Metadata:
        def check(held: Any) -> None:
            server_state.check_unlocked(req.state.context, held)
            server_state.check_settled(held, what, idle=True)

        return instance_changes.change_metadata(conn, row.uuid, change, check)


class ServerMetadataResource(_Metadata):
    """/servers/{server_id}/metadata"""

    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Show all items."""
        row = self._find(req, server_id, "index")
        http.send(resp, {"metadata": view.metadata(row)})

    @validation.body(schemas.METADATA)
    def on_post(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Add items to those that are there, and replace those of the same keys."""
        row = self._find(req, server_id, "create")
        items = req.state.body["metadata"]
        found = self._write(req, row, lambda former: {**former, **items})
        http.send(resp, {"metadata": found})

    @validation.body(schemas.METADATA)
    def on_put(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Replace all items."""
        row = self._find(req, server_id, "update_all")
        items = req.state.body["metadata"]
        found = self._write(req, row, lambda _former: dict(items))
        http.send(resp, {"metadata": found})


class ServerMetadataItemResource(_Metadata):
    """/servers/{server_id}/metadata/{key}"""

    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str, key: str) -> None:
        """Show one item."""
        found = view.metadata(self._find(req, server_id, "show"))
        if key not in found:
            raise exception.MetadataItemNotFound()
        http.send(resp, {"meta": {key: found[key]}})

    @validation.body(schemas.ITEM)
    def on_put(self, req: http.Request, resp: falcon.Response, server_id: str, key: str) -> None:
        """Set one item."""
        row = self._find(req, server_id, "update")
        item = req.state.body["meta"]
        if key not in item:
            raise exception.InvalidInput("Request body and URI mismatch")
        self._write(req, row, lambda former: {**former, **item})
        http.send(resp, {"meta": item})

    def on_delete(self, req: http.Request, resp: falcon.Response, server_id: str, key: str) -> None:
        """Remove one item."""
        row = self._find(req, server_id, "delete")

        def remove(former: Metadata) -> Metadata:
            if key not in former:
                raise exception.MetadataItemNotFound()
            return {name: value for name, value in former.items() if name != key}

        self.database.transaction(
            lambda conn: self._change(conn, req, row, "delete metadata", remove)
        )
        http.send_nothing(resp, 204)
