# SPDX-License-Identifier: Apache-2.0
"""The survivors of one demand by weight: as of one moment, or kept while hosts change.

Shortlists use it. Both forms give the same answers to the last bit, ties included: a total is
Nova's expression in Nova's order. The trouble with keeping is that a host which sets an end of a
scale moves the shares of all others when it changes. So :class:`KeptRanking` holds the order of
the totals on a former scale, knows how far a total can have moved since, and works out the present
totals of those hosts only that can still be among the best. Pure.
"""

import bisect
import heapq
import math
import random
from collections.abc import Iterable, Sequence
from typing import Any

from novalite.scheduler.demand import Demand
from novalite.scheduler.front import Front
from novalite.scheduler.host_state import HostState
from novalite.scheduler.scale import Ends, Row, Scale
from novalite.scheduler.weights.base import Weigher

# A total, negated so that the best comes first, and the host's index.
Place = tuple[float, int]
# Rows held in order by a kept ranking.
_FRONT = 256


class Ranking:
    """The survivors' weights at one moment: raw and normalised by weigher, and their total.

    :param indexes: the survivors among *hosts*, in order
    """

    def __init__(
        self,
        hosts: Sequence[HostState],
        indexes: Sequence[int],
        demand: Demand,
        weighers: Sequence[Weigher],
    ):
        self._indexes = indexes
        survivors = [hosts[index] for index in indexes]
        zeros = [0.0] * len(survivors)
        overridden = _overridden(survivors, weighers)
        self.raw: list[list[float]] = []
        self._shares: list[list[float]] = []
        self._totals = zeros
        for weigher in weighers:
            raw = shares = zeros
            if weigher.applies(demand):
                raw = _column(weigher, survivors, demand)
                # A single host is not weighed against anybody.
                shares = weigher.normalise(raw) if len(survivors) > 1 else zeros
            self.raw.append(raw)
            self._shares.append(shares)
            if any(shares):
                self._add(weigher, survivors, shares, weigher in overridden)

    def _add(
        self, weigher: Weigher, hosts: Sequence[HostState], shares: list[float], overridden: bool
    ) -> None:
        weighted, multiplier = shares, weigher.multiplier
        if overridden:
            weighted = weigher.weighted(hosts, shares)
        elif multiplier != 1.0:
            weighted = [multiplier * share for share in shares]
        self._totals = [a + b for a, b in zip(self._totals, weighted, strict=True)]

    def best(self, count: int, shuffle: bool, rng: random.Random) -> list[int]:
        """Return the indexes of the *count* best hosts; see :meth:`Shortlist.best`."""
        totals = self._totals
        if shuffle and totals:
            # All of equal weight are needed to draw among them.
            count += totals.count(max(totals))
        # As sorted(reverse=True)[:count]: equals stay in order.
        order = heapq.nlargest(count, range(len(totals)), key=totals.__getitem__)
        if not shuffle or not totals:
            return [self._indexes[position] for position in order]
        leaders = [(-totals[position], self._indexes[position]) for position in order]
        return _shuffled(leaders, rng)[: count - totals.count(max(totals))]

    def weights(self, index: int) -> tuple[float, list[float], list[float]]:
        """Return the total, the raw and the normalised weights of one host."""
        position = bisect.bisect_left(self._indexes, index)
        raw = [column[position] for column in self.raw]
        return self._totals[position], raw, [column[position] for column in self._shares]


def _column(weigher: Weigher, hosts: Sequence[HostState], demand: Demand) -> list[float]:
    """Return the raw weights of hosts.

    :raises ValueError: one is infinite or no number, so hosts would be in no order
    """
    raw = weigher.column(hosts, demand)
    if not math.isfinite(sum(raw)):
        raise ValueError(f"{weigher.name} weighs a host with what is no finite number")
    return weigher.clamp(raw)


def may_be_kept(weighers: Sequence[Weigher]) -> bool:
    """Tell whether the weighers weigh as all do: by Nova's normalisation and multipliers."""
    return not any(
        getattr(type(weigher), name) is not getattr(Weigher, name)
        for weigher in weighers
        for name in ("clamp", "normalise", "weighted", "multiplier_on")
    )


