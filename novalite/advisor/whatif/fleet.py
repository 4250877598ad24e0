# SPDX-License-Identifier: Apache-2.0
"""Hosts and requests of a what-if, as the scheduler sees them under one side's settings.

The same :class:`Host` makes a picture for the old and one for the new settings: what its servers
use stays, what is kept back and promised changes. Pure; the pipeline gets nothing else to see.
"""

from dataclasses import dataclass, field
from typing import Any

from novalite.advisor.whatif.settings import HOST_OPTIONS, RATIOS, RESERVED, Side
from novalite.objects import capacity
from novalite.objects.aggregate import Aggregate
from novalite.objects.compute_node import ComputeNode
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import ImageMeta, InstanceGroup, RequestSpec
from novalite.scheduler.host_state import HostState

# What a host can run if nobody said it.
PLATFORMS = [["x86_64", "kvm", "hvm"], ["x86_64", "qemu", "hvm"]]


@dataclass(slots=True)
class Host:
    """One host; ``*_used`` is what its servers use, without what is kept back.

    ``own`` are options that this host is known to have now: they hold on the old side, and on the
    new one where its files do not set them.
    """

    name: str
    node: str
    memory_mb: int
    vcpus: int
    local_gb: int
    memory_mb_used: int = 0
    vcpus_used: int = 0
    local_gb_used: int = 0
    servers: int = 0
    disk_available_least: int | None = None
    aggregates: tuple[Aggregate, ...] = ()
    up: bool = True
    disabled: bool = False
    own: dict[str, float] = field(default_factory=dict)
    platforms: list[list[str]] = field(default_factory=lambda: [*PLATFORMS])

    def state(self, side: Side, *, new: bool) -> HostState:
        """Return the host under one side's settings."""
        option = {name: self._option(name, side, new) for name in HOST_OPTIONS}
        memory, disk, cpus = (int(option[name]) for name in RESERVED)
        picture = ComputeNode(
            host=self.name,
            hypervisor_hostname=self.node,
            memory_mb=self.memory_mb,
            vcpus=self.vcpus,
            local_gb=self.local_gb,
            memory_mb_used=self.memory_mb_used + memory,
            vcpus_used=self.vcpus_used + cpus,
            local_gb_used=self.local_gb_used + capacity.whole_gb(disk),
            disk_available_least=self.disk_available_least,
            running_vms=self.servers,
            reserved_host_memory_mb=memory,
            reserved_host_disk_mb=disk,
            reserved_host_cpus=cpus,
            cpu_allocation_ratio=option["cpu_allocation_ratio"],
            ram_allocation_ratio=option["ram_allocation_ratio"],
            disk_allocation_ratio=option["disk_allocation_ratio"],
            supported_instances=self.platforms,
        )
        state = HostState(picture, zone=side.default_zone)
        state.up, state.disabled = self.up, self.disabled
        state.join(self.aggregates)
        return state

    def _option(self, name: str, side: Side, new: bool) -> float:
        if new and name in side.explicit:
            return side.explicit[name]
        value = self.own.get(name, float(side.values[f"[DEFAULT] {name}"]))
        return capacity.effective_ratio(RATIOS[name], value) if name in RATIOS else value


@dataclass(slots=True)
class Request:
    """One request for ``servers`` equal servers, all of them or none; ``kind`` is its name.

    With a ``policy`` all servers of the kind are members of one server group.
    """

    kind: str
    flavor: Flavor
    servers: int = 1
    availability_zone: str | None = None
    volume_backed: bool = False
    image_properties: dict[str, Any] = field(default_factory=dict)
    hints: dict[str, Any] = field(default_factory=dict)
    project_id: str = "project"
    policy: str | None = None
    max_server_per_host: int = 1

    def specs(self, number: int, members: dict[str, str]) -> list[RequestSpec]:
        """Return what the scheduler is asked for.

        :param number: of the request; the servers' names are made of it
        :param members: servers of the kind that have a host, with that host
        """
        group = self._group(members)
        return [
            RequestSpec(
                instance_uuid=f"{self.kind}-{number}-{server}",
                project_id=self.project_id,
                user_id="user",
                flavor=self.flavor,
                image=ImageMeta(properties=self.image_properties),
                volume_backed=self.volume_backed,
                availability_zone=self.availability_zone,
                scheduler_hints=self.hints,
                instance_group=group,
            )
            for server in range(1, self.servers + 1)
        ]

    def _group(self, members: dict[str, str]) -> InstanceGroup | None:
        if self.policy is None:
            return None
        rules = {"max_server_per_host": self.max_server_per_host}
        return InstanceGroup(self.kind, self.policy, rules, dict(members))
