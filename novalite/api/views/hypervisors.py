# SPDX-License-Identifier: Apache-2.0
"""Hypervisors (nodes) as JSON."""

import json
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg

from novalite.api.views import services as services_view
from novalite.db import compute_nodes

Json = dict[str, Any]
Servers = list[dict[str, str]]

_SUMS = (
    "vcpus",
    "memory_mb",
    "local_gb",
    "vcpus_used",
    "memory_mb_used",
    "local_gb_used",
    "free_ram_mb",
    "free_disk_gb",
    "current_workload",
    "running_vms",
)


class HypervisorView:
    """Shows hypervisors to one request."""

    def __init__(self, conf: cfg.ConfigOpts, version: int):
        self._conf = conf
        self._version = version

    def key(self, record: compute_nodes.NodeRecord) -> int | str:
        """Return the id: the uuid from 2.53 on, before it the row's number."""
        return record.node.uuid if self._version >= 53 else record.id

    def summary(self, record: compute_nodes.NodeRecord, servers: Servers | None = None) -> Json:
        """Return a hypervisor as in GET /os-hypervisors, with *servers* unless they are None.

        Until 2.74 an empty list is not shown either.
        """
        shown: Json = {
            "id": self.key(record),
            "hypervisor_hostname": record.node.hypervisor_hostname,
            "state": services_view.state(self._conf, record.service),
            "status": services_view.status(record.service),
        }
        if servers or (servers is not None and self._version >= 75):
            shown["servers"] = servers
        return shown

    def detail(self, record: compute_nodes.NodeRecord, servers: Servers | None = None) -> Json:
        """Return the whole hypervisor."""
        node, service = record.node, record.service
        shown = self.summary(record, servers)
        for name in _SUMS:
            shown[name] = getattr(node, name)
        shown.update(
            hypervisor_type=node.hypervisor_type,
            hypervisor_version=node.hypervisor_version,
            disk_available_least=node.disk_available_least,
            host_ip=node.host_ip,
            cpu_info=node.cpu_info if self._version >= 28 else json.dumps(node.cpu_info),
            service={
                "id": service.uuid if self._version >= 53 else service.id,
                "host": service.host,
                "disabled_reason": service.disabled_reason,
            },
        )
        return shown


def statistics(records: Iterable[compute_nodes.NodeRecord]) -> Json:
    """Return the sums over all hypervisors whose service is enabled, as Nova adds them up."""
    nodes = [record.node for record in records if not record.service.disabled]
    shown: Json = {"count": len(nodes)}
    for name in _SUMS:
        shown[name] = sum(getattr(node, name) for node in nodes)
    shown["disk_available_least"] = sum(
        node.free_disk_gb if node.disk_available_least is None else node.disk_available_least
        for node in nodes
    )
    return shown
