# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/os-instance-actions: what was done with a server, and how it went."""

from typing import Any

import falcon
import sqlalchemy as sa

from novalite import exception
from novalite.api import http
from novalite.api.parts import Resource
from novalite.api.resources import servers
from novalite.api.views import instance_actions as view
from novalite.db import actions


class _Actions(Resource):
    def _find(self, req: http.Request, server_id: str) -> Any:
        # From 2.21 on the history outlives the server.
        deleted = req.state.version >= 21
        return servers.find(self.parts, req, server_id, read_deleted=deleted)


class InstanceActionsResource(_Actions):
    """/servers/{server_id}/os-instance-actions"""

    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """List the actions, the latest first."""
        row = self._find(req, server_id)
        self.policy.check(req.state.context, "os-instance-actions:list", row.project_id)
        found = self.database.read(lambda conn: actions.list_for_instance(conn, server_id))
        http.send(resp, {"instanceActions": [view.summary(action) for action in found]})


class InstanceActionResource(_Actions):
    """/servers/{server_id}/os-instance-actions/{request_id}"""

    def on_get(
        self, req: http.Request, resp: falcon.Response, server_id: str, request_id: str
    ) -> None:
        """Show one action with its steps, which only administrators see before 2.51."""
        row = self._find(req, server_id)
        context = req.state.context
        self.policy.check(context, "os-instance-actions:show", row.project_id)
        tracebacks = self.policy.allows(context, "os-instance-actions:events", row.project_id)
        with_events = req.state.version >= 51 or tracebacks

        def work(conn: sa.Connection) -> Any:
            action = actions.by_request_id(conn, server_id, request_id)
            if action is None:
                raise exception.ActionNotFound(request_id=request_id, instance_id=server_id)
            return action, actions.events(conn, action.id) if with_events else None

        action, events = self.database.read(work)
        shown = view.summary(action)
        if events is not None:
            shown["events"] = [view.event(event, traceback=tracebacks) for event in events]
        http.send(resp, {"instanceAction": shown})
