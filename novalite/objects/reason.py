# SPDX-License-Identifier: Apache-2.0
"""Why a host is taken or not: a code, the numbers behind it, and how that reads in words.

Filters answer with a :class:`Reason`, decisions keep the ones that matter. Pure data.
"""

from typing import NamedTuple

from novalite.objects import capacity
from novalite.objects.capacity import Need, Resource, Room, Rooms
from novalite.objects.compute_node import ComputeNode

# What each code of our own filters says; the codes are part of the API.
WORDS = {
    "host_disabled": "the host is disabled",
    "host_down": "the host has not been heard from in a while",
    "already_tried": "this server has failed on the host before",
    "wrong_zone": "the host is in another availability zone",
    "not_enough_memory": "not enough memory",
    "not_enough_disk": "not enough disk",
    "not_enough_vcpu": "not enough vcpus",
    "larger_than_host_memory": "the server wants more memory than the whole host has",
    "larger_than_host_disk": "the server wants more disk than the whole host has",
    "larger_than_host_vcpu": "the server wants more vcpus than the whole host has",
    "not_exact_memory": "the free memory is not exactly what the server needs",
    "not_exact_disk": "the free disk is not exactly what the server needs",
    "not_exact_vcpu": "the free vcpus are not exactly what the server needs",
    "too_many_instances": "the host has as many servers as it may have",
    "too_many_io_ops": "as many builds, resizes and snapshots as may be are going on",
    "image_not_supported": "the host cannot run such an image",
    "capability_missing": "the host lacks a capability that the flavor asks for",
    "aggregate_lacks_extra_spec": "the host's aggregates lack what the flavor asks for",
    "aggregate_wants_flavor": "the host is kept for other flavors",
    "aggregate_wants_image": "the host is kept for other images",
    "aggregate_wants_project": "the host is kept for other projects",
    "other_flavor_on_host": "servers of another flavor are on the host",
    "host_isolated": "the host is kept for isolated images",
    "image_isolated": "the image may run on isolated hosts only",
    "not_different_host": "a server to keep away from is on the host",
    "not_same_host": "none of the servers to be with is on the host",
    "other_network": "the host is not in the network asked for",
    "group_anti_affinity": "as many members of the server group as may be are on the host",
    "group_affinity": "the other members of the server group are on another host",
    "not_forced_host": "another host was named in the request",
    "not_requested_host": "another host was requested",
    "other": "another reason",
}


class Reason(NamedTuple):
    """Why a host was not taken, or with which room it was: a code and the numbers behind it.

    Memory in MB, disk in GB, vcpus in threads. ``have`` is what would have been enough at most,
    ``used`` includes ``reserved``.
    """

    code: str
    need: float | None = None
    have: float | None = None
    limit: float | None = None
    total: float | None = None
    ratio: float | None = None
    used: float | None = None
    reserved: float | None = None
    detail: str | None = None

    def distance(self) -> float | None:
        """Return how far from enough the host is, as a share of the need; None without numbers."""
        if self.need is None or self.have is None:
            return None
        return (self.need - self.have) / (self.need or 1.0)

    def text(self) -> str:
        """Return the reason in words, with its arithmetic."""
        words = WORDS.get(self.code, self.code.replace("_", " "))
        if self.need is not None:
            words = f"{words}: {self._arithmetic()}"
        return f"{words} ({self.detail})" if self.detail else words

    def _arithmetic(self) -> str:
        unit = _unit(self.code)
        if self.limit is None or self.total is None or self.used is None:
            return f"{number(self.need)}{unit} requested, {number(self.have)}{unit} usable"
        left = self.limit - self.used
        product = "" if self.ratio is None else f" ({number(self.total)} x {number(self.ratio)})"
        text = (
            f"{number(self.need)}{unit} requested, {number(left)}{unit} usable: limit "
            f"{number(self.limit)}{unit}{product} - used {number(self.used)}{unit}"
        )
        if self.reserved:
            text += f" ({number(self.reserved)} of it reserved)"
        if self.have is not None and self.have < left:
            text += f", but one server may take {number(self.have)}{unit} at most"
        return text + self._overcommitted(unit)

    def _overcommitted(self, unit: str) -> str:
        """Say that a negative free value is no error, where there is one."""
        free = (self.total or 0.0) - (self.used or 0.0)
        if free >= 0:
            return ""
        return (
            f"; free is {number(free)}{unit}, which is no error: more is promised than there is, "
            "as the ratio allows"
        )


