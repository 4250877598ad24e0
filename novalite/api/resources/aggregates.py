# SPDX-License-Identifier: Apache-2.0
"""/os-aggregates: hosts that have something in common, a zone perhaps."""

from collections.abc import Callable
from typing import Any

import falcon
import sqlalchemy as sa

from novalite import exception
from novalite.api import http, microversion, paging, validation
from novalite.api.parts import Resource
from novalite.api.schemas import aggregates as schemas
from novalite.api.views import aggregates as view
from novalite.db import aggregates
from novalite.db.aggregates import AggregateRecord

_HIGHEST = 2**63 - 1


def _id(text: str) -> int:
    """Read an id; clients try the name of an aggregate in its place first.

    :raises exception.AggregateNotFound: it cannot be one
    """
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _HIGHEST:
        return int(text)
    raise exception.AggregateNotFound(aggregate_id=text[:64])


class AggregatesResource(Resource):
    """/os-aggregates"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List all aggregates."""
        version = req.state.version
        self.policy.check(req.state.context, "os-aggregates:index")
        paging.refuse_unknown(paging.values(req), version)
        found = self.database.read(aggregates.list_all)
        http.send(resp, {"aggregates": [view.detail(record, version) for record in found]})

    @validation.body(schemas.CREATE)
    def on_post(self, req: http.Request, resp: falcon.Response) -> None:
        """Make an aggregate."""
        self.policy.check(req.state.context, "os-aggregates:create")
        asked = req.state.body["aggregate"]
        name, zone = asked["name"], asked.get("availability_zone")
        made = self.database.transaction(lambda conn: aggregates.create(conn, name, zone))
        http.send(resp, {"aggregate": view.created(made, req.state.version)})


class AggregateResource(Resource):
    """/os-aggregates/{aggregate_id}"""

    def on_get(self, req: http.Request, resp: falcon.Response, aggregate_id: str) -> None:
        """Show an aggregate."""
        self.policy.check(req.state.context, "os-aggregates:show")
        paging.refuse_unknown(paging.values(req), req.state.version)
        key = _id(aggregate_id)
        found = self.database.read(lambda conn: aggregates.get(conn, key))
        http.send(resp, {"aggregate": view.detail(found, req.state.version)})

    @validation.body(schemas.UPDATE)
    def on_put(self, req: http.Request, resp: falcon.Response, aggregate_id: str) -> None:
        """Change name and zone."""
        self.policy.check(req.state.context, "os-aggregates:update")
        asked = req.state.body["aggregate"]
        key, default = _id(aggregate_id), str(self.conf.default_availability_zone)

        def work(conn: sa.Connection) -> AggregateRecord:
            if "name" in asked:
                aggregates.rename(conn, key, asked["name"])
            if "availability_zone" in asked:
                zone = {aggregates.ZONE: asked["availability_zone"]}
                return aggregates.set_metadata(conn, key, zone, default)
            return aggregates.get(conn, key)

        changed = self.database.transaction(work)
        http.send(resp, {"aggregate": view.detail(changed, req.state.version)})

    def on_delete(self, req: http.Request, resp: falcon.Response, aggregate_id: str) -> None:
        """Remove an aggregate without hosts."""
        self.policy.check(req.state.context, "os-aggregates:delete")
        key = _id(aggregate_id)
        self.database.transaction(lambda conn: aggregates.delete(conn, key))
        http.send_nothing(resp, 200)


Change = Callable[[sa.Connection, int, Any, str], AggregateRecord]
# Key of the body -> (schema, policy rule, member of the body that it is about, what it does).
ACTIONS: dict[str, tuple[microversion.Ranges, str, str, Change]] = {
    "add_host": (schemas.ADD_HOST, "os-aggregates:add_host", "host", aggregates.add_host),
    "remove_host": (
        schemas.REMOVE_HOST,
        "os-aggregates:remove_host",
        "host",
        aggregates.remove_host,
    ),
    "set_metadata": (
        schemas.SET_METADATA,
        "os-aggregates:set_metadata",
        "metadata",
        aggregates.set_metadata,
    ),
}


class AggregateActionResource(Resource):
    """/os-aggregates/{aggregate_id}/action"""

    @validation.body(schemas.ACTION)
    def on_post(self, req: http.Request, resp: falcon.Response, aggregate_id: str) -> None:
        """Add or remove a host, or set metadata."""
        name = next(iter(req.state.body))
        if name not in ACTIONS:
            raise exception.InvalidInput(f"There is no such action: {name[:64]}")
        ranges, rule, member, change = ACTIONS[name]
        self.policy.check(req.state.context, rule)
        ranges.at(req.state.version).check(req.state.body)
        key, value = _id(aggregate_id), req.state.body[name][member]
        default = str(self.conf.default_availability_zone)
        changed = self.database.transaction(lambda conn: change(conn, key, value, default))
        http.send(resp, {"aggregate": view.detail(changed, req.state.version)})
