# SPDX-License-Identifier: Apache-2.0
"""The soft policies of server groups: near to or away from other members, if it can be. Pure."""

from collections.abc import Sequence
from typing import ClassVar

from novalite.objects.server_group import SOFT_AFFINITY, SOFT_ANTI_AFFINITY
from novalite.scheduler.demand import Demand
from novalite.scheduler.host_state import HostState
from novalite.scheduler.weights import base


class GroupWeigher(base.Weigher):
    """Counts the members of the request's server group on each host, if it has this policy."""

    policy: ClassVar[str]

    def applies(self, demand: Demand) -> bool:
        """Only a group that has a member on a host makes a difference."""
        group = demand.group
        return group is not None and group.policy == self.policy and bool(group.placed)

    def column(self, hosts: Sequence[HostState], demand: Demand) -> list[float]:
        """Return the raw weights of all hosts."""
        group = demand.group
        if group is None or group.policy != self.policy:
            return [0.0] * len(hosts)
        placed = group.placed
        return [float(placed.get(host.host, 0)) for host in hosts]


class ServerGroupSoftAffinityWeigher(GroupWeigher):
    """The more members the better."""

    option = "soft_affinity_weight_multiplier"
    policy = SOFT_AFFINITY


class ServerGroupSoftAntiAffinityWeigher(GroupWeigher):
    """The fewer members the better."""

    option = "soft_anti_affinity_weight_multiplier"
    policy = SOFT_ANTI_AFFINITY

    def column(self, hosts: Sequence[HostState], demand: Demand) -> list[float]:
        """Return the raw weights of all hosts."""
        return [-count for count in super().column(hosts, demand)]
