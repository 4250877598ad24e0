# SPDX-License-Identifier: Apache-2.0
"""A node's books as its compute service reports them: the picture of a host."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from novalite.objects import base
from novalite.objects.request_spec import Generation

# What a node's record repeats of its picture in columns, for sums in SQL and for the eye.
NUMBERS = (
    "vcpus",
    "memory_mb",
    "local_gb",
    "vcpus_used",
    "memory_mb_used",
    "local_gb_used",
    "disk_available_least",
    "running_vms",
    "current_workload",
)


@base.register
@dataclass(slots=True)
class ComputeNode:
    """One hypervisor with its absolute numbers (memory in MB, disk in GB).

    ``*_used`` include what is reserved; free values may be negative. ``guest_overhead_mb`` is
    what the hypervisor needs beside the memory of each guest. ``generation`` orders pictures of
    the same node. ``instances`` are the servers whose claim has lately come into the
    books: a compute leaves it empty, the database fills it in from the allocations when a
    scheduler reads the pictures, so that it can drop its overlay for them. ``stats`` holds counts
    that filters and weighers may read.
    """

    VERSION: ClassVar[str] = "1.1"

    host: str
    hypervisor_hostname: str
    uuid: str = ""
    vcpus: int = 0
    memory_mb: int = 0
    local_gb: int = 0
    vcpus_used: int = 0
    memory_mb_used: int = 0
    local_gb_used: int = 0
    disk_available_least: int | None = None
    running_vms: int = 0
    current_workload: int = 0
    cpu_allocation_ratio: float = 16.0
    ram_allocation_ratio: float = 1.5
    disk_allocation_ratio: float = 1.0
    reserved_host_cpus: int = 0
    reserved_host_memory_mb: int = 512
    reserved_host_disk_mb: int = 0
    hypervisor_type: str = "QEMU"
    hypervisor_version: int = 0
    host_ip: str = "127.0.0.1"
    cpu_info: dict[str, Any] = field(default_factory=dict)
    supported_instances: list[list[str]] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    instances: list[str] = field(default_factory=list)
    generation: Generation = field(default_factory=Generation)
    guest_overhead_mb: int = 0

    @property
    def free_ram_mb(self) -> int:
        """Memory not promised to anybody; negative under overcommit, never clamped."""
        return self.memory_mb - self.memory_mb_used

    @property
    def free_disk_gb(self) -> int:
        """Disk not promised to anybody; may be negative."""
        return self.local_gb - self.local_gb_used
