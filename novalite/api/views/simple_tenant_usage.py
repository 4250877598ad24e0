# SPDX-License-Identifier: Apache-2.0
"""The usage of projects as JSON, summed up server by server."""

from collections.abc import Iterable
from typing import Any

from novalite.api import times
from novalite.objects.usage import ServerUsage


class Report:
    """The usage of projects in a span of time; the servers of any number of pages go in.

    :param start: seconds since the epoch
    :param stop: seconds since the epoch
    :param now: until when a running server has been up
    :param detailed: show each server too
    """

    def __init__(self, start: float, stop: float, now: float, *, detailed: bool):
        self._start, self._stop, self._now = start, stop, now
        self._detailed = detailed
        self._projects: dict[str, dict[str, Any]] = {}

    def add(self, servers: Iterable[ServerUsage]) -> None:
        """Count these servers in."""
        for server in servers:
            sums = self._projects.get(server.project_id)
            if sums is None:
                sums = self._projects[server.project_id] = self._empty(server.project_id)
            hours = server.hours(self._start, self._stop)
            sums["total_hours"] += hours
            sums["total_local_gb_usage"] += server.local_gb * hours
            sums["total_memory_mb_usage"] += server.flavor.memory_mb * hours
            sums["total_vcpus_usage"] += server.flavor.vcpus * hours
            if self._detailed:
                sums["server_usages"].append(self._server(server, hours))

    def projects(self) -> list[dict[str, Any]]:
        """Return the usage of each project that had a server."""
        return list(self._projects.values())

    def _empty(self, project_id: str) -> dict[str, Any]:
        sums: dict[str, Any] = {
            "tenant_id": project_id,
            "start": times.micro(self._start),
            "stop": times.micro(self._stop),
            "total_hours": 0.0,
            "total_local_gb_usage": 0.0,
            "total_memory_mb_usage": 0.0,
            "total_vcpus_usage": 0.0,
        }
        if self._detailed:
            sums["server_usages"] = []
        return sums

    def _server(self, server: ServerUsage, hours: float) -> dict[str, Any]:
        return {
            "instance_id": server.uuid,
            "tenant_id": server.project_id,
            "name": server.name,
            "flavor": server.flavor.name,
            "memory_mb": server.flavor.memory_mb,
            "local_gb": server.local_gb,
            "vcpus": server.flavor.vcpus,
            "hours": hours,
            "started_at": times.micro(server.launched_at),
            "ended_at": times.micro(server.terminated_at),
            "state": server.vm_state if server.terminated_at is None else "terminated",
            "uptime": server.uptime(self._now),
        }
