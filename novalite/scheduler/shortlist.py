# SPDX-License-Identifier: Apache-2.0
"""All hosts under one demand: who survives the filters, who does not and why, who is best.

One request, a request for a hundred servers and a stream of equal requests use the same class:
a verdict holds until its host changes, and :meth:`Shortlist.update` examines that one host anew.
Pure.
"""

import bisect
import heapq
import itertools
import random
from collections import Counter
from collections.abc import Sequence

from novalite.objects import decision as decisions
from novalite.objects.capacity import Rooms
from novalite.objects.decision import Decision, FilterCount, Miss, Weighed
from novalite.objects.reason import Reason, room_reasons
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters.base import Filter
from novalite.scheduler.host_state import HostState
from novalite.scheduler.weights.base import Weigher

# Nearest misses shown beside a success: more would not fit into its bounds.
_NEAREST_ON_SUCCESS = 4


class Shortlist:
    """Every host exactly once: a survivor, or a miss of the first filter that refuses it.

    Hosts are known by their index in *hosts*, which also is their order among equals.
    """

    def __init__(
        self,
        hosts: Sequence[HostState],
        demand: Demand,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
    ):
        self._hosts = hosts
        self._demand = demand
        self._filters = filters
        self._weighers = weighers
        self._misses: list[dict[int, Reason]] = [{} for _ in filters]
        self._applied = [
            (place, checked.examine)
            for place, checked in enumerate(filters)
            if checked.applies(demand)
        ]
        self._ranking: _Ranking | None = None
        self._survivors = self._examine_all()

    def _examine_all(self) -> list[int]:
        """Run filter by filter over what is left of the hosts."""
        demand = self._demand
        hosts: Sequence[HostState] = self._hosts
        survivors = list(range(len(hosts)))
        for place, examine in self._applied:
            reasons = [examine(host, demand) for host in hosts]
            if reasons.count(None) == len(reasons):
                continue
            passed = [reason is None for reason in reasons]
            self._misses[place] = {
                index: reason
                for index, reason in zip(survivors, reasons, strict=True)
                if reason is not None
            }
            survivors = list(itertools.compress(survivors, passed))
            hosts = list(itertools.compress(hosts, passed))
        return survivors

    def update(self, index: int) -> None:
        """Examine one host again, since it has changed."""
        self._ranking = None
        position = bisect.bisect_left(self._survivors, index)
        if position < len(self._survivors) and self._survivors[position] == index:
            del self._survivors[position]
        for misses in self._misses:
            misses.pop(index, None)
        host = self._hosts[index]
        for place, examine in self._applied:
            reason = examine(host, self._demand)
            if reason is not None:
                self._misses[place][index] = reason
                return
        bisect.insort(self._survivors, index)

    def best(self, count: int, *, shuffle: bool = False, rng: random.Random) -> list[int]:
        """Return the indexes of the *count* best hosts, best first.

        Hosts of equal weight keep their order, unless *shuffle* draws among those that share the
        best weight.
        """
        self._ranking = ranking = _Ranking(
            [self._hosts[index] for index in self._survivors], self._demand, self._weighers
        )
        return [self._survivors[position] for position in ranking.best(count, shuffle, rng)]

    def decision(self, order: Sequence[int], rooms: Rooms | None = None) -> Decision:
        """Return the decision with the hosts in *order*, of which the first one is chosen.

        :param order: what :meth:`best` returned, perhaps in another order; empty: no valid host
        :param rooms: memory, disk, vcpu of the chosen host as it was when it was chosen
        """
        chosen = self._hosts[order[0]] if order else None
        need = self._demand.need
        return Decision(
            hosts=len(self._hosts),
            survivors=len(self._survivors),
            need=need,
            host=chosen.host if chosen else None,
            node=chosen.node if chosen else None,
            filters=self._counts(),
            misses=self._nearest(_NEAREST_ON_SUCCESS if chosen else decisions.NEAREST),
            weighers=[(weigher.name, weigher.multiplier) for weigher in self._weighers],
            weights=[self.weighed(index) for index in order[: decisions.TOP]],
            room=room_reasons(chosen.picture, rooms, need) if chosen and rooms else [],
        )

    def _counts(self) -> list[FilterCount]:
        counts, left = [], len(self._hosts)
        for checked, misses in zip(self._filters, self._misses, strict=True):
            start, left = left, left - len(misses)
            codes = dict(Counter([reason[0] for reason in misses.values()])) if misses else {}
            counts.append(FilterCount(checked.name, start, left, codes))
        return counts

    def _nearest(self, count: int) -> list[Miss]:
        """Return the hosts that came nearest, with the reasons of all filters that refuse them."""
        measured: list[tuple[float, int, int]] = []
        unmeasured: list[tuple[int, int]] = []
        for place, misses in enumerate(self._misses):
            if not misses:
                continue
            # Reason.distance(), written out: this runs for every host that was refused.
            found = [
                ((reason[1] - reason[2]) / (reason[1] or 1.0), index, place)
                for index, reason in misses.items()
                if reason[1] is not None and reason[2] is not None
            ]
            measured.extend(heapq.nsmallest(count, found))
            if len(found) < len(misses):
                without = (i for i, reason in misses.items() if reason.distance() is None)
                unmeasured.extend((index, place) for index in heapq.nsmallest(count, without))
        nearest = [(index, place) for _distance, index, place in heapq.nsmallest(count, measured)]
        nearest.extend(sorted(unmeasured)[: count - len(nearest)])
        return [self._miss(index, place) for index, place in nearest]

    def _miss(self, index: int, place: int) -> Miss:
        host, reasons = self._hosts[index], []
        for later, examine in self._applied:
            if later < place:
                continue
            reason = self._misses[place][index] if later == place else examine(host, self._demand)
            if reason is not None:
                reasons.append((self._filters[later].name, reason))
        return Miss(host.host, host.node, reasons, _picture(host))

    def weighed(self, index: int) -> Weighed:
        """Return the weights of a survivor as they were at the last :meth:`best`."""
        host = self._hosts[index]
        if self._ranking is None:
            return Weighed(host.host, host.node, 0.0, [], [], _picture(host))
        position = bisect.bisect_left(self._survivors, index)
        return self._ranking.weighed(position)


