# SPDX-License-Identifier: Apache-2.0
"""Clients of novalite-conductor.

Two topics, so that the short calls of computes never wait behind a flow that waits for a
scheduler: ``conductor`` answers, ``conductor_tasks`` drives actions.

1.0 first.
1.1 conductor: register tells the version of the service.
1.2 conductor: get_kept, for the audit of a compute.
"""

from typing import Any

import oslo_messaging as messaging

from novalite import context as context_module
from novalite import rpc
from novalite.objects import build, service


class ConductorAPI:
    """Registration and reports; everything here is a call."""

    TARGET = messaging.Target(topic="conductor", version="1.2")

    def __init__(self, bus: rpc.Bus):
        self._client = bus.client(self.TARGET, "conductor")

    def ping(self, context: context_module.RequestContext, *, timeout: float) -> str:
        """Return ``pong``: bus and conductor are there.

        :raises exception.BusUnavailable: no answer in *timeout* seconds
        """
        return str(rpc.call(self._client.prepare(version="1.0"), context, "ping", timeout))

    def register(
        self,
        context: context_module.RequestContext,
        *,
        host: str,
        binary: str,
        identity: str,
        nodes: list[str],
        timeout: float,
        version: int = service.VERSION,
    ) -> build.Registration:
        """Announce a start of a service and learn its epoch and what it has to keep.

        :param version: of the service; a conductor of RPC version 1.0 is not told
        :raises exception.BusUnavailable: no answer in *timeout* seconds
        """
        args: dict[str, Any] = {
            "host": host,
            "binary": binary,
            "identity": identity,
            "nodes": nodes,
        }
        client = self._client
        if rpc.can_send(client, "1.1"):
            args["version"] = version
            client = client.prepare(version="1.1")
        else:
            client = client.prepare(version="1.0")
        answer: build.Registration = rpc.call(client, context, "register", timeout, **args)
        return answer

    def report_state(
        self, context: context_module.RequestContext, *, report: build.Report, timeout: float
    ) -> build.ReportAnswer:
        """Deliver a heartbeat with all items that gathered.

        :raises exception.BusUnavailable: no answer in *timeout* seconds; whether the items were
            taken is unknown, so they are sent again
        """
        client = self._client.prepare(version="1.0")
        answer: build.ReportAnswer = rpc.call(
            client, context, "report_state", timeout, report=report
        )
        return answer

    def get_kept(
        self, context: context_module.RequestContext, *, host: str, timeout: float
    ) -> build.Registration:
        """Return which servers a compute host has to keep, as at its registration; no new start.

        :raises exception.BusUnavailable: no answer in *timeout* seconds
        :raises exception.VersionUnsupported: the conductor is older than that
        """
        client = self._client.prepare(version="1.2")
        answer: build.Registration = rpc.call(client, context, "get_kept", timeout, host=host)
        return answer


class ConductorTaskAPI:
    """Wake-ups for actions whose rows exist already; everything here is a cast."""

    TARGET = messaging.Target(topic="conductor_tasks", version="1.0")

    def __init__(self, bus: rpc.Bus):
        self._client = bus.client(self.TARGET, "conductor")

    def run_reservations(
        self, context: context_module.RequestContext, *, reservation_ids: list[str]
    ) -> None:
        """Cast: drive the open builds of these reservations."""
        args: dict[str, Any] = {"reservation_ids": reservation_ids}
        self._client.cast(context, "run_reservations", **args)
