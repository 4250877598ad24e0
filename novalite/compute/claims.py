# SPDX-License-Identifier: Apache-2.0
"""A claim: the last word on whether a server fits a node, and the lines that tell it.

The resource tracker calls this under the node's lock. All sums are those of objects/capacity.py,
which the scheduler's filters use too. It changes nothing and logs nothing by itself; the lines of
a verdict are written by :func:`announce` after the lock is free.
"""

import math
from dataclasses import dataclass
from typing import Any

from novalite import context as context_module
from novalite import exception, log
from novalite.objects import capacity
from novalite.objects.capacity import Need, Room, Rooms
from novalite.objects.compute_node import ComputeNode
from novalite.objects.request_spec import Generation, Limits

LOG = log.get(__name__)


@dataclass(slots=True)
class Verdict:
    """What came of a test. ``reason`` is None when the claim stands.

    ``stale``: refused, and the limits were computed from an older picture than the node's own.
    ``picture`` is the node's picture after the verdict, with the claim in it if it stands.
    """

    need: Need
    rooms: Rooms
    limits: Limits
    picture: ComputeNode
    reason: str | None = None
    stale: bool = False

    def resources(self) -> dict[str, int]:
        """Return the claimed amounts by resource class."""
        return {
            "VCPU": self.need.vcpus,
            "MEMORY_MB": self.need.memory_mb,
            "DISK_GB": self.need.disk_gb,
        }

    def numbers(self) -> dict[str, Any]:
        """Return the arithmetic for the action's history: what explains the verdict later."""
        numbers: dict[str, Any] = {
            str(room.resource): {
                "requested": amount + room.beside,
                "total": room.total,
                "used": room.used,
                "limit": room.limit,
            }
            for room, amount in zip(self.rooms, self.need, strict=True)
        }
        numbers["limits_generation"] = _pair(self.limits.generation)
        numbers["limits_age"] = round(self.limits.age, 3)
        numbers["generation"] = _pair(self.picture.generation)
        return numbers


def test(
    node: ComputeNode, need: Need, limits: Limits | None, totals_changed: Generation
) -> tuple[Rooms, str | None]:
    """Return the room that counts for a claim on *node*, and why it does not fit, or None.

    Where the node's totals or ratios have changed after the picture that a limit was computed
    from, the claim must fit the node's own limit too. A resource without a limit stays unlimited.

    :param totals_changed: the generation of the node's picture that first had its present totals
    """
    rooms = capacity.claim_rooms(node, limits)
    if limits is not None and totals_changed.newer_than(limits.generation):
        own = capacity.own_rooms(node)
        rooms = Rooms(*(_narrower(room, mine) for room, mine in zip(rooms, own, strict=True)))
    reasons = rooms.refusals(need)
    if not reasons:
        return rooms, None
    error = exception.ComputeResourcesUnavailable(reason="; ".join(reasons))
    return rooms, error.message()


def _narrower(room: Room, own: Room) -> Room:
    if room.limit is None:
        return room
    return room._replace(limit=min(room.limit, math.inf if own.limit is None else own.limit))


def announce(context: context_module.RequestContext, instance_uuid: str, verdict: Verdict) -> None:
    """Write Nova's lines about a claim."""
    need = verdict.need
    words = {"context": context, "instance": instance_uuid}
    LOG.info(
        "Attempting claim: memory %d MB, disk %d GB, vcpus %d CPU",
        need.memory_mb + verdict.rooms.memory.beside,
        need.disk_gb,
        need.vcpus,
        **words,
    )
    for room in verdict.rooms:
        unit = capacity.UNITS[room.resource]
        LOG.info(
            "Total %s: %d %s, used: %.2f %s",
            room.resource,
            room.total,
            unit,
            room.used,
            unit,
            **words,
        )
        if room.limit is None:
            LOG.info("%s limit not specified, defaulting to unlimited", room.resource, **words)
            continue
        LOG.info(
            "%s limit: %.2f %s, free: %.2f %s",
            room.resource,
            room.limit,
            unit,
            room.usable,
            unit,
            **words,
        )
    if verdict.reason is None:
        LOG.info("Claim successful", **words)
    else:
        stale = " (the limits are from an older picture of this host)" if verdict.stale else ""
        LOG.info("%s%s", verdict.reason, stale, **words)


def _pair(generation: Generation) -> list[int]:
    return [generation.epoch, generation.counter]