class _Ranking:
    """The survivors' weights: raw and normalised by weigher, and their total."""

    def __init__(self, hosts: Sequence[HostState], demand: Demand, weighers: Sequence[Weigher]):
        self._hosts = hosts
        self._raw: list[list[float]] = []
        self._normalised: list[list[float]] = []
        self._totals = [0.0] * len(hosts)
        for weigher in weighers:
            raw = weigher.clamp(weigher.column(hosts, demand))
            # A single host is not weighed against anybody.
            shares = weigher.normalise(raw) if len(hosts) > 1 else [0.0] * len(hosts)
            weighted = weigher.weighted(hosts, shares)
            self._totals = [a + b for a, b in zip(self._totals, weighted, strict=True)]
            self._raw.append(raw)
            self._normalised.append(shares)

    def best(self, count: int, shuffle: bool, rng: random.Random) -> list[int]:
        totals = self._totals
        if not shuffle or not totals:
            # As sorted(reverse=True)[:count]: equals stay in order.
            return heapq.nlargest(count, range(len(totals)), key=totals.__getitem__)
        top = max(totals)
        equal = [position for position, total in enumerate(totals) if total == top]
        order = heapq.nlargest(count + len(equal), range(len(totals)), key=totals.__getitem__)
        rest = order[len(equal) :]
        rng.shuffle(equal)
        return (equal + rest)[:count]

    def weighed(self, position: int) -> Weighed:
        host = self._hosts[position]
        return Weighed(
            host.host,
            host.node,
            round(self._totals[position], 6),
            [round(raw[position], 6) for raw in self._raw],
            [round(shares[position], 6) for shares in self._normalised],
            _picture(host),
        )


def _picture(host: HostState) -> str:
    generation = host.picture.generation
    return f"{generation.epoch}.{generation.counter}"