_UNITS = {str(resource.value): f" {unit}" for resource, unit in capacity.UNITS.items()}


def _unit(code: str) -> str:
    """Return the unit of a code that ends in a resource's word, with a space before it."""
    return _UNITS.get(code.rpartition("_")[2], "")


def number(value: float | None) -> str:
    """Return a number without needless decimals; ``?`` for None."""
    return "?" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


# The codes of each resource: too little is left, or the whole host is too small.
TOO_LITTLE = {
    resource: (f"not_enough_{resource.value}", f"larger_than_host_{resource.value}")
    for resource in Resource
}
# The numbers of a reason after its need: have, limit, total, ratio, used, reserved, detail.
Sums = tuple[float, float | None, float, float, float, float, None]
_new = tuple.__new__


def sums(node: ComputeNode, rooms: Rooms) -> tuple[Sums, Sums, Sums]:
    """Return the numbers behind memory, disk and vcpu of a host, ready for reasons."""
    memory, disk, vcpu = rooms
    return sums_of(node, memory), sums_of(node, disk), sums_of(node, vcpu)


def sums_of(node: ComputeNode, room: Room) -> Sums:
    """Return the numbers behind one resource of a host, under the limit that *room* has."""
    ratio = ratio_of(node, room.resource)
    if room.limit is not None and room.limit != capacity.limit(room.total, ratio) and room.total:
        # An aggregate or a filter without overcommit has another ratio than the host.
        ratio = room.limit / room.total
    held = reserved(node, room.resource)
    # What comes along with the next server is as good as used.
    used = room.used + room.beside
    return (room.largest, room.limit, room.total, ratio, used, held, None)


def ratio_of(node: ComputeNode, resource: Resource) -> float:
    """Return the host's own allocation ratio of a resource."""
    if resource is Resource.MEMORY:
        return node.ram_allocation_ratio
    return node.disk_allocation_ratio if resource is Resource.DISK else node.cpu_allocation_ratio


def reserved(node: ComputeNode, resource: Resource) -> float:
    """Return how much of a resource is held back on a host, in the unit of a need."""
    if resource is Resource.MEMORY:
        return node.reserved_host_memory_mb
    if resource is Resource.DISK:
        return capacity.whole_gb(node.reserved_host_disk_mb)
    return node.reserved_host_cpus


def shortage(codes: tuple[str, str], wanted: float, numbers: Sums) -> Reason:
    """Return the reason why *wanted* does not fit.

    It is made for every host that is refused, so it takes its *codes* (an entry of TOO_LITTLE)
    and *numbers* ready-made and builds the tuple directly.
    """
    return _new(Reason, (codes[wanted > numbers[2]], wanted, *numbers))


def room_reasons(node: ComputeNode, rooms: Rooms, wanted: Need) -> list[Reason]:
    """Return the arithmetic with which *wanted* does or does not fit, code ``enough_...`` if it
    does; a resource without limit is left out."""
    reasons = []
    for room, amount, numbers in zip(rooms, wanted, sums(node, rooms), strict=True):
        if room.limit is None:
            continue
        reason = shortage(TOO_LITTLE[room.resource], amount, numbers)
        if room.fits(amount):
            reason = reason._replace(code=f"enough_{room.resource.value}")
        reasons.append(reason)
    return reasons
