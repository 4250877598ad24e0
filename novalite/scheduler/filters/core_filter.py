# SPDX-License-Identifier: Apache-2.0
"""CoreFilter and AggregateCoreFilter: vcpus, with overcommit by ``cpu_allocation_ratio``. Pure."""

from collections.abc import Sequence

from novalite.objects import reason
from novalite.objects.capacity import Resource
from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.filters.aggregate_ratio import AggregateRatioFilter
from novalite.scheduler.host_state import HostState

_CODES = reason.TOO_LITTLE[Resource.VCPU]


class CoreFilter(base.Filter):
    """Passes hosts with enough usable vcpus, and hosts that tell no number of threads."""

    resource = Resource.VCPU

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None, ``not_enough_vcpu`` or ``larger_than_host_vcpu``."""
        if host.largest_vcpus >= demand.vcpus:
            return None
        return reason.shortage(_CODES, demand.vcpus, host.vcpu_sums)

    def refusals(self, hosts: Sequence[HostState], demand: Demand) -> list[Reason | None]:
        """Return what :meth:`examine` says of each of many hosts."""
        codes, wanted, shortage = _CODES, demand.vcpus, reason.shortage
        return [
            None if host.largest_vcpus >= wanted else shortage(codes, wanted, host.vcpu_sums)
            for host in hosts
        ]


class AggregateCoreFilter(AggregateRatioFilter):
    """Passes hosts with enough vcpus under the ratio of their aggregates."""

    resource = Resource.VCPU
