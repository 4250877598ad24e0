# SPDX-License-Identifier: Apache-2.0
"""RamFilter and AggregateRamFilter: memory, with overcommit by ``ram_allocation_ratio``. Pure."""

from collections.abc import Sequence

from novalite.objects import reason
from novalite.objects.capacity import Resource
from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.filters.aggregate_ratio import AggregateRatioFilter
from novalite.scheduler.host_state import HostState

_CODES = reason.TOO_LITTLE[Resource.MEMORY]


class RamFilter(base.Filter):
    """Passes hosts with enough usable memory."""

    resource = Resource.MEMORY

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None, ``not_enough_memory`` or ``larger_than_host_memory``."""
        if host.largest_memory_mb >= demand.memory_mb:
            return None
        return reason.shortage(_CODES, demand.memory_mb, host.memory_sums)

    def refusals(self, hosts: Sequence[HostState], demand: Demand) -> list[Reason | None]:
        """Return what :meth:`examine` says of each of many hosts."""
        codes, wanted, shortage = _CODES, demand.memory_mb, reason.shortage
        return [
            None if host.largest_memory_mb >= wanted else shortage(codes, wanted, host.memory_sums)
            for host in hosts
        ]


class AggregateRamFilter(AggregateRatioFilter):
    """Passes hosts with enough memory under the ratio of their aggregates."""

    resource = Resource.MEMORY
