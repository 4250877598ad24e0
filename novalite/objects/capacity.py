# SPDX-License-Identifier: Apache-2.0
"""The sums of capacity: what a server needs, what a host has left, how a refusal is worded.

Pure arithmetic, called by the scheduler's filters, by the claims of novalite-compute and by every
explanation, so that no two of them can come to different results for the same picture. It must
never read a clock, an option or a table.

    limit  = total * allocation_ratio
    usable = limit - used
    a need fits when usable >= need and total >= need

The second condition keeps a single server from overcommitting against itself. Without a limit
neither is asked. What a hypervisor needs beside the memory of each guest is used too, and the next
server brings it along. Memory is in MB, disk in whole GB, vcpus in threads.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from novalite.objects.compute_node import ComputeNode
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import Limits


class Resource(StrEnum):
    """The three resources; the value is the word used in log lines and errors."""

    MEMORY = "memory"
    DISK = "disk"
    VCPU = "vcpu"


UNITS = {Resource.MEMORY: "MB", Resource.DISK: "GB", Resource.VCPU: "VCPU"}

# The greatest limit. Whole numbers up to here, and some way beyond, are exact as floats.
MOST = 2.0**50

# What a configured ratio of 0.0 ("not set") stands for.
DEFAULT_RATIOS = {Resource.MEMORY: 1.5, Resource.DISK: 1.0, Resource.VCPU: 16.0}

# The options that hold the ratio of a resource and what is kept back of it.
RATIO_OPTIONS = {
    Resource.MEMORY: "ram_allocation_ratio",
    Resource.DISK: "disk_allocation_ratio",
    Resource.VCPU: "cpu_allocation_ratio",
}
RESERVED_OPTIONS = {
    Resource.MEMORY: "reserved_host_memory_mb",
    Resource.DISK: "reserved_host_disk_mb",
    Resource.VCPU: "reserved_host_cpus",
}


class Need(NamedTuple):
    """What one server takes from a host."""

    memory_mb: int
    disk_gb: int
    vcpus: int


def need(flavor: Flavor, volume_backed: bool = False) -> Need:
    """Return what a server of *flavor* takes; a volume-backed one has no local root disk."""
    root_gb = 0 if volume_backed else flavor.root_gb
    disk_gb = root_gb + flavor.ephemeral_gb + whole_gb(flavor.swap_mb)
    return Need(flavor.memory_mb, disk_gb, flavor.vcpus)


def whole_gb(megabytes: int) -> int:
    """Return the whole GB that hold so many MB: 1025 MB are 2 GB."""
    return -(-megabytes // 1024)


def effective_ratio(resource: Resource, configured: float) -> float:
    """Return the allocation ratio in force; 0.0 is "not set" and gives the default."""
    return configured or DEFAULT_RATIOS[resource]


class Room(NamedTuple):
    """One resource of one host under a limit; a ``limit`` of None is unlimited.

    ``beside`` is what each server takes in addition to its need.
    """

    resource: Resource
    total: float
    used: float
    limit: float | None
    beside: float = 0

    @property
    def usable(self) -> float:
        """What is left under the limit; negative when more is used than the limit allows."""
        return math.inf if self.limit is None else self.limit - self.used

    @property
    def largest(self) -> float:
        """The largest single need that fits; the one comparison behind every verdict."""
        return (
            math.inf
            if self.limit is None
            else min(self.limit - self.used - self.beside, self.total)
        )

    def fits(self, wanted: float) -> bool:
        """Tell whether one server that needs *wanted* may be placed."""
        return self.largest >= wanted

    def refusal(self, wanted: float) -> str | None:
        """Return Nova's words for a need that does not fit, None when it fits."""
        if self.fits(wanted):
            return None
        unit = UNITS[self.resource]
        if self.usable - self.beside >= wanted:
            return f"Total {self.resource} {self.total:.0f} {unit} < requested {wanted:.0f} {unit}"
        needed = wanted + self.beside
        return f"Free {self.resource} {self.usable:.2f} {unit} < requested {needed:.0f} {unit}"

    def how_many(self, wanted: int) -> int | None:
        """Return how many servers that need *wanted* fit one after the other; None: any number."""
        if not self.fits(wanted):
            return 0
        if self.limit is None or wanted + self.beside <= 0:
            return None
        found = int(self.usable // (wanted + self.beside))
        # A quotient of floats may be one off; the comparison that places each server decides.
        while self._after(found, wanted).fits(wanted):
            found += 1
        while not self._after(found - 1, wanted).fits(wanted):
            found -= 1
        return found

    def _after(self, servers: int, wanted: int) -> "Room":
        return self._replace(used=self.used + servers * (wanted + self.beside))


class Rooms(NamedTuple):
    """The three resources of one host, in the order in which they are claimed."""

    memory: Room
    disk: Room
    vcpu: Room

    def fits(self, wanted: Need) -> bool:
        """Tell whether a server that needs *wanted* may be placed."""
        return all(room.fits(amount) for room, amount in zip(self, wanted, strict=True))

    def refusals(self, wanted: Need) -> list[str]:
        """Return the words for each resource that does not fit, in the order of claiming."""
        words = (room.refusal(amount) for room, amount in zip(self, wanted, strict=True))
        return [text for text in words if text is not None]


def limit(total: float, ratio: float) -> float:
    """Return how much of *total* may be promised; beyond MOST there is no more.

    Beyond it floats have gaps wider than a server, and the largest ratios make it infinite.
    """
    return min(total * ratio, MOST)


def memory_room(node: ComputeNode, taken_mb: int = 0, servers: int = 0) -> Room:
    """Return the node's own memory room, with *taken_mb* more in use than the picture says.

    :param servers: how many servers have taken that
    """
    allowed = limit(node.memory_mb, node.ram_allocation_ratio)
    beside = node.guest_overhead_mb
    used = node.memory_mb_used + taken_mb + servers * beside
    return Room(Resource.MEMORY, node.memory_mb, used, allowed, beside)


def disk_used_gb(node: ComputeNode) -> int:
    """Return the used disk that counts for fitting.

    It is what the books say or what the file system can no longer give, whichever is more: thin
    disks may still grow into space that the books hold for free.
    """
    if node.disk_available_least is None:
        return node.local_gb_used
    return max(node.local_gb_used, node.local_gb - node.disk_available_least)


def disk_room(node: ComputeNode, taken_gb: int = 0) -> Room:
    """Return the node's own disk room, with *taken_gb* more in use than the picture says."""
    allowed = limit(node.local_gb, node.disk_allocation_ratio)
    return Room(Resource.DISK, node.local_gb, disk_used_gb(node) + taken_gb, allowed)


def vcpu_room(node: ComputeNode, taken: int = 0) -> Room:
    """Return the node's own vcpu room, with *taken* more in use than the picture says.

    A hypervisor that tells no number of threads has no limit, as in Nova.
    """
    allowed = limit(node.vcpus, node.cpu_allocation_ratio) if node.vcpus else None
    return Room(Resource.VCPU, node.vcpus, node.vcpus_used + taken, allowed)


def own_rooms(node: ComputeNode) -> Rooms:
    """Return what the node's own totals and ratios allow."""
    return Rooms(memory_room(node), disk_room(node), vcpu_room(node))


def claim_rooms(node: ComputeNode, limits: Limits | None) -> Rooms:
    """Return what *limits*, which came with a build, allow on the node as it is now.

    No limits, or a limit of None, is unlimited.
    """
    limits = limits or Limits()
    return Rooms(
        memory_room(node)._replace(limit=limits.memory_mb),
        Room(Resource.DISK, node.local_gb, disk_used_gb(node), limits.disk_gb),
        Room(Resource.VCPU, node.vcpus, node.vcpus_used, limits.vcpu),
    )


@dataclass(frozen=True, slots=True)
class Fill:
    """How many servers of one need fit, and what binds.

    ``count`` is None when nothing limits it. ``binds`` are the resources that let no more in, in
    the order of claiming; empty when nothing limits. ``each`` is the count by resource alone.
    """

    count: int | None
    binds: tuple[Resource, ...]
    each: dict[Resource, int | None]


def fill(rooms: Rooms, wanted: Need, limited: Iterable[Resource] = tuple(Resource)) -> Fill:
    """Return how many servers that need *wanted* fit into *rooms*, one after the other."""
    limited = frozenset(limited)
    each: dict[Resource, int | None] = {
        room.resource: room.how_many(amount) if room.resource in limited else None
        for room, amount in zip(rooms, wanted, strict=True)
    }
    counts = [found for found in each.values() if found is not None]
    if not counts:
        return Fill(None, (), each)
    least = min(counts)
    return Fill(least, tuple(name for name, found in each.items() if found == least), each)
