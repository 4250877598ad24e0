# SPDX-License-Identifier: Apache-2.0
"""IoOpsWeigher, NumInstancesWeigher and BuildFailureWeigher: what is counted on a host. Pure."""

from collections.abc import Sequence

from novalite.scheduler.demand import Demand
from novalite.scheduler.host_state import HostState
from novalite.scheduler.weights import base


class IoOpsWeigher(base.Weigher):
    """Builds, resizes and snapshots going on; a negative multiplier favours quiet hosts."""

    option = "io_ops_weight_multiplier"

    def column(self, hosts: Sequence[HostState], demand: Demand) -> list[float]:
        """Return the raw weights of all hosts."""
        return [host.io_ops for host in hosts]


class NumInstancesWeigher(base.Weigher):
    """Servers on the host; a negative multiplier spreads, a positive one stacks."""

    option = "num_instances_weight_multiplier"

    def column(self, hosts: Sequence[HostState], demand: Demand) -> list[float]:
        """Return the raw weights of all hosts."""
        return [host.num_instances for host in hosts]


class BuildFailureWeigher(base.Weigher):
    """Builds that failed one after the other through the host's fault; a positive multiplier
    favours hosts without."""

    option = "build_failure_weight_multiplier"
    sign = -1.0

    def column(self, hosts: Sequence[HostState], demand: Demand) -> list[float]:
        """Return the raw weights of all hosts."""
        return [host.failed_builds for host in hosts]
