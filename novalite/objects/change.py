# SPDX-License-Identifier: Apache-2.0
"""The smallest change after which a filter lets a host in: in words, and in numbers.

Computed by the sums that refused the server, so that with the change it fits and with a bit less it
does not. Decisions, advice and answers about single hosts use it, for administrators. Pure.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from novalite.objects import capacity
from novalite.objects.capacity import Resource
from novalite.objects.reason import Reason, number

# resource in a code: what it is called, its unit, its ratio.
_RESOURCES = {
    "memory": ("memory", " MB", capacity.RATIO_OPTIONS[Resource.MEMORY]),
    "disk": ("disk", " GB", capacity.RATIO_OPTIONS[Resource.DISK]),
    "vcpu": ("vcpus", " vcpus", capacity.RATIO_OPTIONS[Resource.VCPU]),
}
_SERVICE = "`openstack compute service set"


class Change(NamedTuple):
    """What would let a server in.

    Where an amount is lacking either is enough: ``option`` set to ``new`` instead of ``old``, or
    ``free`` more MB, GB or vcpus left.
    """

    text: str
    option: str | None = None
    old: float | None = None
    new: float | None = None
    free: int | None = None

    def view(self) -> dict[str, Any]:
        """Return the change as JSON primitives, without what is not known."""
        named = {"text": self.text, "option": self.option, "from": self.old, "to": self.new}
        named["free"] = self.free
        return {name: value for name, value in named.items() if value is not None}


def all_of(reasons: Iterable[tuple[str, Reason]], host: str) -> list[Change]:
    """Return what has to change on a host, all of it: one change for each refusal.

    :param reasons: (filter, reason) of every filter that refuses the host
    """
    found: dict[str, Change] = {}
    for name, reason in reasons:
        change = of(name, reason, host)
        found.setdefault(change.text, change)
    return list(found.values())


def of(name: str, reason: Reason, host: str) -> Change:
    """Return the change after which the filter *name* lets the host in."""
    kind, _, resource = reason.code.rpartition("_")
    if resource in _RESOURCES and kind == "not_enough":
        return _more_room(name, reason, resource)
    if resource in _RESOURCES and kind == "larger_than_host":
        return Change(_smaller_flavor(reason, resource))
    if kind == "not_exact" and resource in _RESOURCES:
        _words, unit, _option = _RESOURCES[resource]
        return Change(f"use a flavor of exactly {number(reason.have)}{unit}")
    if reason.code in _MOST:
        return _most(name, reason)
    return Change(_other(name, reason, host))


def least_ratio(total: float, used: float, wanted: float) -> float:
    """Return the least allocation ratio, in hundredths, with which *wanted* fits.

    :param total: more than 0
    """

    def enough(hundredths: int) -> bool:
        return capacity.limit(total, hundredths / 100) - used >= wanted

    # A quotient of floats may be one off; the comparison that places the server decides.
    found = math.ceil((used + wanted) / total * 100)
    while not enough(found):
        found += 1
    while enough(found - 1):
        found -= 1
    return found / 100


def _more_room(name: str, reason: Reason, resource: str) -> Change:
    """Say by how much the ratio or the free room has to grow."""
    _words, unit, option = _RESOURCES[resource]
    if reason.need is None or reason.used is None or reason.limit is None or not reason.total:
        return Change(f"free some {resource}")
    lacking = math.ceil(reason.need - (reason.limit - reason.used))
    ratio = least_ratio(reason.total, reason.used, reason.need)
    text = (
        f"raise {option}{_place(name, reason)} from {number(reason.ratio)} to {number(ratio)}, "
        f"or free {lacking}{unit}"
    )
    return Change(text, option, reason.ratio, ratio, lacking)


def _place(name: str, reason: Reason) -> str:
    """Say where the number is to be raised: only one from an aggregate has a detail."""
    of_aggregate = name.startswith("Aggregate") and reason.detail
    return " in the metadata of its aggregate" if of_aggregate else ""


def _smaller_flavor(reason: Reason, resource: str) -> str:
    words, unit, _option = _RESOURCES[resource]
    return (
        f"use a flavor of at most {number(reason.total)}{unit} instead of {number(reason.need)}, "
        f"or a larger host (no ratio helps: one server never gets more {words} than the host has)"
    )


def _most(name: str, reason: Reason) -> Change:
    """Say by how much an allowed number of servers has to grow."""
    option, what = _MOST[reason.code]
    if reason.limit is None or reason.used is None:
        return Change(f"raise {option}")
    new = math.floor(reason.used) + 1
    free = math.ceil(reason.used - reason.limit + 1)
    text = (
        f"raise {option}{_place(name, reason)} from {number(reason.limit)} to {new}, "
        f"or {what.format(free=free)}"
    )
    return Change(text, option, reason.limit, new, free)


def _other(name: str, reason: Reason, host: str) -> str:
    if reason.code == "host_disabled":
        why = f" (it was disabled for: {reason.detail})" if reason.detail else ""
        return f"{_SERVICE} --enable {host} nova-compute`{why}"
    if reason.code == "host_down" and reason.detail == "forced down":
        return f"{_SERVICE} --up {host} nova-compute` (it was forced down)"
    if reason.code == "wrong_zone":
        return f"ask for availability zone {reason.detail}, or for none"
    if reason.code == "image_not_supported":
        return f"use an image that the host can run (this one wants {reason.detail})"
    text = _TEXTS.get(reason.code)
    if text is None:
        return f"satisfy {name}: {reason.text()}"
    return f"{text} ({reason.detail})" if reason.detail else text


# code -> the option with the number, and how to get below it.
_MOST = {
    "too_many_instances": ("max_instances_per_host", "move {free} servers away"),
    "too_many_io_ops": ("max_io_ops_per_host", "wait until {free} of what goes on there ended"),
    "group_anti_affinity": ("max_server_per_host of the group", "move {free} members away"),
}
_METADATA = "in the metadata of an aggregate of the host"
_TEXTS = {
    "host_down": (
        "start novalite-compute, or see in its log why it does not report "
        "(a host counts as down after service_down_time without a report)"
    ),
    "already_tried": (
        "mend what failed there (see the attempts below), then create the server anew"
    ),
    "not_forced_host": "name this host in the request, or none",
    "not_requested_host": "name this host in the request, or none",
    "capability_missing": "use a flavor whose extra specs the host can meet",
    "aggregate_lacks_extra_spec": f"set what the flavor asks for {_METADATA}",
    "aggregate_wants_flavor": f"name the flavor in instance_type {_METADATA}",
    "aggregate_wants_image": f"use an image with the properties that stand {_METADATA}",
    "aggregate_wants_project": f"name the project in filter_tenant_id {_METADATA}",
    "other_flavor_on_host": "use the flavor of the servers that are there",
    "host_isolated": "take the host out of isolated_hosts, or the image into isolated_images",
    "image_isolated": "take the image out of isolated_images, or the host into isolated_hosts",
    "not_different_host": "leave the servers of this host out of the hint different_host",
    "not_same_host": "name a server of this host in the hint same_host, or leave it out",
    "other_network": "leave out the hint build_near_host_ip, or name a cidr with the host in it",
    "group_affinity": "make the server outside of its group, or use soft-affinity",
}
