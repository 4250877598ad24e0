# SPDX-License-Identifier: Apache-2.0
"""The survivors of one demand by weight: as of one moment, or kept while hosts change.

Shortlists use it. Both forms give the same answers to the last bit, ties included: a total is
Nova's expression in Nova's order. The trouble with keeping is that a host which sets an end of a
scale moves the shares of all others when it changes. So :class:`KeptRanking` holds the order of
the totals on a former scale, knows how far a total can have moved since, and works out the present
totals of those hosts only that can still be among the best. Pure.
"""

import bisect
import functools
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
        # Options that aggregates of some host set to another value there.
        self._options = {
            key for joined in {host.joined for host in survivors} for key in joined.least
        }
        self._raw: list[list[float]] = []
        # Normalised weights: the ends of a scale, or the shares themselves.
        self._scales: list[Sequence[float]] = []
        self._totals = [0.0] * len(survivors)
        for weigher in weighers:
            raw = _column(weigher, survivors, demand)
            add = self._add if may_be_kept([weigher]) else self._add_in_its_way
            # A single host is not weighed against anybody.
            self._scales.append(add(weigher, survivors, raw) if len(raw) > 1 else (0.0, 0.0))
            if len(raw) < 2:
                self._raw.append(weigher.clamp(raw))

    def _add(
        self, weigher: Weigher, hosts: Sequence[HostState], raw: list[float]
    ) -> tuple[float, float]:
        """Add what a weigher says to the totals; return the ends of its scale."""
        # Often no host has any: then one pass is enough.
        alike = raw.count(raw[0]) == len(raw)
        least, greatest = (raw[0], raw[0]) if alike else (min(raw), max(raw))
        low = least if weigher.minval is None else weigher.minval
        high = greatest if weigher.maxval is None else weigher.maxval
        if least < low or greatest > high:
            raw = weigher.clamp(raw)
            high = max(raw) if weigher.maxval is None else high
            low = min(raw) if weigher.minval is None else low
        self._raw.append(raw)
        low, high = float(low), float(high)
        if low != high:
            self._totals = self._summed(weigher, hosts, raw, low, high - low)
        return low, high

    def _add_in_its_way(
        self, weigher: Weigher, hosts: Sequence[HostState], raw: list[float]
    ) -> list[float]:
        """Add what a weigher says that normalises in its own way; return the shares."""
        raw = weigher.clamp(raw)
        self._raw.append(raw)
        shares = weigher.normalise(raw)
        weighted = weigher.weighted(hosts, shares)
        self._totals = [a + b for a, b in zip(self._totals, weighted, strict=True)]
        return shares

    def _summed(
        self,
        weigher: Weigher,
        hosts: Sequence[HostState],
        raw: list[float],
        low: float,
        span: float,
    ) -> list[float]:
        """Return the totals with the weigher's part.

        Weigher.normalise() and Weigher.weighted(), written out: this runs for every host.
        """
        multiplier, pairs = weigher.multiplier, zip(self._totals, raw, strict=True)
        if weigher.option in self._options:
            on = map(weigher.multiplier_on, hosts)
            return [
                total + here * ((weight - low) / span)
                for (total, weight), here in zip(pairs, on, strict=True)
            ]
        if multiplier == 1.0 and low == 0.0:
            return [total + weight / span for total, weight in pairs]
        return [total + multiplier * ((weight - low) / span) for total, weight in pairs]

    def best(self, count: int, shuffle: bool, rng: random.Random) -> list[int]:
        """Return the indexes of the *count* best hosts; see :meth:`Shortlist.best`."""
        totals = self._totals
        equal = 0
        if shuffle and totals:
            # All of equal weight are needed to draw among them.
            equal = totals.count(max(totals))
        # As sorted(reverse=True)[:count]: equals stay in order.
        order = heapq.nlargest(count + equal, range(len(totals)), key=totals.__getitem__)
        if not equal:
            return [self._indexes[position] for position in order]
        leaders = [(-totals[position], self._indexes[position]) for position in order]
        return _shuffled(leaders, rng)[:count]

    def weights(self, index: int) -> tuple[float, list[float], list[float]]:
        """Return the total, the raw and the normalised weights of one host."""
        position = bisect.bisect_left(self._indexes, index)
        raw = [column[position] for column in self._raw]
        shares = [
            scale[position]
            if isinstance(scale, list)
            else (weight - scale[0]) / (scale[1] - scale[0])
            if scale[0] != scale[1]
            else 0.0
            for weight, scale in zip(raw, self._scales, strict=True)
        ]
        return self._totals[position], raw, shares