class KeptRanking:
    """The survivors' weights while hosts come, go and change.

    It begins as :class:`Ranking` and is told of every change after.
    """

    def __init__(
        self,
        hosts: Sequence[HostState],
        indexes: Sequence[int],
        demand: Demand,
        weighers: Sequence[Weigher],
    ):
        self._demand = demand
        self._weighers = weighers
        self._applied = [weigher.applies(demand) for weigher in weighers]
        self._multipliers: dict[Any, tuple[float, ...]] = {}
        self._rows: dict[int, Row] = dict(
            zip(indexes, self._make_rows(hosts, indexes), strict=True)
        )
        # The hosts of each row, in order.
        self._alike: dict[Row, list[int]] = {}
        for index, row in self._rows.items():
            self._alike.setdefault(row, []).append(index)
        self._ends = [
            Ends(weigher.minval, weigher.maxval, (row[place] for row in self._alike))
            if applied
            else Ends(0.0, 0.0, ())
            for place, (weigher, applied) in enumerate(zip(weighers, self._applied, strict=True))
        ]
        self._rebase()

    # -- rows

    def _make_rows(self, hosts: Sequence[HostState], indexes: Sequence[int]) -> Iterable[Row]:
        survivors, demand = [hosts[index] for index in indexes], self._demand
        columns: list[Iterable[Any]] = [
            _column(weigher, survivors, demand) if applied else [0.0] * len(survivors)
            for weigher, applied in zip(self._weighers, self._applied, strict=True)
        ]
        columns.append([self._multipliers_on(host) for host in survivors])
        return zip(*columns, strict=True)

    def _multipliers_on(self, host: HostState) -> tuple[float, ...]:
        found = self._multipliers.get(host.joined)
        if found is None:
            found = tuple(weigher.multiplier_on(host) for weigher in self._weighers)
            self._multipliers[host.joined] = found
        return found

    def update(self, hosts: Sequence[HostState], index: int, survives: bool) -> None:
        """Weigh one host again, since it has changed, or forget it."""
        old = self._rows.pop(index, None)
        new = next(iter(self._make_rows(hosts, (index,)))) if survives else None
        if new is not None:
            self._rows[index] = new
        if new == old:
            return
        nothing = (None,) * len(self._ends)
        left = old if old is not None and self._leave(index, old) else nothing
        came = new if new is not None and self._enter(index, new) else nothing
        for place, ends in enumerate(self._ends):
            ends.replace(left[place], came[place])

    def _leave(self, index: int, row: Row) -> bool:
        """Take a host from its row; tell whether the row is gone with it."""
        alike = self._alike[row]
        if len(alike) > 1:
            del alike[bisect.bisect_left(alike, index)]
            return False
        del self._alike[row]
        self._front.discard((-self._base.total(row), row))
        return True

    def _enter(self, index: int, row: Row) -> bool:
        """Put a host into its row; tell whether the row is new."""
        alike = self._alike.get(row)
        if alike is not None:
            bisect.insort(alike, index)
            return False
        self._alike[row] = [index]
        self._front.add((-self._base.total(row), row))
        return True

    # -- order

    def _scale(self) -> Scale:
        if len(self._rows) < 2:
            # A single host is not weighed against anybody.
            return Scale(())
        return Scale(tuple((ends.low(), ends.high()) for ends in self._ends))

    def _rebase(self) -> None:
        """Order the rows by their totals on the present scale."""
        self._base = self._scale()
        self._walked = 0
        used = {row[-1] for row in self._alike}
        self._multipliers = {key: n for key, n in self._multipliers.items() if n in used}
        total = self._base.total
        self._front = Front(_FRONT, ((-total(row), row) for row in self._alike))

    def best(self, count: int, shuffle: bool, rng: random.Random) -> list[int]:
        """Return the indexes of the *count* best hosts; see :meth:`Shortlist.best`."""
        leaders = self._leaders(count + 1 if shuffle else count)
        if not shuffle or not leaders:
            return [index for _total, index in leaders]
        if len(leaders) > count and leaders[0][0] == leaders[-1][0]:
            # More share the best weight than were asked for.
            leaders = self._everyone(self._scale())
        return _shuffled(leaders, rng)[:count]

    def _leaders(self, count: int) -> list[Place]:
        scale = self._scale()
        if self._walked > len(self._alike):
            # Ordering them anew costs no more than the detours so far.
            self._rebase()
        found = self._walk(count, scale)
        if found is None:
            self._rebase()
            found = self._walk(count, scale)
        return self._everyone(scale)[:count] if found is None else found

    def _walk(self, count: int, scale: Scale) -> list[Place] | None:
        """Go along the front until nobody later can be among the best; None if it is too short."""
        # A present total is at most the former one plus this.
        moved = scale != self._base
        slack = self._base.drift(scale, self._multipliers.values()) if moved else 0.0
        best: list[float] = []
        found: list[Place] = []
        walked = 0
        for key, row in self._front:
            if len(best) >= count and slack - key < best[0]:
                break
            walked += 1
            total = scale.total(row) if moved else -key
            for index in self._alike[row][:count]:
                found.append((-total, index))
                if len(best) < count:
                    heapq.heappush(best, total)
                else:
                    heapq.heappushpop(best, total)
        else:
            limit = self._front.limit
            if limit is not None and (len(best) < count or slack - limit[0] >= best[0]):
                return None
        self._walked += max(0, walked - count)
        found.sort()
        return found[:count]

    def _everyone(self, scale: Scale) -> list[Place]:
        return sorted(
            (-total, index)
            for row, alike in self._alike.items()
            for total in (scale.total(row),)
            for index in alike
        )

    def weights(self, index: int) -> tuple[float, list[float], list[float]]:
        """Return the total, the raw and the normalised weights of one host."""
        row, scale = self._rows[index], self._scale()
        return scale.total(row), list(row[:-1]), scale.shares(row)


def _overridden(hosts: Sequence[HostState], weighers: Sequence[Weigher]) -> set[Weigher]:
    """Return the weighers whose multiplier is another one on some host, or may be."""
    options = {option for joined in {host.joined for host in hosts} for option in joined.least}
    return {
        weigher for weigher in weighers if weigher.option in options or not may_be_kept([weigher])
    }


def _shuffled(leaders: Sequence[Place], rng: random.Random) -> list[int]:
    """Return the leaders' indexes, those that share the best weight in random order."""
    best = leaders[0][0]
    equal = [index for total, index in leaders if total == best]
    rest = [index for _total, index in leaders[len(equal) :]]
    rng.shuffle(equal)
    return equal + rest
