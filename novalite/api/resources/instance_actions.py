# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/os-instance-actions: what was done with a server, and how it went."""

from typing import Any

import falcon
import sqlalchemy as sa

from novalite import exception
from novalite.api import http, links, paging, times
from novalite.api.parts import Resource
from novalite.api.resources import servers
from novalite.api.views import instance_actions as view
from novalite.db import actions
from novalite.objects.action import Action

_TIMES = ("changes-since", "changes-before")


class _Actions(Resource):
    def _find(self, req: http.Request, server_id: str, rule: str) -> Any:
        # From 2.21 on the history outlives the server.
        deleted = req.state.version >= 21
        rule = f"os-instance-actions:{rule}"
        return servers.find(self.parts, req, server_id, rule, read_deleted=deleted)


class InstanceActionsResource(_Actions):
    """/servers/{server_id}/os-instance-actions"""

    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """List the actions, the latest first."""
        self._find(req, server_id, "list")
        version = req.state.version
        if version < 58:
            found = self.database.read(lambda conn: actions.list_for_instance(conn, server_id))
            more = False
        else:
            found, more = self._page(req, server_id)
        body: dict[str, Any] = {
            "instanceActions": [view.summary(action, version) for action in found]
        }
        if more and found:
            urls = links.Links(self.conf, req)
            collection = f"servers/{server_id}/os-instance-actions"
            body["links"] = urls.next_page(req, collection, found[-1].request_id)
        http.send(resp, body)

    def _page(self, req: http.Request, server_id: str) -> tuple[list[Action], bool]:
        """Return the part that is asked for (2.58) by times (2.66 both of them)."""
        values, version = paging.values(req), req.state.version
        known = _TIMES if version >= 66 else _TIMES[:1]
        paging.refuse_unknown(values, version, "limit", "marker", *known, since=58)
        page = paging.page(self.conf, values)
        since, before = times.span(*(paging.last(values, name) for name in _TIMES))
        return self.database.read(
            lambda conn: actions.page(
                conn,
                server_id,
                limit=page.limit,
                marker=page.marker,
                since=since,
                before=before,
            )
        )


class InstanceActionResource(_Actions):
    """/servers/{server_id}/os-instance-actions/{request_id}"""

    def on_get(
        self, req: http.Request, resp: falcon.Response, server_id: str, request_id: str
    ) -> None:
        """Show one action with its steps, which only administrators see before 2.51."""
        row = self._find(req, server_id, "show")
        context = req.state.context
        version = req.state.version
        inside = self.policy.allows(context, "os-instance-actions:events", row.project_id)
        with_events = version >= 51 or inside

        def work(conn: sa.Connection) -> Any:
            action = actions.by_request_id(conn, server_id, request_id)
            if action is None:
                raise exception.ActionNotFound(request_id=request_id, instance_id=server_id)
            return action, actions.events(conn, action.id) if with_events else None

        action, events = self.database.read(work)
        shown = view.summary(action, version)
        if events is not None:
            project = action.project_id or row.project_id
            shown["events"] = [
                view.event(event, version, project, inside=inside) for event in events
            ]
        http.send(resp, {"instanceAction": shown})
