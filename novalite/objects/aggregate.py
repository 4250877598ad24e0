# SPDX-License-Identifier: Apache-2.0
"""A host aggregate as schedulers keep it: a name, perhaps a zone, and metadata.

Read from the database by whoever polls it, joined to the hosts, read by filters and weighers. It
is never sent. Pure data.
"""

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from novalite.objects.frozen import FrozenDict


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate; equal ones are equal to a cache too.

    ``zone`` is the availability zone that it gives its hosts, or None. ``metadata`` are its keys
    as the API shows them.
    """

    id: int
    uuid: str
    name: str
    zone: str | None = None
    metadata: Mapping[str, str] = FrozenDict()

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", FrozenDict(self.metadata))


class Joined:
    """What the aggregates of one host say together; most hosts of a cloud share a few of these.

    ``values`` are all values of each metadata key. Several values in one, separated by commas,
    count one by one.
    """

    __slots__ = ("aggregates", "least", "values", "zone")

    def __init__(self, aggregates: tuple[Aggregate, ...]):
        self.aggregates = aggregates
        self.zone = next((each.zone for each in aggregates if each.zone is not None), None)
        values: dict[str, set[str]] = {}
        for each in aggregates:
            for key, value in each.metadata.items():
                values.setdefault(key, set()).update(part.strip() for part in value.split(","))
        self.values = {key: frozenset(found) for key, found in values.items()}
        least = {key: _least(found) for key, found in self.values.items()}
        self.least: dict[str, float] = {key: n for key, n in least.items() if n is not None}

    def of(self, key: str) -> frozenset[str]:
        """Return all values of a key; empty if no aggregate has it."""
        return self.values.get(key, _NOTHING)


def _least(values: Iterable[str]) -> float | None:
    """Return the least of some values; None if one of them is not a number, as in Nova.

    Numbers beyond every use are brought to where sums of them are still finite.
    """
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    if not all(map(math.isfinite, numbers)):
        return None
    return max(-_GREATEST, min(*numbers, _GREATEST))


_NOTHING: frozenset[str] = frozenset()
_GREATEST = 1e15


@functools.lru_cache(maxsize=1024)
def joined(aggregates: tuple[Aggregate, ...]) -> Joined:
    """Return what these aggregates say together."""
    return Joined(aggregates)


NONE = joined(())
