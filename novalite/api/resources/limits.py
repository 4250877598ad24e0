# SPDX-License-Identifier: Apache-2.0
"""/limits: what a project may have and has."""

import falcon
import sqlalchemy as sa

from novalite.api import http, paging, quotas
from novalite.api.parts import Resource
from novalite.api.views import limits as view
from novalite.db import quota_limits
from novalite.db import quotas as db_quotas


class LimitsResource(Resource):
    """/limits"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """Show the limits of the caller's project, or of the one that an administrator names."""
        context, version = req.state.context, req.state.version
        self.policy.check(context, "limits")
        query = paging.values(req)
        # Whatever it says: nothing is ever reserved, so nothing is ever left out.
        paging.refuse_unknown(query, version, "reserved", "tenant_id")
        project = paging.last(query, "tenant_id") or context.project_id or ""
        if project != context.project_id:
            self.policy.check(context, "limits:other_project", project)
        options = quotas.options(self.conf)

        def work(conn: sa.Connection) -> tuple[quota_limits.Limits, dict[str, int]]:
            used = db_quotas.usages(conn, project)
            found = quota_limits.limits(conn, options, project)
            return found, {name: usage.project for name, usage in used.items()}

        found, used = self.database.read(work)
        http.send(resp, {"limits": view.detail(found, used, version)})
