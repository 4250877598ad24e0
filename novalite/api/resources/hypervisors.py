# SPDX-License-Identifier: Apache-2.0
"""/os-hypervisors: the nodes with their books."""

from collections.abc import Callable
from typing import Any

import falcon
import sqlalchemy as sa

from novalite import exception
from novalite.api import formats, http, links, microversion, paging
from novalite.api.parts import Resource
from novalite.api.views import hypervisors as view
from novalite.db import compute_nodes, instance_queries

Record = compute_nodes.NodeRecord
Servers = dict[tuple[str, str], list[dict[str, str]]]

_PARAMETERS = ("limit", "marker", "with_servers", "hypervisor_hostname_pattern")


def _servers_of(servers: Servers | None, record: Record) -> list[dict[str, str]] | None:
    if servers is None:
        return None
    return servers.get((record.node.host, record.node.hypervisor_hostname), [])


def _wants_servers(values: dict[str, list[str]], version: int) -> bool:
    wanted = paging.last(values, "with_servers")
    return version >= 53 and wanted is not None and paging.boolean("with_servers", wanted)


class _Hypervisors(Resource):
    def _records(self) -> list[Record]:
        return self.database.read(compute_nodes.list_all)

    def _records_and_servers(self) -> tuple[list[Record], Servers]:
        def work(conn: sa.Connection) -> tuple[list[Record], Servers]:
            return compute_nodes.list_all(conn), instance_queries.on_nodes(conn)

        return self.database.read(work)

    def _one(self, req: http.Request, hypervisor_id: str) -> Record:
        """Return the node with this id, a number or from 2.53 on a uuid.

        :raises exception.ComputeHostNotFound: there is none
        """
        shown = view.HypervisorView(self.conf, req.state.version)
        if req.state.version >= 53 and not formats.is_uuid(hypervisor_id):
            raise exception.InvalidInput(f"Invalid uuid {hypervisor_id[:64]}")
        for record in self._records():
            if str(shown.key(record)) == hypervisor_id:
                return record
        raise exception.ComputeHostNotFound(
            f"Hypervisor with ID '{hypervisor_id[:64]}' could not be found."
        )

    def _list(
        self,
        req: http.Request,
        resp: falcon.Response,
        collection: str,
        method: str,
    ) -> None:
        values = paging.values(req)
        version = req.state.version
        records, servers = self._selected(values, version)
        shown = view.HypervisorView(self.conf, version)
        body: dict[str, Any] = {}
        if version >= 33:
            records, more = self._page(records, values, shown.key)
            if more:
                urls = links.Links(self.conf, req)
                key = str(shown.key(records[-1]))
                body["hypervisors_links"] = urls.next_page(req, collection, key)
        show = getattr(shown, method)
        body["hypervisors"] = [show(record, _servers_of(servers, record)) for record in records]
        http.send(resp, body)

    def _selected(
        self, values: dict[str, list[str]], version: int
    ) -> tuple[list[Record], Servers | None]:
        """Return the nodes, and if asked their servers."""
        paging.refuse_unknown(values, version, *_PARAMETERS, since=53)
        if version < 53:
            return self._records(), None
        servers: Servers | None = None
        if _wants_servers(values, version):
            records, servers = self._records_and_servers()
        else:
            records = self._records()
        name = paging.last(values, "hypervisor_hostname_pattern")
        if name is not None:
            if "limit" in values or "marker" in values:
                raise exception.InvalidInput(
                    "Paging over hypervisors with the hypervisor_hostname_pattern query "
                    "parameter is not supported."
                )
            records = _matching(records, name)
        return records, servers

    def _page(
        self,
        records: list[Record],
        values: dict[str, list[str]],
        key: Callable[[Record], int | str],
    ) -> tuple[list[Record], bool]:
        page = paging.page(self.conf, values)
        if page.marker is not None:
            at = [n for n, record in enumerate(records) if str(key(record)) == page.marker]
            if not at:
                raise exception.MarkerNotFound(marker=page.marker)
            records = records[at[0] + 1 :]
        return records[: page.limit], 0 < page.limit < len(records)


