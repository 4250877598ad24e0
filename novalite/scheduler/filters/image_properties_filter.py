# SPDX-License-Identifier: Apache-2.0
"""ImagePropertiesFilter: the host must be able to run what the image is made for. Pure."""

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState


class ImagePropertiesFilter(base.Filter):
    """Compares architecture, hypervisor type and VM mode of the image with what a host supports.

    An image that asks for nothing runs anywhere; one that asks for something never runs on a host
    that does not say what it supports.
    """

    def applies(self, demand: Demand) -> bool:
        """Only an image that asks for something can be refused."""
        return demand.image is not None

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``image_not_supported`` with what was asked for."""
        wanted = demand.image
        if wanted is None or wanted in host.platforms:
            return None
        return Reason("image_not_supported", detail=" ".join(part or "any" for part in wanted))
