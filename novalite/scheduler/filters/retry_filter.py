# SPDX-License-Identifier: Apache-2.0
"""RetryFilter: not again to a host where this server really failed. Pure."""

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState

_TRIED = Reason("already_tried")


class RetryFilter(base.Filter):
    """Passes hosts that the request does not list as failed."""

    def applies(self, demand: Demand) -> bool:
        """Only a build that has failed somewhere has something to avoid."""
        return bool(demand.ignore_hosts)

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``already_tried``."""
        return _TRIED if host.host in demand.ignore_hosts else None
