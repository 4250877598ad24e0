# SPDX-License-Identifier: Apache-2.0
"""The stand-in for all filters when the request names its host. Pure.

It is not in the registry: nobody enables it. With it a forced request goes the same way as any
other, and its decision accounts for every host too.
"""

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState

_OTHER = Reason("not_forced_host")
_DOWN = Reason("host_down")
_TRIED = Reason("already_tried")


class ForcedHost(base.Filter):
    """Passes the named host while it is up, even if it is disabled or full; but only once.

    Host names are compared without regard to case, node names exactly.
    """

    def __init__(self, host: str | None, node: str | None):
        self._host = None if host is None else host.lower()
        self._node = node

    @property
    def name(self) -> str:
        """Nova's word for it."""
        return "force_hosts"

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None, ``not_forced_host``, ``already_tried`` or ``host_down``."""
        if self._host is not None and host.host.lower() != self._host:
            return _OTHER
        if self._node is not None and host.node != self._node:
            return _OTHER
        if host.host in demand.ignore_hosts:
            return _TRIED
        return None if host.up else _DOWN
