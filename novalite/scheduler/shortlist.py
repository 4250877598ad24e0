# SPDX-License-Identifier: Apache-2.0
"""All hosts under one demand: who survives the filters, who does not and why, who is best.

One request, a request for a hundred servers and a stream of equal requests use the same class:
a verdict holds until its host changes, and :meth:`Shortlist.update` examines that one host anew.
What is dear to find out and cheap to keep is worked out when it is first asked for and kept from
the first change on. Pure.
"""

import bisect
import heapq
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence

from novalite.objects import decision as decisions
from novalite.objects.capacity import Rooms
from novalite.objects.decision import Decision, FilterCount, Miss, Weighed
from novalite.objects.reason import Reason, room_reasons
from novalite.scheduler import ranking
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters.base import Filter
from novalite.scheduler.front import Front
from novalite.scheduler.host_state import HostState
from novalite.scheduler.ranking import KeptRanking, Ranking
from novalite.scheduler.weights.base import Weigher

# Nearest misses shown beside a success: more would not fit into its bounds.
_NEAREST_ON_SUCCESS = 4
# Misses held in order, so that a few that change do not make all be ordered anew.
_FRONT = 24
_FAR = float("inf")
# How far a miss is from passing, its index, the place of its filter.
_Near = tuple[float, int, int]


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
        # One that makes no difference for this demand would only fill the decision with zeros.
        self._weighers = [weigher for weigher in weighers if weigher.applies(demand)]
        self._misses: list[dict[int, Reason]] = [{} for _ in filters]
        self._applied = [
            (place, checked.examine)
            for place, checked in enumerate(filters)
            if checked.applies(demand)
        ]
        # Whether only aggregates make multipliers different from host to host.
        self._usual = ranking.may_be_kept(self._weighers)
        # All of these are made when they are first asked for, and then kept.
        self._ranking: Ranking | KeptRanking | None = None
        self._codes: list[dict[str, int]] | None = None
        self._nearest: Front | None = None
        self._survivors = self._examine_all()

    def _examine_all(self) -> list[int]:
        """Run filter by filter over what is left of the hosts."""
        demand = self._demand
        hosts: Sequence[HostState] = self._hosts
        survivors = list(range(len(hosts)))
        for place, _examine in self._applied:
            reasons = self._filters[place].refusals(hosts, demand)
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
        """Examine one host again, since it has changed; it may be one that was added."""
        position = bisect.bisect_left(self._survivors, index)
        survived = position < len(self._survivors) and self._survivors[position] == index
        why = self._examine(index)
        if not survived:
            self._forget_miss(index)
        elif why is not None:
            del self._survivors[position]
        if why is not None:
            self._note_miss(index, *why)
        elif not survived:
            self._survivors.insert(position, index)
        if survived or why is None:
            self._weigh_again(index, why is None)

    def _examine(self, index: int) -> tuple[int, Reason] | None:
        host, demand = self._hosts[index], self._demand
        for place, examine in self._applied:
            reason = examine(host, demand)
            if reason is not None:
                return place, reason
        return None

    def _forget_miss(self, index: int) -> None:
        for place, misses in enumerate(self._misses):
            reason = misses.pop(index, None)
            if reason is None:
                continue
            if self._codes is not None:
                codes = self._codes[place]
                codes[reason[0]] -= 1
                if not codes[reason[0]]:
                    del codes[reason[0]]
            if self._nearest is not None:
                self._nearest.discard((_distance(reason), index, place))

    def _note_miss(self, index: int, place: int, reason: Reason) -> None:
        self._misses[place][index] = reason
        if self._codes is not None:
            codes = self._codes[place]
            codes[reason[0]] = codes.get(reason[0], 0) + 1
        if self._nearest is not None:
            self._nearest.add((_distance(reason), index, place))

    def _weigh_again(self, index: int, survives: bool) -> None:
        """Let the ranking know of a change; before it is first asked for there is none."""
        if self._ranking is None:
            return
        if not isinstance(self._ranking, KeptRanking):
            # The first change. The survivors are as they are after it.
            self._ranking = self._keep_ranking()
        else:
            self._ranking.update(self._hosts, index, survives)

    def _keep_ranking(self) -> KeptRanking | None:
        if not self._usual:
            return None
        return KeptRanking(self._hosts, self._survivors, self._demand, self._weighers)

    def best(self, count: int, *, shuffle: bool = False, rng: random.Random) -> list[int]:
        """Return the indexes of the *count* best hosts, best first.

        Hosts of equal weight keep their order, unless *shuffle* draws among those that share the
        best weight.
        """
        if self._ranking is None:
            # A copy: the ranking of a moment must not see survivors come and go.
            self._ranking = Ranking(
                self._hosts, list(self._survivors), self._demand, self._weighers
            )
        return self._ranking.best(count, shuffle, rng)

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
            misses=self._nearest_misses(_NEAREST_ON_SUCCESS if chosen else decisions.NEAREST),
            weighers=[(weigher.name, weigher.multiplier) for weigher in self._weighers],
            weights=[self.weighed(index) for index in order[: decisions.TOP]],
            room=room_reasons(chosen.picture, rooms, need) if chosen and rooms else [],
        )

    def _counts(self) -> list[FilterCount]:
        if self._codes is None:
            self._codes = [
                dict(Counter([reason[0] for reason in misses.values()])) if misses else {}
                for misses in self._misses
            ]
        counts, left = [], len(self._hosts)
        for checked, misses, codes in zip(self._filters, self._misses, self._codes, strict=True):
            start, left = left, left - len(misses)
            # In an order that does not tell which host came first.
            counts.append(
                FilterCount(checked.name, start, left, dict(sorted(codes.items())) if codes else {})
            )
        return counts

    def _nearest_misses(self, count: int) -> list[Miss]:
        """Return the hosts that came nearest, with the reasons of all filters that refuse them.

        Those whose distance nobody can tell come last.
        """
        front = self._nearest
        if front is None:
            front = self._nearest = Front(_FRONT, self._all_near())
        elif len(front) < count and front.limit is not None:
            front.fill(self._all_near())
        nearest = itertools.islice(front, count)
        return [self._miss(index, place) for _distance, index, place in nearest]

    def _all_near(self) -> list[_Near]:
        """Return the misses with their distances; of those that are many, only the nearest."""
        refused = [
            (place, misses, _distances(misses.values()))
            for place, misses in enumerate(self._misses)
            if misses
        ]
        every = list(itertools.chain.from_iterable(distances for _, _, distances in refused))
        # To compare numbers is quicker than to make tuples of all.
        farthest = heapq.nsmallest(_FRONT + 1, every)[-1] if len(every) > _FRONT else _FAR
        return [
            (distance, index, place)
            for place, misses, distances in refused
            for distance, index in zip(distances, misses, strict=True)
            if distance <= farthest
        ]

    def _miss(self, index: int, place: int) -> Miss:
        host, reasons = self._hosts[index], []
        for later, examine in self._applied:
            if later < place:
                continue
            reason = self._misses[place][index] if later == place else examine(host, self._demand)
            if reason is not None:
                reasons.append((self._filters[later].name, reason))
        return Miss(host.host, host.node, reasons, host.picture.generation.text())

    def weighed(self, index: int) -> Weighed:
        """Return the weights of a survivor as they were at the last :meth:`best`."""
        host = self._hosts[index]
        if self._ranking is None:
            return Weighed(host.host, host.node, 0.0, [], [], host.picture.generation.text())
        total, raw, shares = self._ranking.weights(index)
        usual = here = [weigher.multiplier for weigher in self._weighers]
        if not self._usual or host.joined.least:
            here = [weigher.multiplier_on(host) for weigher in self._weighers]
        return Weighed(
            host.host,
            host.node,
            round(total, 6),
            [round(weight, 6) for weight in raw],
            [round(share, 6) for share in shares],
            host.picture.generation.text(),
            None if here == usual else here,
        )

    def difference(self, other: "Shortlist") -> str | None:
        """Tell in which answer another shortlist of the same hosts differs; None if in none."""
        rng = random.Random(0)
        mine, others = (each.best(decisions.NEAREST, rng=rng) for each in (self, other))
        if mine != others:
            return f"best hosts {mine} and {others}"
        # With and without a host, a decision shows different things.
        for order in (mine, []):
            made, fresh = self.decision(order), other.decision(order)
            if made != fresh:
                return f"decisions {made} and {fresh}"
        return None


def _distances(reasons: Iterable[Reason]) -> list[float]:
    """Return how far from passing hosts are."""
    try:
        # Reason.distance(), written out: this runs for every host that was refused.
        return [(reason[1] - reason[2]) / reason[1] for reason in reasons]  # type: ignore[operator]
    except (TypeError, ZeroDivisionError):
        # No numbers, or nothing wanted.
        return [_distance(reason) for reason in reasons]


def _distance(reason: Reason) -> float:
    """Return how far from passing a host is; infinitely if there are no numbers to tell it."""
    distance = reason.distance()
    return _FAR if distance is None else distance
