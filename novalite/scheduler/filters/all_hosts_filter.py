# SPDX-License-Identifier: Apache-2.0
"""AllHostsFilter: every host passes. Pure."""

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState


class AllHostsFilter(base.Filter):
    """Refuses nothing; for a list of filters that must not be empty."""

    def applies(self, demand: Demand) -> bool:
        """Never."""
        return False

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None."""
        return None
