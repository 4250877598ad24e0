# SPDX-License-Identifier: Apache-2.0
"""ComputeFilter: the compute service must be enabled and up. Pure."""

from collections.abc import Sequence

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState

_DOWN = Reason("host_down")
_FORCED_DOWN = Reason("host_down", detail="forced down")
_DISABLED = Reason("host_disabled")


class ComputeFilter(base.Filter):
    """Passes hosts whose service is enabled and has been heard from."""

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None, ``host_disabled`` or ``host_down``."""
        if host.up and not host.disabled:
            return None
        if host.disabled:
            return _DISABLED._replace(detail=host.disabled_reason or None)
        return _FORCED_DOWN if host.forced_down else _DOWN

    def refusals(self, hosts: Sequence[HostState], demand: Demand) -> list[Reason | None]:
        """Return what :meth:`examine` says of each of many hosts."""
        return [
            None if host.up and not host.disabled else self.examine(host, demand) for host in hosts
        ]
