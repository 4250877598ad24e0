# SPDX-License-Identifier: Apache-2.0
"""DiskFilter and AggregateDiskFilter: local disk, with overcommit by ``disk_allocation_ratio``.

Pure."""

from collections.abc import Sequence

from novalite.objects import reason
from novalite.objects.capacity import Resource
from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.filters.aggregate_ratio import AggregateRatioFilter
from novalite.scheduler.host_state import HostState

_CODES = reason.TOO_LITTLE[Resource.DISK]


class DiskFilter(base.Filter):
    """Passes hosts with enough usable disk for root, ephemeral and swap."""

    resource = Resource.DISK

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None, ``not_enough_disk`` or ``larger_than_host_disk``."""
        if host.largest_disk_gb >= demand.disk_gb:
            return None
        return reason.shortage(_CODES, demand.disk_gb, host.disk_sums)

    def refusals(self, hosts: Sequence[HostState], demand: Demand) -> list[Reason | None]:
        """Return what :meth:`examine` says of each of many hosts."""
        codes, wanted, shortage = _CODES, demand.disk_gb, reason.shortage
        return [
            None if host.largest_disk_gb >= wanted else shortage(codes, wanted, host.disk_sums)
            for host in hosts
        ]


class AggregateDiskFilter(AggregateRatioFilter):
    """Passes hosts with enough local disk under the ratio of their aggregates."""

    resource = Resource.DISK
