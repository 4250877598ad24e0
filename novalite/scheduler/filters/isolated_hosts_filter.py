# SPDX-License-Identifier: Apache-2.0
"""IsolatedHostsFilter: some images on some hosts and nowhere else. Pure."""

from collections.abc import Sequence

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState

_HOST = Reason("host_isolated")
_IMAGE = Reason("image_isolated")


class IsolatedHostsFilter(base.Filter):
    """Keeps isolated images on isolated hosts, and other images away from them if restricted.

    :param isolated_images: ids of images
    :param isolated_hosts: names of service hosts
    :param restrict_isolated_hosts_to_isolated_images: isolated hosts take isolated images only
    """

    reads = ("image_id",)
    options = (
        "isolated_images",
        "isolated_hosts",
        "restrict_isolated_hosts_to_isolated_images",
    )

    def __init__(
        self,
        isolated_images: Sequence[str] = (),
        isolated_hosts: Sequence[str] = (),
        restrict_isolated_hosts_to_isolated_images: bool = True,
    ):
        self._images = frozenset(isolated_images)
        self._hosts = frozenset(isolated_hosts)
        self._restrict = restrict_isolated_hosts_to_isolated_images

    def applies(self, demand: Demand) -> bool:
        """Only with something isolated can a host be refused."""
        return bool(self._images or self._hosts)

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None, ``host_isolated`` or ``image_isolated``."""
        host_isolated = host.host in self._hosts
        if demand.image_id in self._images:
            return None if host_isolated else _IMAGE
        return _HOST if host_isolated and self._restrict else None
