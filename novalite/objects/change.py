# SPDX-License-Identifier: Apache-2.0
"""The smallest change after which a filter lets a host in: in words, and in numbers.

Computed by the sums that refused the server, so that with the change it fits and with a bit less it
does not. Decisions, advice and answers about single hosts use it, for administrators. Pure.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from novalite.objects import capacity
from novalite.objects.reason import Reason, number

# resource in a code: what it is called, its unit, its ratio.
_RESOURCES = {
    "memory": ("memory", " MB", "ram_allocation_ratio"),
    "disk": ("disk", " GB", "disk_allocation_ratio"),
    "vcpu": ("vcpus", " vcpus", "cpu_allocation_ratio"),
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
    # Only a ratio from an aggregate has a detail.
    place = " in the metadata of its aggregate" if name.startswith("Agg") and reason.detail else ""
    text = (
        f"raise {option}{place} from {number(reason.ratio)} to {number(ratio)}, "
        f"or free {lacking}{unit}"
    )
    return Change(text, option, reason.ratio, ratio, lacking)


def _smaller_flavor(reason: Reason, resource: str) -> str:
    words, unit, _option = _RESOURCES[resource]
    return (
        f"use a flavor of at most {number(reason.total)}{unit} instead of {number(reason.need)}, "
        f"or a larger host (no ratio helps: one server never gets more {words} than the host has)"
    )


def _other(name: str, reason: Reason, host: str) -> str:
    if reason.code == "host_disabled":
        why = f" (it was disabled for: {reason.detail})" if reason.detail else ""
        return f"{_SERVICE} --enable {host} nova-compute`{why}"
    if reason.code == "host_down" and reason.detail == "forced down":
        return f"{_SERVICE} --up {host} nova-compute` (it was forced down)"
    if reason.code == "host_down":
        return (
            "start novalite-compute, or see in its log why it does not report "
            "(a host counts as down after service_down_time without a report)"
        )
    if reason.code == "already_tried":
        return "mend what failed there (see the attempts below), then create the server anew"
    if reason.code == "wrong_zone":
        return f"ask for availability zone {reason.detail}, or for none"
    if reason.code in ("not_forced_host", "not_requested_host"):
        return "name this host in the request, or none"
    if reason.code == "image_not_supported":
        return f"use an image that the host can run (this one wants {reason.detail})"
    return f"satisfy {name}: {reason.text()}"
