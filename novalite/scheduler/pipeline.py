# SPDX-License-Identifier: Apache-2.0
"""From hosts and a request to selections and decisions: filter, weigh, choose, consume.

The scheduler's manager calls it with the hosts as they are; tests and explanations may call it
with any hosts. Pure: no clock, database, bus or options; the only state it changes is what the
chosen hosts consume.
"""

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from novalite.objects.capacity import Resource, Room, Rooms
from novalite.objects.decision import TOP, Decision
from novalite.objects.reason import Reason
from novalite.objects.request_spec import Limits, RequestSpec, Selection
from novalite.scheduler import demand as demands
from novalite.scheduler import weights
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters.base import Filter
from novalite.scheduler.filters.forced_host import ForcedHost
from novalite.scheduler.filters.requested_host import RequestedHost
from novalite.scheduler.fleet import Fleet
from novalite.scheduler.host_state import HostState
from novalite.scheduler.shortlist import Shortlist
from novalite.scheduler.weights.base import Weigher

# Where filters and weighers are that come with the project.
_OURS = "novalite.scheduler."


@dataclass(slots=True)
class Outcome:
    """What came of one request.

    ``found`` tells whether there is a host for each server. Then the lists have one entry a
    server, and ``hosts`` are the chosen ones, which have consumed it. Else nothing is consumed
    and ``decisions`` holds the one that found no host.
    """

    found: bool = True
    selections: list[list[Selection]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    hosts: list[HostState] = field(default_factory=list)


class Pipeline:
    """Filters and weighers with the few numbers that steer the choice.

    :param host_subset_size: the host is drawn at random from so many best ones
    :param shuffle: draw among the hosts that share the best weight
    :param max_attempts: length of a selection with its alternates
    """

    def __init__(
        self,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
        *,
        host_subset_size: int = 1,
        shuffle: bool = False,
        max_attempts: int = 3,
        rng: random.Random | None = None,
    ):
        self._filters = list(filters)
        self._weighers = list(weighers)
        self._subset = host_subset_size
        self._shuffle = shuffle
        self._attempts = max_attempts
        self._rng = rng or random.Random()
        self._reads = sorted(
            {name for checked in filters for name in checked.reads}
            | {name for weigher in weighers for name in weigher.reads}
        )
        # Whether verdicts may be kept from one request to the next.
        self.keeps = all(map(_repeats, filters)) and all(map(_repeats, weighers))
        self._limiting = [checked for checked in filters if checked.resource is not None]

    def schedule(
        self, hosts: Sequence[HostState], specs: Sequence[RequestSpec], picture_age: float = 0.0
    ) -> Outcome:
        """Select a host for each server of one request, or for none.

        A chosen host consumes its server at once, so that the next one is decided with it. A
        :class:`Fleet` keeps verdicts from one request to the next, a plain list does not.

        :param picture_age: seconds since the hosts' pictures were known to be the newest
        """
        fleet = hosts if isinstance(hosts, Fleet) else Fleet(hosts)
        run = _Run(self, fleet, picture_age, again=len(specs) > 1)
        try:
            if not all(run.select(spec) for spec in specs):
                run.undo()
        except Exception:
            run.undo()
            raise
        return run.outcome

    def shortlist(self, hosts: Sequence[HostState], spec: RequestSpec, demand: Demand) -> Shortlist:
        """Return the hosts under the request's demand; a forced host skips the filters.

        A requested host does not skip them: it only has no competitors.
        """
        filters: Sequence[Filter] = self._filters
        if _forced(spec):
            filters = [ForcedHost(spec.force_host, spec.force_node)]
        elif spec.requested_host is not None or spec.requested_node is not None:
            filters = [RequestedHost(spec.requested_host, spec.requested_node), *filters]
        plain = hosts.hosts if isinstance(hosts, Fleet) else hosts
        return Shortlist(plain, demand, filters, self._running(hosts))

    def besides(self, spec: RequestSpec, fleet: Fleet) -> Hashable:
        """Return all that makes a shortlist, besides the hosts and the demand."""
        places = (spec.force_host, spec.force_node, spec.requested_host, spec.requested_node)
        return (self, *places, *self._running(fleet))

    def _running(self, hosts: Sequence[HostState]) -> list[Weigher]:
        """Return the weighers that make a difference on any host."""
        return weights.running(self._weighers, hosts.kinds if isinstance(hosts, Fleet) else hosts)

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The enabled filters in their order, for those who ask what each of them says."""
        return tuple(self._filters)

    @property
    def weighers(self) -> tuple[Weigher, ...]:
        """The enabled weighers in their order."""
        return tuple(self._weighers)

    def demand(self, spec: RequestSpec, hosts: Sequence[HostState] = ()) -> Demand:
        """Return what the enabled filters and weighers may know of the request.

        :param hosts: where members of its server group may have been selected a moment ago
        """
        group = spec.instance_group
        if group is None:
            return demands.of(spec, self._reads)
        fleet = hosts if isinstance(hosts, Fleet) else Fleet(hosts)
        return demands.of(spec, self._reads, fleet.members(group.uuid))

    def order(self, shortlist: Shortlist, hosts: Sequence[HostState]) -> list[int]:
        """Return the chosen host, its alternates and what else belongs to the best five.

        Alternates are on other service hosts, for a build that fails excludes its whole host.
        """
        wanted = max(TOP, self._attempts, self._subset)
        order = shortlist.best(wanted, shuffle=self._shuffle, rng=self._rng)
        if not order:
            return order
        if self._subset > 1:
            chosen = self._rng.choice(order[: self._subset])
            order.remove(chosen)
            order.insert(0, chosen)
        if len({hosts[index].host for index in order}) < min(self._attempts, len(order)):
            everyone = shortlist.best(len(hosts), rng=self._rng)
            known = set(order)
            order.extend(index for index in everyone if index not in known)
        return order

    def alternates(self, order: Sequence[int], hosts: Sequence[HostState]) -> list[HostState]:
        """Return the chosen host and up to max_attempts - 1 further ones."""
        picked: dict[str, HostState] = {}
        for index in order:
            if len(picked) == self._attempts:
                break
            picked.setdefault(hosts[index].host, hosts[index])
        return list(picked.values())

    def violated(self, host: HostState, demand: Demand) -> list[tuple[str, Reason]]:
        """Return what the enabled filters have against a host that is taken all the same."""
        asked = ((f.name, f.examine(host, demand)) for f in self._filters if f.applies(demand))
        return [(name, reason) for name, reason in asked if reason is not None]

    def rooms(self, host: HostState) -> Rooms:
        """Return memory, disk and vcpu of the host under the limits that will go with it.

        A resource without an enabled filter has none; of several filters the least limit counts.
        """
        limited: dict[Resource, Room] = {}
        for checked in self._limiting:
            room = checked.room(host)
            if room is None or room.limit is None:
                continue
            held = limited.get(room.resource)
            if held is None or held.limit is None or room.limit < held.limit:
                limited[room.resource] = room
        return Rooms(
            *[limited.get(room.resource) or room._replace(limit=None) for room in host.rooms]
        )

    def selection(self, host: HostState, forced: bool, age: float) -> Selection:
        """Return the host with the limits of the resources whose filters are enabled."""
        limits = Limits(generation=host.picture.generation, age=age)
        if not forced:
            memory, disk, vcpu = self.rooms(host)
            limits.memory_mb, limits.disk_gb, limits.vcpu = memory.limit, disk.limit, vcpu.limit
        return Selection(host.host, host.node, limits, host.zone)


class _Run:
    """One request on its way; requests of equal demand share a shortlist."""

    def __init__(self, pipeline: Pipeline, fleet: Fleet, picture_age: float, *, again: bool):
        self._pipeline = pipeline
        self._fleet = fleet
        self._age = round(picture_age, 3)
        self._again = again
        self._consumed: list[tuple[int, str]] = []
        self.outcome = Outcome()

    def select(self, spec: RequestSpec) -> bool:
        """Add the selection for one server; False if there is no host for it."""
        pipeline, hosts, forced = self._pipeline, self._fleet.hosts, _forced(spec)
        demand = pipeline.demand(spec, self._fleet)
        shortlist = self._shortlist(spec, demand)
        order = pipeline.order(shortlist, hosts)
        rooms = pipeline.rooms(hosts[order[0]]) if order and not forced else None
        decision = shortlist.decision(order, rooms)
        decision.forced, decision.picture_age = forced, self._age
        if forced and order:
            decision.violated = pipeline.violated(hosts[order[0]], demand)
        decision.bound()
        if not order:
            self.outcome.decisions = [decision]
            return False
        # A forced host has one attempt and no alternates.
        picked = [hosts[order[0]]] if forced else pipeline.alternates(order, hosts)
        self.outcome.selections.append(
            [pipeline.selection(host, forced, self._age) for host in picked]
        )
        self.outcome.decisions.append(decision)
        self._consume(order[0], spec, demand)
        return True

    def _shortlist(self, spec: RequestSpec, demand: Demand) -> Shortlist:
        pipeline, fleet = self._pipeline, self._fleet
        if not pipeline.keeps:
            return pipeline.shortlist(fleet, spec, demand)
        return fleet.shortlist(
            (demand, pipeline.besides(spec, fleet)),
            lambda: pipeline.shortlist(fleet, spec, demand),
            # Each member of a server group makes another demand of the next one.
            again=self._again and demand.group is None,
        )

    def _consume(self, index: int, spec: RequestSpec, demand: Demand) -> None:
        group = None if demand.group is None else demand.group.uuid
        self._fleet.consume(
            index, spec.instance_uuid, demand.need, group=group, flavorid=spec.flavor.flavorid
        )
        self.outcome.hosts.append(self._fleet.hosts[index])
        self._consumed.append((index, spec.instance_uuid))

    def undo(self) -> None:
        """Give back what the request consumed, since it gets nothing."""
        for index, instance_uuid in self._consumed:
            self._fleet.release(index, instance_uuid)
        self.outcome.found = False
        self.outcome.selections, self.outcome.hosts = [], []


def _forced(spec: RequestSpec) -> bool:
    return spec.force_host is not None or spec.force_node is not None


def _repeats(checked: Filter | Weigher) -> bool:
    """Tell whether a filter or weigher says the same of the same host and demand each time.

    Our own do. Others promise it by declaring what they read, if only with an empty ``reads``.
    """
    if getattr(checked, "volatile", False):
        return False
    kinds = type(checked).__mro__
    return kinds[0].__module__.startswith(_OURS) or any(
        "reads" in vars(kind) for kind in kinds if not kind.__module__.startswith(_OURS)
    )
