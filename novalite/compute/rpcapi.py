# SPDX-License-Identifier: Apache-2.0
"""Client of novalite-compute: one queue per service host.

1.0 first.
1.1 audit_books, for the audit of everything.
"""

from typing import Any

import oslo_messaging as messaging

from novalite import context as context_module
from novalite import rpc
from novalite.objects import audit, build


class ComputeAPI:
    """What conductor and API ask of a compute host."""

    TARGET = messaging.Target(topic="compute", version="1.1")

    def __init__(self, bus: rpc.Bus):
        self._client = bus.client(self.TARGET, "compute")

    def _first(self, host: str) -> Any:
        """Return the client for what every compute understands."""
        return self._client.prepare(server=host, version="1.0")

    def ping(self, context: context_module.RequestContext, *, host: str, timeout: float) -> str:
        """Return ``pong``: the host takes messages.

        :raises exception.BusUnavailable: no answer in *timeout* seconds
        """
        return str(rpc.call(self._first(host), context, "ping", timeout))

    def build_and_run_instances(
        self,
        context: context_module.RequestContext,
        *,
        host: str,
        builds: list[build.BuildRequest],
    ) -> None:
        """Cast: build these servers; each build carries its own user's context."""
        self._first(host).cast(context, "build_and_run_instances", builds=builds)

    def destroy_instances(
        self,
        context: context_module.RequestContext,
        *,
        host: str,
        requests: list[build.DestroyRequest],
    ) -> None:
        """Cast: remove what there is of these servers and report them gone."""
        self._first(host).cast(context, "destroy_instances", requests=requests)

    def get_console_output(
        self,
        context: context_module.RequestContext,
        *,
        host: str,
        instance_uuid: str,
        tail_length: int | None,
        timeout: float,
    ) -> str:
        """Return the guest's console text, its last *tail_length* lines or all.

        :raises exception.BusUnavailable: the host did not answer in *timeout* seconds
        """
        client = self._first(host)
        return str(
            rpc.call(
                client,
                context,
                "get_console_output",
                timeout,
                instance_uuid=instance_uuid,
                tail_length=tail_length,
            )
        )

    def get_host_uptime(
        self, context: context_module.RequestContext, *, host: str, node: str, timeout: float
    ) -> str:
        """Return how long the machine behind a node runs, as ``uptime`` prints it.

        :raises exception.BusUnavailable: the host did not answer in *timeout* seconds
        """
        client = self._first(host)
        return str(rpc.call(client, context, "get_host_uptime", timeout, node=node))

    def audit_books(
        self, context: context_module.RequestContext, *, host: str, repair: bool, timeout: float
    ) -> audit.HostBooks:
        """Return what the host says of its nodes, claims and guests.

        :param repair: put the claims right before, and send every picture anew
        :raises exception.BusUnavailable: the host did not answer in *timeout* seconds
        :raises exception.VersionUnsupported: the host is older than that
        """
        client = self._client.prepare(server=host, version="1.1")
        answer: audit.HostBooks = rpc.call(client, context, "audit_books", timeout, repair=repair)
        return answer
