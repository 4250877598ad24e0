# SPDX-License-Identifier: Apache-2.0
"""The scales on which hosts are weighed against each other, while weights come and go.

Kept rankings use them. The arithmetic is that of :meth:`Weigher.normalise`, to the last bit. Pure.
"""

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Any

# The raw weights of a host, then its multipliers; hosts with equal rows weigh the same.
Row = tuple[Any, ...]


class Scale:
    """The ends of all weighers' scales at one moment; without any, all shares are 0."""

    __slots__ = ("_ends", "_spans")

    def __init__(self, ends: tuple[tuple[float, float], ...]):
        self._ends = ends
        # Weights that do not differ have no share.
        self._spans = [
            (place, low, high - low) for place, (low, high) in enumerate(ends) if low != high
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scale) and other._ends == self._ends

    def __hash__(self) -> int:
        return hash(self._ends)

    def total(self, row: Row) -> float:
        """Return the sum of the shares times the multipliers."""
        total, multipliers = 0.0, row[-1]
        for place, low, span in self._spans:
            total += multipliers[place] * ((row[place] - low) / span)
        return total

    def shares(self, row: Row) -> list[float]:
        """Return the normalised weights."""
        shares = [0.0] * (len(row) - 1)
        for place, low, span in self._spans:
            shares[place] = (row[place] - low) / span
        return shares

    def drift(self, now: "Scale", multipliers: Iterable[tuple[float, ...]]) -> float:
        """Return by how much a total can be greater on the scale *now* than on this one.

        What a weigher adds is linear in the raw weight on both, so their difference is greatest
        at an end of the scale. The little more is for the rounding of floats.
        """
        if len(now._ends) != len(self._ends):
            return float("inf")
        lows = (*[low for low, _high in now._ends], ())
        highs = (*[high for _low, high in now._ends], ())
        most = rounding = 0.0
        before, after = (
            (self.shares(lows), self.shares(highs)),
            (now.shares(lows), now.shares(highs)),
        )
        for place, each in enumerate(zip(*multipliers, strict=True)):
            moved = [after[end][place] - before[end][place] for end in (0, 1)]
            most += max(multiplier * move for multiplier in each for move in moved)
            size = 1.0 + max(abs(before[end][place]) for end in (0, 1))
            rounding += size * max(map(abs, each))
        return most + 1e-12 * (1.0 + rounding)


class Ends:
    """Least and greatest weight of one weigher while weights come and go."""

    __slots__ = ("_counts", "_greatest", "_highs", "_least", "_lows")

    def __init__(self, least: float | None, greatest: float | None, values: Iterable[float]):
        self._least, self._greatest = least, greatest
        self._counts = Counter(values)
        # Heaps that may also hold values that have gone.
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._fill()

    def _fill(self) -> None:
        if self._least is None:
            self._lows = list(self._counts)
            heapq.heapify(self._lows)
        if self._greatest is None:
            self._highs = [-value for value in self._counts]
            heapq.heapify(self._highs)

    def replace(self, old: float | None, new: float | None) -> None:
        """Count one weight less and one more."""
        if old == new:
            return
        counts = self._counts
        if new is not None:
            counts[new] += 1
            if counts[new] == 1:
                self._push(new)
        if old is not None:
            counts[old] -= 1
            if not counts[old]:
                del counts[old]

    def _push(self, value: float) -> None:
        if max(len(self._lows), len(self._highs)) > 2 * len(self._counts) + 100:
            self._fill()
            return
        if self._least is None:
            heapq.heappush(self._lows, value)
        if self._greatest is None:
            heapq.heappush(self._highs, -value)

    def low(self) -> float:
        """Return the lower end of the scale."""
        if self._least is not None:
            return float(self._least)
        while self._lows[0] not in self._counts:
            heapq.heappop(self._lows)
        return float(self._lows[0])

    def high(self) -> float:
        """Return the upper end of the scale."""
        if self._greatest is not None:
            return float(self._greatest)
        while -self._highs[0] not in self._counts:
            heapq.heappop(self._highs)
        return float(-self._highs[0])