def _matching(records: list[Record], name: str) -> list[Record]:
    """Return the nodes whose name contains *name*.

    :raises exception.NotFound: there is none
    """
    found = [record for record in records if name in record.node.hypervisor_hostname]
    if not found:
        raise exception.NotFound(f"No hypervisor matching '{name[:255]}' could be found.")
    return found


class HypervisorsResource(_Hypervisors):
    """/os-hypervisors"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List nodes by name."""
        self.policy.check(req.state.context, "os-hypervisors:list")
        self._list(req, resp, "os-hypervisors", "summary")


class HypervisorsDetailResource(_Hypervisors):
    """/os-hypervisors/detail"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List nodes with their books."""
        self.policy.check(req.state.context, "os-hypervisors:list-detail")
        self._list(req, resp, "os-hypervisors/detail", "detail")


class HypervisorStatisticsResource(_Hypervisors):
    """/os-hypervisors/statistics"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """Show the sums."""
        self.policy.check(req.state.context, "os-hypervisors:statistics")
        http.send(resp, {"hypervisor_statistics": view.statistics(self._records())})


class HypervisorResource(_Hypervisors):
    """/os-hypervisors/{hypervisor_id}"""

    def on_get(self, req: http.Request, resp: falcon.Response, hypervisor_id: str) -> None:
        """Show a node, from 2.53 on with its servers if asked."""
        self.policy.check(req.state.context, "os-hypervisors:show")
        values, version = paging.values(req), req.state.version
        paging.refuse_unknown(values, version, "with_servers", since=53)
        record = self._one(req, hypervisor_id)
        servers = None
        if _wants_servers(values, version):
            servers = _servers_of(self._records_and_servers()[1], record)
        shown = view.HypervisorView(self.conf, req.state.version).detail(record, servers)
        http.send(resp, {"hypervisor": shown})


class HypervisorUptimeResource(_Hypervisors):
    """/os-hypervisors/{hypervisor_id}/uptime"""

    def on_get(self, req: http.Request, resp: falcon.Response, hypervisor_id: str) -> None:
        """Ask the host since when it runs."""
        self.policy.check(req.state.context, "os-hypervisors:uptime")
        record = self._one(req, hypervisor_id)
        if not record.service.is_up(float(self.conf.service_down_time)):
            raise exception.ComputeServiceUnavailable(host=record.node.host)
        uptime = self.parts.computes.get_host_uptime(
            req.state.context,
            host=record.node.host,
            node=record.node.hypervisor_hostname,
            timeout=float(self.conf.rpc_response_timeout),
        )
        shown = view.HypervisorView(self.conf, req.state.version).summary(record)
        http.send(resp, {"hypervisor": {**shown, "uptime": uptime}})


class HypervisorSearchResource(_Hypervisors):
    """/os-hypervisors/{hypervisor_id}/search, until 2.52"""

    @microversion.between(1, 52)
    def on_get(self, req: http.Request, resp: falcon.Response, hypervisor_id: str) -> None:
        """List the nodes whose name contains a text."""
        self.policy.check(req.state.context, "os-hypervisors:search")
        shown = view.HypervisorView(self.conf, req.state.version)
        found = _matching(self._records(), hypervisor_id)
        http.send(resp, {"hypervisors": [shown.summary(record) for record in found]})


class HypervisorServersResource(_Hypervisors):
    """/os-hypervisors/{hypervisor_id}/servers, until 2.52"""

    @microversion.between(1, 52)
    def on_get(self, req: http.Request, resp: falcon.Response, hypervisor_id: str) -> None:
        """List the nodes whose name contains a text, with their servers."""
        self.policy.check(req.state.context, "os-hypervisors:servers")
        shown = view.HypervisorView(self.conf, req.state.version)
        records, servers = self._records_and_servers()
        found = _matching(records, hypervisor_id)
        body = [shown.summary(record, _servers_of(servers, record)) for record in found]
        http.send(resp, {"hypervisors": body})
