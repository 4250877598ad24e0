# SPDX-License-Identifier: Apache-2.0
"""/os-server-groups: policies for where servers run relative to each other.

Filters and weighers keep to them; db/server_groups.py has the last word.
"""

import uuid

import falcon
import sqlalchemy as sa

from novalite import exception
from novalite.api import http, paging, quotas, validation
from novalite.api.parts import Resource
from novalite.api.schemas import server_groups as schemas
from novalite.api.views import server_groups as view
from novalite.db import quotas as db_quotas
from novalite.db import server_groups
from novalite.objects import server_group


class ServerGroupsResource(Resource):
    """/os-server-groups"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List the project's groups; those of all projects for an administrator who asks."""
        context, version = req.state.context, req.state.version
        self.policy.check(context, "os-server-groups:index")
        query = paging.values(req)
        paging.refuse_unknown(query, version, "all_projects", "limit", "offset")
        project: str | None = context.project_id or ""
        # As in Nova the word alone is a yes, and who may not ask gets what is the project's.
        everything = paging.last(query, "all_projects")
        if everything is not None and everything.strip().lower() not in paging.FALSE:
            if self.policy.allows(context, "os-server-groups:index:all_projects"):
                project = None
        offset, limit = paging.offset(self.conf, query)
        groups = self.database.read(
            lambda conn: server_groups.page(conn, project, offset=offset, limit=limit)
        )
        http.send(resp, {"server_groups": [view.detail(group, version) for group in groups]})

    @validation.body(schemas.CREATE)
    def on_post(self, req: http.Request, resp: falcon.Response) -> None:
        """Make a group."""
        context, version = req.state.context, req.state.version
        self.policy.check(context, "os-server-groups:create")
        if not context.project_id:
            raise exception.Forbidden("A server group needs a project; the token is for none.")
        asked = req.state.body["server_group"]
        policy = asked["policy"] if version >= 64 else asked["policies"][0]
        rules = asked.get("rules", {})
        if rules and policy != server_group.ANTI_AFFINITY:
            raise exception.InvalidInput("Only anti-affinity policy supports rules.")
        group = server_group.ServerGroup(
            uuid=str(uuid.uuid4()),
            project_id=context.project_id,
            user_id=str(context.user_id or ""),
            name=asked["name"],
            policy=policy,
            rules={name: int(value) for name, value in rules.items()},
        )
        limits = quotas.options(self.conf)

        def work(conn: sa.Connection) -> None:
            one_more = {"server_groups": 1}
            db_quotas.enforce(conn, limits, group.project_id, group.user_id, one_more)
            server_groups.create(conn, group)

        self.database.transaction(work)
        http.send(resp, {"server_group": view.detail(group, version)})


class ServerGroupResource(Resource):
    """/os-server-groups/{server_group_id}"""

    def _find(self, req: http.Request, server_group_id: str, rule: str) -> server_group.ServerGroup:
        """Return a group that the caller may know of and do *rule* to.

        :raises exception.InstanceGroupNotFound: there is none, or it is another project's
        """
        context = req.state.context
        project = None if context.is_admin else context.project_id or ""
        group = self.database.read(lambda conn: server_groups.get(conn, server_group_id, project))
        self.policy.check(context, f"os-server-groups:{rule}", group.project_id)
        return group

    def on_get(self, req: http.Request, resp: falcon.Response, server_group_id: str) -> None:
        """Show a group with its members."""
        group = self._find(req, server_group_id, "show")
        http.send(resp, {"server_group": view.detail(group, req.state.version)})

    def on_delete(self, req: http.Request, resp: falcon.Response, server_group_id: str) -> None:
        """Remove a group; its servers stay."""
        group = self._find(req, server_group_id, "delete")
        self.database.transaction(lambda conn: server_groups.delete(conn, group.uuid))
        http.send_nothing(resp, 204)
