# SPDX-License-Identifier: Apache-2.0
"""Answers questions about hosts: why not this one, how many more fit.

Called by the scheduler's manager with copies of the hosts. The same filters and weighers that
select are asked here, so an answer is what would really happen. Pure, and nothing is selected: it
must never be given the hosts themselves.
"""

import random
from collections.abc import Iterable, Sequence

from novalite.objects import capacity, reason
from novalite.objects.capacity import Need
from novalite.objects.inquiry import CapacityReport, Examination, HostCapacity, HostVerdict
from novalite.objects.reason import Reason
from novalite.objects.request_spec import RequestSpec
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters.base import Filter
from novalite.scheduler.filters.forced_host import ForcedHost
from novalite.scheduler.filters.requested_host import RequestedHost
from novalite.scheduler.host_state import HostState
from novalite.scheduler.pipeline import Pipeline

# More servers than this on one host are not counted.
MOST = 10_000
# What stands against a server for some seconds only: the builds before it end.
_PASSING = ("too_many_io_ops",)


def named(hosts: Sequence[HostState], names: Iterable[str]) -> tuple[list[int], list[str]]:
    """Return the indexes of the hosts with these names, and the names of none.

    Host names are compared without regard to case, node names exactly; no names are all hosts.
    """
    names = list(names)
    if not names:
        return list(range(len(hosts))), []
    found, unknown = set(), []
    for name in names:
        known = [
            index
            for index, host in enumerate(hosts)
            if name == host.node or name.lower() == host.host.lower()
        ]
        found.update(known)
        if not known:
            unknown.append(name)
    return sorted(found), unknown


class Examiner:
    """One request against copies of all hosts."""

    def __init__(self, pipeline: Pipeline, hosts: Sequence[HostState], spec: RequestSpec):
        self._pipeline = pipeline
        self._hosts = hosts
        self._demand = pipeline.demand(spec, hosts)
        self._forced = spec.force_host is not None or spec.force_node is not None
        self._first: Filter | None = None
        if self._forced:
            self._first = ForcedHost(spec.force_host, spec.force_node)
        elif spec.requested_host is not None or spec.requested_node is not None:
            self._first = RequestedHost(spec.requested_host, spec.requested_node)
        self._shortlist = pipeline.shortlist(hosts, spec, self._demand)
        self._order = self._shortlist.best(len(hosts), rng=random.Random(0))
        self._ranks = {index: place for place, index in enumerate(self._order, 1)}

    def examination(self, names: Iterable[str], picture_age: float = 0.0) -> Examination:
        """Return the decision as it would be, without verdicts of hosts."""
        _indexes, unknown = named(self._hosts, names)
        rooms = None
        if self._order and not self._forced:
            rooms = self._pipeline.rooms(self._hosts[self._order[0]])
        made = self._shortlist.decision(self._order, rooms)
        made.forced, made.picture_age = self._forced, round(picture_age, 3)
        return Examination(made.bound(), [], unknown)

    def verdict(self, index: int) -> HostVerdict:
        """Return what all filters say of one host, and its weights if it is let in."""
        host, passed, reasons = self._hosts[index], [], []
        everyone = [] if self._first is None else [self._first]
        everyone += self._pipeline.filters
        for checked in everyone:
            why = checked.examine(host, self._demand) if checked.applies(self._demand) else None
            if why is None:
                passed.append(checked.name)
            else:
                reasons.append((checked.name, why))
        rank = self._ranks.get(index)
        return HostVerdict(
            host.host,
            host.node,
            host.zone,
            picture=host.picture.generation.text(),
            selected=len(host.selected),
            fits=rank is not None,
            skipped=self._forced,
            passed=passed,
            reasons=reasons,
            room=room(self._pipeline, host, self._demand.need),
            rank=rank,
            weighed=[self._shortlist.weighed(index)] if rank is not None else [],
        )


def capacity_of(
    pipeline: Pipeline, host: HostState, demand: Demand, flavorid: str | None = None
) -> HostCapacity:
    """Return how many servers with this demand fit one host, one after the other.

    The sums guess, the filters decide: some of them count servers, not sizes.
    """
    limited = {checked.resource for checked in pipeline.filters if checked.resource is not None}
    filled = capacity.fill(pipeline.rooms(host), demand.need, limited)
    tried = _Tries(pipeline, host, demand, flavorid)
    count = tried.count(MOST if filled.count is None else filled.count)
    return HostCapacity(
        host.host,
        host.node,
        host.zone,
        picture=host.picture.generation.text(),
        selected=len(host.selected),
        count=None if count > MOST else count,
        binds=[] if count > MOST else tried.refusals(count),
        each={resource.value: found for resource, found in filled.each.items()},
        room=room(pipeline, host, demand.need),
    )


class _Tries:
    """What the filters say of one host with so many servers more."""

    def __init__(self, pipeline: Pipeline, host: HostState, demand: Demand, flavorid: str | None):
        self._host = host
        self._demand = demand
        self._flavorid = flavorid
        self._applied = [checked for checked in pipeline.filters if checked.applies(demand)]

    def refusals(self, more: int) -> list[tuple[str, Reason]]:
        """Return why the next server is not let in after *more* of them."""
        host = self._host
        if more:
            host = host.copy()
            # No uuid of a server looks like this.
            names = [f"+{number}" for number in range(more)]
            host.consume_all(names, self._demand.need, flavorid=self._flavorid)
        found = [(one.name, one.examine(host, self._demand)) for one in self._applied]
        return [
            (name, why)
            for name, why in found
            if why is not None and not (more and why.code in _PASSING)
        ]

    def count(self, guess: int) -> int:
        """Return the least number after which the next server is refused; above MOST: none."""
        if self.refusals(0):
            return 0
        low, high = 0, min(max(guess, 1), MOST)
        while not self.refusals(high):
            if high == MOST:
                return MOST + 1
            low, high = high, min(2 * high, MOST)
        if low == 0 and not self.refusals(high - 1):
            return high
        # One more fits after low, none after high.
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.refusals(middle) else (middle, high)
        return high


def room(pipeline: Pipeline, host: HostState, need: Need) -> list[Reason]:
    """Return the arithmetic of memory, disk and vcpus; without a limit it has none."""
    found = []
    for limits, amount, numbers in zip(
        pipeline.rooms(host), need, reason.sums(host.picture, pipeline.rooms(host)), strict=True
    ):
        why = reason.shortage(reason.TOO_LITTLE[limits.resource], amount, numbers)
        if limits.beside:
            # Here used is what the books say; a refusal adds what comes along with the server.
            note = f"{reason.number(limits.beside)} more for each server beside its flavor"
            why = why._replace(used=limits.used, detail=note)
        if limits.limit is None:
            why = why._replace(code=f"unlimited_{limits.resource.value}", have=None)
        elif limits.fits(amount):
            why = why._replace(code=f"enough_{limits.resource.value}")
        found.append(why)
    return found


def report(need: Need, unknown: list[str], picture_age: float) -> CapacityReport:
    """Return a report that hosts are to be added to."""
    return CapacityReport(need, [], unknown, round(picture_age, 3))
