# SPDX-License-Identifier: Apache-2.0
"""One host as filters and weighers see it: its last picture, plus what was selected since.

The host manager makes these and tells them of new pictures; the pipeline lets them consume what
it selects. Pure: whether the service is up was found out by the host manager's clock and is a
plain attribute here.
"""

import copy
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from novalite.objects import aggregate, capacity, reason
from novalite.objects.aggregate import Aggregate, Joined
from novalite.objects.capacity import Need, Resource, Room, Rooms
from novalite.objects.compute_node import ComputeNode
from novalite.scheduler import demand
from novalite.scheduler.demand import Platform


class Selected(NamedTuple):
    """A server that was selected for a host and is not in its picture yet."""

    need: Need
    group: str | None = None
    flavorid: str | None = None


class HostState:
    """The state of one node of one compute service.

    ``free_*`` are what weighers look at: not promised to anybody, no ratio applied except for
    vcpus, negative under overcommit. ``largest_*`` are the largest single needs that fit and are
    what the resource filters compare with and ``*_sums`` the numbers they explain with; both come
    from :mod:`novalite.objects.capacity`.
    ``platforms`` are all wishes of images that the host can meet.
    ``io_ops`` are the builds, resizes and snapshots going on, ``failed_builds`` those that failed
    one after the other through the host's own fault, ``flavorids`` the flavors of its servers.
    Selections that are not in the picture yet are counted in all of them.
    ``joined`` is what the host's aggregates say together; they also make its ``zone``.
    """

    __slots__ = (
        "_default_zone",
        "_selected",
        "disabled",
        "disabled_reason",
        "disk_sums",
        "failed_builds",
        "flavorids",
        "forced_down",
        "free_disk_mb",
        "free_ram_mb",
        "free_vcpus",
        "host",
        "io_ops",
        "joined",
        "largest_disk_gb",
        "largest_memory_mb",
        "largest_vcpus",
        "memory_sums",
        "node",
        "num_instances",
        "picture",
        "platforms",
        "rooms",
        "up",
        "vcpu_sums",
        "zone",
    )

    rooms: Rooms
    picture: ComputeNode
    platforms: frozenset[Platform]

    def __init__(self, picture: ComputeNode, *, zone: str = "nova"):
        self.host = picture.host
        self.node = picture.hypervisor_hostname
        self.zone = self._default_zone = zone
        self.joined: Joined = aggregate.NONE
        self.up = False
        self.forced_down = False
        self.disabled = False
        self.disabled_reason: str | None = None
        self._selected: dict[str, Selected] = {}
        self.update(picture)

    def __repr__(self) -> str:
        return f"({self.host}, {self.node}) ram: {self.free_ram_mb}MB disk: {self.free_disk_mb}MB"

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates that the service host is in."""
        return self.joined.aggregates

    @property
    def selected(self) -> Mapping[str, Selected]:
        """The servers (uuid) that were selected and are not in the picture yet."""
        return MappingProxyType(self._selected)

    def room(self, resource: Resource) -> Room:
        """Return what the host has of one resource, under its own limit."""
        return self.rooms[demand.ORDER[resource]]

    def reserved(self, resource: Resource) -> float:
        """Return what is held back of one resource."""
        return reason.reserved(self.picture, resource)

    def join(
        self, aggregates: tuple[Aggregate, ...] | None = None, *, default_zone: str | None = None
    ) -> None:
        """Be in these aggregates, whose zone is the host's; None leaves as it is.

        :param default_zone: the zone of hosts whose aggregates have none
        """
        if aggregates is not None:
            self.joined = aggregate.joined(aggregates)
        if default_zone is not None:
            self._default_zone = default_zone
        zone = self.joined.zone
        self.zone = self._default_zone if zone is None else zone

    def update(self, picture: ComputeNode) -> None:
        """Take over a newer picture; what was selected since stays counted."""
        self.picture = picture
        self.platforms = demand.wishes_met(
            tuple(tuple(supported) for supported in picture.supported_instances)
        )
        self._count()

    def consume(
        self,
        instance_uuid: str,
        need: Need,
        *,
        group: str | None = None,
        flavorid: str | None = None,
    ) -> None:
        """Count a selected server until its claim is in the picture; once however often told.

        :param group: the uuid of its server group
        """
        self._selected[instance_uuid] = Selected(need, group, flavorid)
        self._count()

    def release(self, instance_uuid: str) -> None:
        """Count a selected server no longer; harmless if it is not counted."""
        if self._selected.pop(instance_uuid, None) is not None:
            self._count()

    def copy(self) -> "HostState":
        """Return the same state for trying things out; what it consumes counts only there."""
        made = copy.copy(self)
        made._selected = dict(self._selected)
        return made

    def consume_all(
        self, instance_uuids: Iterable[str], need: Need, *, flavorid: str | None = None
    ) -> None:
        """Count many equal servers at once."""
        made = Selected(need, flavorid=flavorid)
        self._selected.update(dict.fromkeys(instance_uuids, made))
        self._count()

    def _count(self) -> None:
        picture, selected = self.picture, self._selected.values()
        memory_mb = disk_gb = vcpus = 0
        for need, _group, _flavorid in selected:
            memory_mb += need.memory_mb
            disk_gb += need.disk_gb
            vcpus += need.vcpus
        memory = capacity.memory_room(picture, memory_mb, len(selected))
        disk = capacity.disk_room(picture, disk_gb)
        vcpu = capacity.vcpu_room(picture, vcpus)
        self.rooms = Rooms(memory, disk, vcpu)
        self.memory_sums, self.disk_sums, self.vcpu_sums = reason.sums(picture, self.rooms)
        self.largest_memory_mb = memory.largest
        self.largest_disk_gb = disk.largest
        self.largest_vcpus = vcpu.largest
        self.free_ram_mb = memory.total - memory.used
        self.free_disk_mb = (disk.total - disk.used) * 1024
        self.free_vcpus = capacity.limit(picture.vcpus, picture.cpu_allocation_ratio) - vcpu.used
        self.num_instances = picture.running_vms + len(selected)
        stats = picture.stats
        self.io_ops = int(stats.get("io_workload", 0)) + len(selected)
        self.failed_builds = int(stats.get("failed_builds", 0))
        self.flavorids = frozenset(stats.get("flavorids", ())).union(
            flavorid for _need, _group, flavorid in selected if flavorid is not None
        )
