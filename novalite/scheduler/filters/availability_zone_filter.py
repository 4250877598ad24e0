# SPDX-License-Identifier: Apache-2.0
"""AvailabilityZoneFilter: the host must be in the zone that was asked for. Pure."""

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState


class AvailabilityZoneFilter(base.Filter):
    """Passes hosts of the wanted zone, and all hosts when none is wanted."""

    def applies(self, demand: Demand) -> bool:
        """Only a request that names a zone can be refused."""
        return demand.availability_zone is not None

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``wrong_zone`` with the zone of the host."""
        if host.zone == demand.availability_zone or demand.availability_zone is None:
            return None
        return Reason("wrong_zone", detail=host.zone)
