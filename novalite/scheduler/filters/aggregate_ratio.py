# SPDX-License-Identifier: Apache-2.0
"""What AggregateRamFilter, AggregateDiskFilter and AggregateCoreFilter share. Pure.

Metadata of the ratio's name on the host's aggregates replaces the host's own ratio; the least of
several counts. Without it, or if a value is not a number above 0, the host's own ratio stays.
"""

from typing import ClassVar

from novalite.objects import capacity, reason
from novalite.objects.capacity import Resource, Room
from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState

_OF_AGGREGATE = "the ratio is that of an aggregate"


class AggregateRatioFilter(base.Filter):
    """Passes hosts with enough of one resource under the ratio of their aggregates."""

    resource: ClassVar[Resource]

    def room(self, host: HostState) -> Room:
        """Return what the host has under the ratio in force."""
        room, ratio = host.room(self.resource), self._ratio_of_aggregates(host)
        if ratio is None or room.limit is None:
            return room
        return room._replace(limit=capacity.limit(room.total, ratio))

    def _ratio_of_aggregates(self, host: HostState) -> float | None:
        found = host.joined.least.get(capacity.RATIO_OPTIONS[self.resource], 0.0)
        return found if found > 0 else None

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None, ``not_enough_...`` or ``larger_than_host_...``."""
        room, wanted = self.room(host), demand.amount(self.resource)
        if room.fits(wanted):
            return None
        numbers = reason.sums_of(host.picture, room)
        refusal = reason.shortage(reason.TOO_LITTLE[self.resource], wanted, numbers)
        own = self._ratio_of_aggregates(host) is None
        return refusal if own else refusal._replace(detail=_OF_AGGREGATE)
