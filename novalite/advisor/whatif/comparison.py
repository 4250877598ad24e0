# SPDX-License-Identifier: Apache-2.0
"""What if the settings were others: the same hosts and requests under both, side by side.

Called by ``novalite whatif``. The scheduler's own pipeline decides, request after request; each
server is taken to run on its host before the next request comes. Nothing is sent anywhere; no clock
decides anything.
"""

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from novalite.advisor.whatif.fleet import Host, Request
from novalite.advisor.whatif.settings import Side
from novalite.objects import capacity
from novalite.objects.decision import Decision, where
from novalite.objects.request_spec import RequestSpec
from novalite.scheduler.fleet import Fleet
from novalite.scheduler.host_state import HostState

Json = dict[str, Any]
RESOURCES = ("memory", "disk", "vcpu")


@dataclass(slots=True)
class Refusals:
    """Why requests of one kind got nothing: the filter that took the last hosts, and an example."""

    servers: int = 0
    filters: Counter[str] = field(default_factory=Counter)
    example: str = ""
    nearest: str = ""


@dataclass(slots=True)
class Run:
    """All requests under one side's settings.

    ``places`` has a host's name or None for each server, in the order of the requests;
    ``seconds`` is the processor's time.
    """

    hosts: list[HostState]
    places: list[str | None] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    refused: dict[str, Refusals] = field(default_factory=dict)
    landed: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def run(side: Side, hosts: Sequence[Host], requests: Sequence[Request], *, new: bool) -> Run:
    """Decide all requests under one side's settings."""
    found = Run([host.state(side, new=new) for host in hosts])
    fleet = _Filling(found.hosts)
    began = time.thread_time()
    for number, request in enumerate(requests, start=1):
        specs = request.specs(number, fleet.members[request.kind])
        outcome = side.pipeline.schedule(fleet.fleet, specs)
        found.names.extend(spec.instance_uuid for spec in specs)
        found.kinds.extend([request.kind] * len(specs))
        if outcome.found:
            fleet.settle(specs, outcome.hosts)
            chosen = [host.node for host in outcome.hosts]
            found.places.extend(chosen)
            found.landed.update(chosen)
        else:
            found.places.extend([None] * len(specs))
            refusals = found.refused.setdefault(request.kind, Refusals())
            _count(refusals, outcome.decisions[0], len(specs))
    found.seconds = time.thread_time() - began
    return found


class _Filling:
    """Hosts that fill up; ``members`` are the placed servers of each kind with their host."""

    def __init__(self, hosts: list[HostState]):
        self.fleet = Fleet(hosts)
        self.members: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._indexes = {host.node: index for index, host in enumerate(hosts)}

    def settle(self, specs: list[RequestSpec], hosts: list[HostState]) -> None:
        """Put selected servers into the pictures of their hosts, as servers that run."""
        for spec, host in zip(specs, hosts, strict=True):
            index = self._indexes[host.node]
            need = capacity.need(spec.flavor, spec.volume_backed)
            old = host.picture
            least = old.disk_available_least
            flavorids = {*old.stats.get("flavorids", ()), spec.flavor.flavorid}
            picture = replace(
                old,
                memory_mb_used=old.memory_mb_used + need.memory_mb,
                local_gb_used=old.local_gb_used + need.disk_gb,
                vcpus_used=old.vcpus_used + need.vcpus,
                disk_available_least=None if least is None else least - need.disk_gb,
                running_vms=old.running_vms + 1,
                stats={**old.stats, "flavorids": sorted(flavorids)},
            )
            self.fleet.release(index, spec.instance_uuid)
            self.fleet.report(index, picture)
            if spec.instance_group is not None:
                self.members[spec.instance_group.uuid][spec.instance_uuid] = host.host


def _count(refusals: Refusals, decision: Decision, servers: int) -> None:
    removed = [count.filter for count in decision.filters if count.start > count.end]
    refusals.servers += servers
    if removed:
        refusals.filters[removed[-1]] += servers
    refusals.example = decision.summary()
    if decision.misses:
        miss = decision.misses[0]
        name, reason = miss.reasons[0]
        refusals.nearest = f"{where(miss.host, miss.node)}: {name}: {reason.text()}"


def compare(old: Run, new: Run, old_side: Side, new_side: Side) -> Json:
    """Return both runs side by side, as JSON primitives."""
    pairs = list(zip(old.names, old.kinds, old.places, new.places, strict=True))
    elsewhere = [
        {"server": name, "kind": kind, "old": before, "new": after}
        for name, kind, before, after in pairs
        if before != after
    ]
    both = [each for each in elsewhere if each["old"] and each["new"]]
    return {
        "files": {"old": old_side.files, "new": new_side.files},
        "notes": [
            *(f"old: {text}" for text in old_side.notes),
            *(f"new: {text}" for text in new_side.notes),
        ],
        "settings": _changes(old_side, new_side),
        "summary": {"old": _summary(old), "new": _summary(new)},
        "differences": {
            "on_another_host": len(both),
            "only_old": sum(each["new"] is None for each in elsewhere),
            "only_new": sum(each["old"] is None for each in elsewhere),
        },
        "requests": [_kind(kind, old, new) for kind in dict.fromkeys(old.kinds)],
        "hosts": [
            {
                "host": before.host,
                "node": before.node,
                "old": _fill(before, old),
                "new": _fill(after, new),
            }
            for before, after in zip(old.hosts, new.hosts, strict=True)
        ],
        "elsewhere": elsewhere,
    }


def _changes(old: Side, new: Side) -> list[Json]:
    return [
        {"option": name, "old": before, "new": new.values[name]}
        for name, before in old.values.items()
        if before != new.values[name]
    ]


def _summary(found: Run) -> Json:
    placed = sum(place is not None for place in found.places)
    shares = {name: [_share(host, name) for host in found.hosts] for name in RESOURCES}
    return {
        "hosts": len(found.hosts),
        "servers": len(found.places),
        "placed": placed,
        "refused": len(found.places) - placed,
        "hosts_that_got_servers": len(found.landed),
        "most_on_one_host": max(found.landed.values(), default=0),
        "fill_percent": {
            name: {
                "average": _percent(statistics.fmean(each)),
                "least": _percent(min(each)),
                "most": _percent(max(each)),
                # How far the hosts are from all being filled alike.
                "imbalance": _percent(statistics.pstdev(each)),
            }
            for name, each in shares.items()
        },
        "cpu_seconds": round(found.seconds, 2),
    }


def _share(host: HostState, resource: str) -> float:
    """Return how much of what may be promised is taken; without a limit, of what there is."""
    room = next(room for room in host.rooms if room.resource == resource)
    limit = room.limit if room.limit is not None else room.total
    return room.used / limit if limit else 0.0


def _fill(host: HostState, found: Run) -> Json:
    shown: Json = {"servers": found.landed[host.node]}
    for room in host.rooms:
        shown[f"{room.resource.value}_percent"] = _percent(_share(host, room.resource))
    return shown


def _kind(kind: str, old: Run, new: Run) -> Json:
    shown: Json = {"kind": kind, "servers": old.kinds.count(kind)}
    for name, found in (("old", old), ("new", new)):
        refusals = found.refused.get(kind, Refusals())
        shown[name] = {
            "placed": shown["servers"] - refusals.servers,
            "refused": refusals.servers,
            "refused_by": dict(refusals.filters.most_common()),
            "last_refusal": refusals.example,
            "nearest": refusals.nearest,
        }
    return shown


def _percent(share: float) -> float:
    return round(100 * share, 1)
