# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/explain: what a server does and why; ours, not Nova's."""

import time

import falcon

from novalite.api import http
from novalite.api.parts import Resource
from novalite.api.resources import servers
from novalite.api.views import explain as view
from novalite.db import explanations
from novalite.objects.facts import Facts


class ExplainResource(Resource):
    """/servers/{server_id}/explain"""

    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Explain a server, a deleted one too while its rows exist."""
        row = servers.find(self.parts, req, server_id, "servers:explain", read_deleted=True)
        context = req.state.context
        admin = self.policy.allows(context, "servers:explain:host_details", row.project_id)
        found = self.database.read(lambda conn: explanations.read(conn, server_id))
        facts = Facts(
            name=row.display_name,
            vm_state=row.vm_state,
            now=time.time(),
            down_time=float(self.conf.service_down_time),
            task_state=row.task_state,
            host=row.host,
            node=row.node,
            deleted=bool(row.deleted),
            histories=found.histories,
            fault=found.fault,
            cleanups=found.cleanups,
            services=found.services,
        )
        http.send(resp, view.show(facts, server_id, admin=admin, more=found.more))
