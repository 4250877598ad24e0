# SPDX-License-Identifier: Apache-2.0
"""What a weigher is, and Nova's normalisation. Pure."""

from collections.abc import Sequence
from typing import ClassVar

from novalite.scheduler.demand import Demand
from novalite.scheduler.host_state import HostState


class Weigher:
    """Base of all weighers: more is better when the multiplier is positive.

    ``minval`` and ``maxval`` are fixed ends of the scale; an end that is None is the least or the
    greatest weight among the hosts. ``option`` holds the multiplier; metadata of that name on a
    host's aggregates replaces it there, the least of several. ``sign`` is -1 for a weigher whose
    positive multiplier favours little. ``reads`` is as for filters.
    """

    reads: ClassVar[tuple[str, ...]] = ()
    option: ClassVar[str] = ""
    sign: ClassVar[float] = 1.0
    minval: ClassVar[float | None] = None
    maxval: ClassVar[float | None] = None

    def __init__(self, multiplier: float = 1.0):
        self.multiplier = self.sign * multiplier

    @property
    def name(self) -> str:
        """The name in decisions."""
        return type(self).__name__

    def applies(self, demand: Demand) -> bool:
        """Tell whether weights could differ for this demand; False: all hosts weigh the same."""
        return True

    def multiplier_on(self, host: HostState) -> float:
        """Return the multiplier in force on one host."""
        found = host.joined.least.get(self.option)
        return self.multiplier if found is None else self.sign * found

    def weighted(self, hosts: Sequence[HostState], shares: list[float]) -> list[float]:
        """Return the normalised weights times the multiplier in force on each host."""
        multiplier, option = self.multiplier, self.option
        if any(option in joined.least for joined in {host.joined for host in hosts}):
            return [
                share * self.multiplier_on(host) for share, host in zip(shares, hosts, strict=True)
            ]
        return shares if multiplier == 1.0 else [multiplier * share for share in shares]

    def weigh(self, host: HostState, demand: Demand) -> float:
        """Return the raw weight of one host."""
        raise NotImplementedError(f"{self.name} must define weigh()")

    def column(self, hosts: Sequence[HostState], demand: Demand) -> list[float]:
        """Return the raw weights of all hosts.

        A weigher that looks at one attribute may define this instead of :meth:`weigh`.
        """
        weigh = self.weigh
        return [weigh(host, demand) for host in hosts]

    def clamp(self, weights: list[float]) -> list[float]:
        """Return the weights with those beyond a fixed end of the scale moved to it."""
        low, high = self.minval, self.maxval
        if low is not None and weights and min(weights) < low:
            weights = [weight if weight > low else low for weight in weights]
        if high is not None and weights and max(weights) > high:
            weights = [weight if weight < high else high for weight in weights]
        return weights

    def normalise(self, weights: Sequence[float]) -> list[float]:
        """Return the weights as shares of the scale, 0 to 1; all 0 when they do not differ."""
        low = float(min(weights) if self.minval is None else self.minval)
        high = float(max(weights) if self.maxval is None else self.maxval)
        if low == high:
            return [0.0] * len(weights)
        span = high - low
        if low == 0.0:
            return [weight / span for weight in weights]
        return [(weight - low) / span for weight in weights]
