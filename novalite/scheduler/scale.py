# SPDX-License-Identifier: Apache-2.0
"""The scales on which hosts are weighed against each other, while weights come and go.

Kept rankings use them. The arithmetic is that of :meth:`Weigher.normalise`, to the last bit. Pure.
"""

from collections.abc import Callable, Iterable
from typing import Any

from novalite.scheduler.front import Front

# The raw weights of a host, then its multipliers; hosts with equal rows weigh the same.
Row = tuple[Any, ...]
# Weights held in order at each end of a scale.
_FRONT = 64


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
        most, rounding = 0.0, 1.0
        for (low, high), (was_low, was_high), each in zip(
            now._ends, self._ends, zip(*multipliers, strict=True), strict=True
        ):
            span = was_high - was_low
            # The shares that the present ends of the scale had on the former one.
            before = ((low - was_low) / span, (high - was_low) / span) if span else (0.0, 0.0)
            top = 1.0 if low != high else 0.0
            moves = (0.0 - before[0], top - before[1])
            most += max([multiplier * move for multiplier in each for move in moves])
            rounding += (1.0 + max(map(abs, before))) * max(map(abs, each))
        return most + 1e-12 * rounding


class Ends:
    """The ends of one weigher's scale while weights come and go.

    :param least: the fixed lower end, or None for the least weight; *greatest* likewise
    :param values: returns all weights as they are
    """

    __slots__ = ("_fronts", "_greatest", "_highs", "_least", "_lows", "_values")

    def __init__(
        self,
        least: float | None,
        greatest: float | None,
        values: Callable[[], Iterable[float]],
    ):
        self._least, self._greatest = least, greatest
        self._values = values
        # Equal weights may be in a front and beyond it: it does not matter which of them goes.
        self._lows = None if least is not None else Front(_FRONT, values())
        self._highs = None if greatest is not None else Front(_FRONT, self._negated())
        fronts = ((self._lows, 1), (self._highs, -1))
        self._fronts = [(front, sign) for front, sign in fronts if front is not None]

    def _negated(self) -> Iterable[float]:
        return (-value for value in self._values())

    def replace(self, old: float | None, new: float | None) -> None:
        """Know of one weight less and one more; None is no weight."""
        for front, sign in self._fronts:
            # Most weights are far from the ends: what add() and discard() ask first, asked here.
            limit = front.limit
            if new is not None and (limit is None or sign * new < limit):
                front.add(sign * new)
            if old is not None and (limit is None or sign * old <= limit):
                front.discard(sign * old)

    def ends(self) -> tuple[float, float]:
        """Return both ends of the scale, of which at least one weight must be."""
        lows, highs = self._lows, self._highs
        if lows is not None and not len(lows):
            lows.fill(self._values())
        if highs is not None and not len(highs):
            highs.fill(self._negated())
        low = self._least if lows is None else lows.first
        high = self._greatest if highs is None else -highs.first
        return float(low or 0.0), float(high or 0.0)
