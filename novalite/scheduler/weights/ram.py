# SPDX-License-Identifier: Apache-2.0
"""RAMWeigher: free memory in MB; no ratio is applied. Pure."""

from collections.abc import Sequence

from novalite.scheduler.demand import Demand
from novalite.scheduler.host_state import HostState
from novalite.scheduler.weights import base


class RAMWeigher(base.Weigher):
    """A positive multiplier spreads servers over hosts, a negative one fills hosts up."""

    option = "ram_weight_multiplier"
    minval = 0

    def column(self, hosts: Sequence[HostState], demand: Demand) -> list[float]:
        """Return the raw weights of all hosts."""
        return [host.free_ram_mb for host in hosts]
