# SPDX-License-Identifier: Apache-2.0
"""/os-services: the processes of the control plane; enable, disable, force down, forget."""

from typing import Any

import falcon
import sqlalchemy as sa

from novalite import exception
from novalite.api import formats, http, paging, validation
from novalite.api.parts import Resource
from novalite.api.schemas import services as schemas
from novalite.api.views import services as view
from novalite.db import aggregates, services
from novalite.objects.service import Service


class ServicesResource(Resource):
    """/os-services"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List services, of one host or one binary if asked."""
        self.policy.check(req.state.context, "os-services:list")
        values = paging.values(req)
        paging.refuse_unknown(values, req.state.version, "host", "binary")
        host, binary = paging.last(values, "host"), paging.last(values, "binary")

        def work(conn: sa.Connection) -> tuple[list[Service], dict[str, str]]:
            return services.list_all(conn, binary or None), aggregates.zones(conn)

        found, by_host = self.database.read(work)
        shown = [
            view.detail(self.conf, service, by_host, req.state.version)
            for service in found
            if not host or service.host == host
        ]
        http.send(resp, {"services": shown})


class ServiceResource(Resource):
    """/os-services/{service_id}, and below 2.53 the verbs in its place."""

    def on_put(self, req: http.Request, resp: falcon.Response, service_id: str) -> None:
        """Change a service by its uuid, or below 2.53 by host and binary."""
        self.policy.check(req.state.context, "os-services:update")
        if req.state.version >= 53:
            self._update(req, resp, service_id=service_id)
        else:
            self._verb(req, resp, service_id)

    @validation.body(schemas.UPDATE)
    def _update(self, req: http.Request, resp: falcon.Response, service_id: str) -> None:
        asked = req.state.body
        _check_uuid(service_id)
        values = _changes(asked)

        def work(conn: sa.Connection) -> tuple[Service, dict[str, str]]:
            service = services.get(conn, service_id)
            if service.binary != view.COMPUTE:
                raise exception.InvalidInput(
                    f"Updating a {service.binary} service is not supported. Only nova-compute "
                    "services can be updated."
                )
            services.update(conn, service.id, **values)
            return services.get(conn, service_id), aggregates.zones(conn)

        service, by_host = self.database.transaction(work)
        shown = view.detail(self.conf, service, by_host, req.state.version)
        http.send(resp, {"service": shown})

    def _verb(self, req: http.Request, resp: falcon.Response, verb: str) -> None:
        if verb == "enable":
            self._enable(req, resp)
        elif verb == "disable":
            self._disable(req, resp)
        elif verb == "disable-log-reason":
            self._disable_log_reason(req, resp)
        elif verb == "force-down" and req.state.version >= 11:
            self._force_down(req, resp)
        else:
            raise exception.NotFound("Unknown action")

    @validation.body(schemas.SWITCH)
    def _enable(self, req: http.Request, resp: falcon.Response) -> None:
        self._switch(req, resp, {"disabled": False, "disabled_reason": None}, "status", "enabled")

    @validation.body(schemas.SWITCH)
    def _disable(self, req: http.Request, resp: falcon.Response) -> None:
        self._switch(req, resp, {"disabled": True, "disabled_reason": None}, "status", "disabled")

    @validation.body(schemas.DISABLE_LOG_REASON)
    def _disable_log_reason(self, req: http.Request, resp: falcon.Response) -> None:
        reason = req.state.body["disabled_reason"]
        values = {"disabled": True, "disabled_reason": reason}
        self._switch(req, resp, values, "status", "disabled", {"disabled_reason": reason})

    @validation.body(schemas.FORCE_DOWN)
    def _force_down(self, req: http.Request, resp: falcon.Response) -> None:
        down = paging.boolean("forced_down", str(req.state.body["forced_down"]))
        self._switch(req, resp, {"forced_down": down}, "forced_down", down)

    def _switch(
        self,
        req: http.Request,
        resp: falcon.Response,
        values: dict[str, Any],
        key: str,
        shown: Any,
        more: dict[str, Any] | None = None,
    ) -> None:
        """Change the service named by host and binary, and show what was changed."""
        host, binary = req.state.body["host"], req.state.body["binary"]

        def work(conn: sa.Connection) -> None:
            service = services.find(conn, host, binary)
            if service is None:
                raise exception.ServiceNotFound(f"Could not find binary {binary} on host {host}.")
            services.update(conn, service.id, **values)

        self.database.transaction(work)
        body = {"host": host, "binary": binary, key: shown, **(more or {})}
        http.send(resp, {"service": body})

    def on_delete(self, req: http.Request, resp: falcon.Response, service_id: str) -> None:
        """Forget a service, and with a compute its nodes and its place in aggregates; refused while
        servers are on it."""
        self.policy.check(req.state.context, "os-services:delete")
        key: int | str = service_id
        if req.state.version >= 53:
            _check_uuid(service_id)
        else:
            key = paging.number("service_id", service_id, highest=2**63 - 1)

        def work(conn: sa.Connection) -> None:
            service = services.get(conn, key)
            services.delete(conn, service)
            if service.binary == view.COMPUTE:
                aggregates.forget_host(conn, service.host)

        self.database.transaction(work)
        http.send_nothing(resp, 204)


def _check_uuid(service_id: str) -> None:
    if not formats.is_uuid(service_id):
        raise exception.InvalidInput(f"Invalid uuid {service_id[:64]}")


def _changes(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that an update of a service sets."""
    values: dict[str, Any] = {}
    reason = asked.get("disabled_reason")
    status = asked.get("status")
    if reason is not None and status != "disabled":
        raise exception.InvalidInput(
            "Specifying 'disabled_reason' when status is not 'disabled' is invalid."
        )
    if status is not None:
        values = {"disabled": status == "disabled", "disabled_reason": reason}
    if "forced_down" in asked:
        values["forced_down"] = paging.boolean("forced_down", str(asked["forced_down"]))
    return values
