# SPDX-License-Identifier: Apache-2.0
"""ComputeCapabilitiesFilter: the flavor's extra specs against what the host says of itself. Pure.

``capabilities:cpu_info:vendor = Intel`` looks into ``cpu_info``; a name that is nothing of a
host's is looked up in its ``stats``. An extra spec without scope counts only if a host has it.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base, extra_specs_ops
from novalite.scheduler.host_state import HostState

# What a host says of itself, by Nova's names.
CAPABILITIES: dict[str, Callable[[HostState], Any]] = {
    "host": lambda host: host.host,
    "hypervisor_hostname": lambda host: host.node,
    "nodename": lambda host: host.node,
    "host_ip": lambda host: host.picture.host_ip,
    "hypervisor_type": lambda host: host.picture.hypervisor_type,
    "hypervisor_version": lambda host: host.picture.hypervisor_version,
    "cpu_info": lambda host: host.picture.cpu_info,
    "supported_instances": lambda host: host.picture.supported_instances,
    "total_usable_ram_mb": lambda host: host.picture.memory_mb,
    "total_usable_disk_gb": lambda host: host.picture.local_gb,
    "free_ram_mb": lambda host: host.free_ram_mb,
    "free_disk_mb": lambda host: host.free_disk_mb,
    "disk_mb_used": lambda host: host.picture.local_gb * 1024 - host.free_disk_mb,
    "vcpus_total": lambda host: host.picture.vcpus,
    "vcpus_used": lambda host: host.rooms.vcpu.used,
    "ram_allocation_ratio": lambda host: host.picture.ram_allocation_ratio,
    "disk_allocation_ratio": lambda host: host.picture.disk_allocation_ratio,
    "cpu_allocation_ratio": lambda host: host.picture.cpu_allocation_ratio,
    "num_instances": lambda host: host.num_instances,
    "num_io_ops": lambda host: host.io_ops,
    "failed_builds": lambda host: host.failed_builds,
    "stats": lambda host: host.picture.stats,
}


class ComputeCapabilitiesFilter(base.Filter):
    """Passes hosts that have every capability which the flavor asks for."""

    def applies(self, demand: Demand) -> bool:
        """Only a flavor that asks for something."""
        return bool(demand.extra_specs) and bool(_wanted(demand.extra_specs))

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``capability_missing`` with what is asked for and what there is."""
        for name, path, scoped, wanted in _wanted(demand.extra_specs):
            found = _look_up(host, path)
            if found is None and not scoped:
                continue
            if found is None or not extra_specs_ops.match(str(found), wanted):
                return _missing(name, wanted, found)
        return None


@functools.lru_cache(maxsize=1024)
def _wanted(
    extra_specs: tuple[tuple[str, str], ...],
) -> tuple[tuple[str, tuple[str, ...], bool, str], ...]:
    """Return what these extra specs want: name, where to look, whether it is scoped, how much."""
    found: list[tuple[str, tuple[str, ...], bool, str]] = []
    for name, wanted in extra_specs:
        scope, *rest = name.split(":")
        if not rest:
            found.append((name, (scope,), False, wanted))
        elif scope == "capabilities":
            found.append((name, tuple(rest), True, wanted))
    return tuple(found)


def _look_up(host: HostState, path: tuple[str, ...]) -> Any:
    first, *rest = path
    known = CAPABILITIES.get(first)
    found = host.picture.stats.get(first) if known is None else known(host)
    for name in rest:
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


def _missing(name: str, wanted: str, found: Any) -> Reason:
    there = "nothing" if found is None else str(found)
    least, have = extra_specs_ops.at_least(wanted), extra_specs_ops.number(there)
    detail = f"{name} must be {wanted}, is {there}"
    if least is None or have is None:
        return Reason("capability_missing", detail=detail)
    return Reason("capability_missing", need=least, have=have, total=have, detail=detail)
