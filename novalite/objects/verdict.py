# SPDX-License-Identifier: Apache-2.0
"""The answers about single hosts in words: what a host has left, why it is not taken, what binds.

Used by the API for administrators. The numbers are those of the scheduler's answers. Pure.
"""

from collections.abc import Iterable
from typing import Any

from novalite.objects import advice, capacity, change
from novalite.objects.decision import where
from novalite.objects.inquiry import CapacityReport, HostCapacity, HostVerdict
from novalite.objects.reason import Reason, number

_NAMES = {"memory": "memory", "disk": "disk", "vcpu": "vcpus"}


def resources(room: Iterable[Reason]) -> list[dict[str, Any]]:
    """Return how the resources of a host are counted; what is no amount is left out."""
    return [resource(reason) for reason in room if _is_amount(reason)]


def resource(reason: Reason) -> dict[str, Any]:
    """Return how one resource of a host is counted, under the names of its parts.

    ``usable`` = limit - used, ``free`` = total - used; ``one_server`` is the most that one server
    may take. Without a limit usable and limit are None.
    """
    kind = reason.code.rpartition("_")[2]
    total, used = reason.total or 0.0, reason.used or 0.0
    usable = None if reason.limit is None else reason.limit - used
    return {
        "resource": kind,
        "unit": capacity.UNITS[capacity.Resource(kind)],
        "need": reason.need,
        "total": total,
        "ratio": reason.ratio,
        "limit": reason.limit,
        "used": used,
        "reserved": reason.reserved,
        "free": total - used,
        "usable": usable,
        "one_server": reason.have,
        "note": reason.detail,
    }


def negative(room: Iterable[Reason]) -> list[str]:
    """Say of each resource whose free value is negative what that means."""
    return [text for reason in room if (text := _negative(reason))]


def _negative(reason: Reason) -> str | None:
    if not _is_amount(reason):
        return None
    shown = resource(reason)
    kind, free = shown["resource"], shown["free"]
    if free >= 0:
        return None
    unit = f" {shown['unit']}" if kind != "vcpu" else " vcpus"
    verb = "are" if kind == "vcpu" else "is"
    text = (
        f"free {_NAMES[kind]} {verb} {number(free)}{unit}, which is no error: "
        f"{number(shown['used'])}{unit} are promised and there are {number(shown['total'])}{unit}"
    )
    if shown["limit"] is None:
        return f"{text}; no limit is kept, because no enabled filter asks for it"
    option = capacity.RATIO_OPTIONS[capacity.Resource(kind)]
    text += f"; {option} {number(shown['ratio'])} allows to promise {number(shown['limit'])}{unit}"
    if shown["usable"] > 0:
        return f"{text}, so {number(shown['usable'])}{unit} can still be taken"
    return f"{text}, so nothing more can be taken"


def _is_amount(reason: Reason) -> bool:
    return reason.code.rpartition("_")[2] in _NAMES and reason.total is not None


def sentence(verdict: HostVerdict, survivors: int) -> str:
    """Return the answer for one host."""
    place = where(verdict.host, verdict.node)
    if verdict.fits and verdict.skipped:
        violated = advice.listed([name for name, _reason in verdict.reasons])
        text = f"{place} takes it, because the request names it: filters were skipped"
        return f"{text}; {violated} would refuse it" if violated else f"{text}, and none refuses it"
    if verdict.fits:
        others = "the only host" if survivors == 1 else f"number {verdict.rank} of {survivors}"
        return f"{place} takes it: every filter lets it in, and by its weight it is {others}"
    name, reason = verdict.reasons[0]
    more = len(verdict.reasons) - 1
    also = f"; {advice.times(more, 'other filter refuses', 'other filters refuse')} it too"
    return f"{place} does not take it: {name}: {reason.text()}{also if more else ''}"


def changes(verdict: HostVerdict) -> list[change.Change]:
    """Return all that has to change for a host that does not take the server."""
    return [] if verdict.fits else change.all_of(verdict.reasons, verdict.host)


def how_many(report: CapacityReport, flavor: str) -> str:
    """Return the answer to "how many more fit"."""
    need = report.need
    size = f"{flavor}: {need.memory_mb} MB memory, {need.disk_gb} GB disk, {need.vcpus} vcpus"
    hosts = advice.times(len(report.hosts), "host", "hosts")
    if report.total is None:
        return f"Nothing limits how many servers fit on {hosts} ({size})."
    fit = advice.times(report.total, "more server fits", "more servers fit")
    return f"{fit} on {hosts} ({size})."


def binding(host: HostCapacity) -> str:
    """Return what lets no more servers onto a host."""
    if host.count is None:
        return "nothing limits it"
    # Of a host with so many servers more; what is negative there is no news.
    texts = (f"{name}: {reason.text().partition('; free is ')[0]}" for name, reason in host.binds)
    return "; ".join(texts)