def _column(weigher: Weigher, hosts: Sequence[HostState], demand: Demand) -> list[float]:
    """Return the raw weights of hosts.

    :raises ValueError: one is infinite or no number, so hosts would be in no order
    """
    raw = weigher.column(hosts, demand)
    if not math.isfinite(sum(raw)):
        raise ValueError(f"{weigher.name} weighs a host with what is no finite number")
    return raw


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
        self._columns = [weigher.column for weigher in weighers]
        self._bounds = [
            (
                place,
                -math.inf if weigher.minval is None else weigher.minval,
                math.inf if weigher.maxval is None else weigher.maxval,
            )
            for place, weigher in enumerate(weighers)
            if weigher.minval is not None or weigher.maxval is not None
        ]
        self._multipliers: dict[Any, tuple[float, ...]] = {}
        self._rows: dict[int, Row] = {index: self._row(hosts[index]) for index in indexes}
        # The hosts of each row, in order.
        self._alike: dict[Row, list[int]] = {}
        for index, row in self._rows.items():
            self._alike.setdefault(row, []).append(index)
        self._ends = [
            Ends(weigher.minval, weigher.maxval, functools.partial(self._weights, place))
            for place, weigher in enumerate(weighers)
        ]
        self._nothing: Row = (None,) * len(weighers)
        self._now: Scale | None = None
        self._rebase()

    # -- rows

    def _row(self, host: HostState) -> Row:
        alone, demand = (host,), self._demand
        raw = [column(alone, demand)[0] for column in self._columns]
        if not math.isfinite(sum(raw)):
            for weigher in self._weighers:
                _column(weigher, alone, demand)
        for place, least, greatest in self._bounds:
            if raw[place] < least:
                raw[place] = least
            if raw[place] > greatest:
                raw[place] = greatest
        multipliers = self._multipliers.get(host.joined)
        if multipliers is None:
            multipliers = tuple(weigher.multiplier_on(host) for weigher in self._weighers)
            self._multipliers[host.joined] = multipliers
        return (*raw, multipliers)

    def _weights(self, place: int) -> Iterable[float]:
        return [row[place] for row in self._rows.values()]

    def update(self, hosts: Sequence[HostState], index: int, survives: bool) -> None:
        """Weigh one host again, since it has changed, or forget it."""
        old = self._rows.pop(index, None)
        new = self._row(hosts[index]) if survives else None
        if new is not None:
            self._rows[index] = new
        if new == old:
            return
        self._now = None
        if old is not None:
            self._leave(index, old)
        if new is not None:
            self._enter(index, new)
        before, after = old or self._nothing, new or self._nothing
        for ends, was, now in zip(self._ends, before, after):  # noqa: B905 (multipliers follow)
            if was != now:
                ends.replace(was, now)

    def _leave(self, index: int, row: Row) -> None:
        alike = self._alike[row]
        if len(alike) > 1:
            del alike[bisect.bisect_left(alike, index)]
        else:
            del self._alike[row]
            entry, limit = (-self._base.total(row), row), self._front.limit
            if limit is None or entry <= limit:
                self._front.discard(entry)

    def _enter(self, index: int, row: Row) -> None:
        alike = self._alike.get(row)
        if alike is not None:
            bisect.insort(alike, index)
        else:
            self._alike[row] = [index]
            entry, limit = (-self._base.total(row), row), self._front.limit
            if limit is None or entry < limit:
                self._front.add(entry)

    # -- order

    def _scale(self) -> Scale:
        if self._now is None:
            # A single host is not weighed against anybody.
            alone = len(self._rows) < 2
            self._now = Scale(() if alone else tuple([ends.ends() for ends in self._ends]))
        return self._now

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


def _shuffled(leaders: Sequence[Place], rng: random.Random) -> list[int]:
    """Return the leaders' indexes, those that share the best weight in random order."""
    best = leaders[0][0]
    equal = [index for total, index in leaders if total == best]
    rest = [index for _total, index in leaders[len(equal) :]]
    rng.shuffle(equal)
    return equal + rest
