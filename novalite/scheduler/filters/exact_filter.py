# SPDX-License-Identifier: Apache-2.0
"""ExactRamFilter, ExactDiskFilter and ExactCoreFilter: the server takes all that is free. Pure.

For hosts that are given away whole. No ratio counts: the limit is what the host has.
"""

from typing import ClassVar

from novalite.objects.capacity import Resource, Room
from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState


class ExactFilter(base.Filter):
    """Passes hosts whose free amount of one resource is what the server needs."""

    resource: ClassVar[Resource]

    def room(self, host: HostState) -> Room:
        """Return what the host has without overcommit."""
        room = host.room(self.resource)
        return room._replace(limit=room.total)

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``not_exact_...`` with what is free."""
        room, wanted = host.room(self.resource), demand.amount(self.resource)
        free = room.total - room.used
        if wanted == free:
            return None
        reserved = host.reserved(self.resource)
        code = f"not_exact_{self.resource.value}"
        return Reason(code, wanted, free, room.total, room.total, 1.0, room.used, reserved)


class ExactRamFilter(ExactFilter):
    """Passes hosts with exactly so much free memory."""

    resource = Resource.MEMORY


class ExactDiskFilter(ExactFilter):
    """Passes hosts with exactly so much free disk, root, ephemeral and swap together."""

    resource = Resource.DISK


class ExactCoreFilter(ExactFilter):
    """Passes hosts with exactly so many free vcpus."""

    resource = Resource.VCPU
