# SPDX-License-Identifier: Apache-2.0
"""TypeAffinityFilter and AggregateTypeAffinityFilter: flavors that keep to themselves. Pure."""

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState


class TypeAffinityFilter(base.Filter):
    """Passes hosts whose servers all have the same flavor as the request, and empty ones."""

    reads = ("flavorid",)

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``other_flavor_on_host`` with the flavors that are there."""
        others = host.flavorids.difference((demand.flavorid,))
        if not others:
            return None
        return Reason("other_flavor_on_host", detail=base.listed(others))


class AggregateTypeAffinityFilter(base.Filter):
    """Passes hosts whose aggregates name the flavor in ``instance_type``, or name none."""

    reads = ("flavor_name",)

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``aggregate_wants_flavor`` with the flavors that may run there."""
        names = host.joined.of("instance_type")
        if not names or demand.flavor_name in names:
            return None
        return Reason("aggregate_wants_flavor", detail=base.listed(names))
