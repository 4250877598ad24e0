# SPDX-License-Identifier: Apache-2.0
"""/servers: create, list, show, change, delete."""

from typing import Any

import falcon
import sqlalchemy as sa

from novalite.api import filters, http, links, operations, server_request, server_state, validation
from novalite.api.parts import Parts, Resource
from novalite.api.schemas import servers as schemas
from novalite.api.views import servers as view
from novalite.api.views import services as services_view
from novalite.db import instance_queries, server_groups, services
from novalite.objects.instance import InstanceFault

EXTENDED = "os-extended-server-attributes"


def find(
    parts: Parts, req: http.Request, server_id: str, rule: str, *, read_deleted: bool = False
) -> Any:
    """Return the row of a server that the caller may know of and do *rule* to.

    :raises exception.InstanceNotFound: there is none, or it is another project's
    :raises exception.PolicyNotAuthorized: the caller may not
    """
    context = req.state.context
    project = None if context.is_admin else context.project_id or ""
    row: Any = parts.database.read(
        lambda conn: instance_queries.get_row(conn, server_id, project, read_deleted=read_deleted)
    )
    parts.policy.check(context, rule, row.project_id)
    return row


class _Shows(Resource):
    """What list and show have in common."""

    def _shows_hosts(self, req: http.Request) -> bool:
        return req.state.version >= 16 and self.policy.allows(
            req.state.context, "servers:show:host_status"
        )

    def _view(self, req: http.Request, host_states: dict[str, str] | None) -> view.ServerView:
        return view.ServerView(
            self.conf,
            req,
            extended=self.policy.allows(req.state.context, EXTENDED),
            host_states=host_states,
            extra_specs=self.policy.allows(req.state.context, "os-flavor-extra-specs:index"),
        )

    def _host_states(self, conn: sa.Connection) -> dict[str, str]:
        found = services.list_all(conn, services_view.COMPUTE)
        return services_view.host_states(self.conf, found)


class ServersResource(_Shows):
    """/servers"""

    @validation.body(schemas.CREATE)
    def on_post(self, req: http.Request, resp: falcon.Response) -> None:
        """Accept one or several new servers."""
        state = req.state
        self.policy.check(state.context, "servers:create")
        request = server_request.parse(self.conf, state.body, state.version)
        if request.networks:
            self.policy.check(state.context, "servers:create:attach_network")
        if request.disks.devices:
            self.policy.check(state.context, "servers:create:attach_volume")
        if request.trusted_certs is not None:
            self.policy.check(state.context, "servers:create:trusted_certs")
        instances = operations.create_servers(self.parts, state.context, request)
        first = instances[0]
        if request.return_reservation_id:
            http.send(resp, {"reservation_id": first.reservation_id}, 202)
            return
        password = request.admin_password if self.conf.api.enable_instance_password else None
        shown = view.ServerView(self.conf, req).created(first, password)
        resp.location = links.Links(self.conf, req).href("servers", first.uuid)
        http.send(resp, {"server": shown}, 202)

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List servers by id and name."""
        self.policy.check(req.state.context, "servers:index")
        query = filters.read(self.conf, self.policy, req, detail=False)
        if query is None:
            http.send(resp, {"servers": []})
            return
        rows, more = self.database.read(
            lambda conn: instance_queries.page(conn, query, detail=False)
        )
        shown = view.ServerView(self.conf, req)
        body: dict[str, Any] = {"servers": [shown.summary(row) for row in rows]}
        if more and rows:
            urls = links.Links(self.conf, req)
            body["servers_links"] = urls.next_page(req, "servers", rows[-1].uuid)
        http.send(resp, body)


class ServersDetailResource(_Shows):
    """/servers/detail"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List servers with everything about them."""
        self.policy.check(req.state.context, "servers:detail")
        query = filters.read(self.conf, self.policy, req, detail=True)
        if query is None:
            http.send(resp, {"servers": []})
            return
        with_hosts = self._shows_hosts(req)

        def work(conn: sa.Connection) -> Any:
            rows, more = instance_queries.page(conn, query, detail=True)
            failed = [row.uuid for row in rows if row.vm_state == "error"]
            faults = instance_queries.faults(conn, failed) if failed else {}
            return rows, more, faults, self._host_states(conn) if with_hosts else None

        rows, more, faults, host_states = self.database.read(work)
        shown = self._view(req, host_states)
        body: dict[str, Any] = {
            "servers": [shown.detail(row, faults.get(row.uuid)) for row in rows]
        }
        if more and rows:
            urls = links.Links(self.conf, req)
            body["servers_links"] = urls.next_page(req, "servers/detail", rows[-1].uuid)
        http.send(resp, body)


class ServerResource(_Shows):
    """/servers/{server_id}"""

    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Show a server."""
        row, fault, host_states, group = self._load(req, server_id)
        self.policy.check(req.state.context, "servers:show", row.project_id)
        http.send(resp, {"server": self._view(req, host_states).single(row, fault, group)})

    def _load(
        self, req: http.Request, server_id: str
    ) -> tuple[Any, InstanceFault | None, dict[str, str] | None, str | None]:
        context = req.state.context
        project = None if context.is_admin else context.project_id or ""
        with_hosts, with_group = self._shows_hosts(req), req.state.version >= 71

        def work(conn: sa.Connection) -> Any:
            row = instance_queries.get_row(conn, server_id, project)
            fault = None
            if row.vm_state == "error":
                fault = instance_queries.faults(conn, [row.uuid]).get(row.uuid)
            host_states = self._host_states(conn) if with_hosts and row.host else {}
            groups = server_groups.of_instances(conn, [row.uuid]) if with_group else {}
            return row, fault, host_states if with_hosts else None, groups.get(row.uuid)

        found: tuple[Any, InstanceFault | None, dict[str, str] | None, str | None]
        found = self.database.read(work)
        return found

    @validation.body(schemas.UPDATE)
    def on_put(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Change name, description, access addresses, disk config."""
        find(self.parts, req, server_id, "servers:update")
        asked = req.state.body["server"]
        values: dict[str, Any] = {}
        for key, column in (
            ("name", "display_name"),
            ("description", "display_description"),
            ("OS-DCF:diskConfig", "disk_config"),
        ):
            if key in asked:
                values[column] = asked[key]
        for key, column in (("accessIPv4", "access_ip_v4"), ("accessIPv6", "access_ip_v6")):
            if key in asked:
                values[column] = server_request.address(asked[key])
        if values:
            operations.update_server(self.parts, server_id, values)
        row, fault, host_states, group = self._load(req, server_id)
        http.send(resp, {"server": self._view(req, host_states).updated(row, fault, group)})

    def on_delete(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Accept the delete of a server."""
        row = find(self.parts, req, server_id, "servers:delete")
        server_state.check_unlocked(req.state.context, row)
        operations.delete_server(self.parts, req.state.context, server_id)
        http.send_nothing(resp, 204)
