# SPDX-License-Identifier: Apache-2.0
"""The filter before all others when the request names where it wants to be. Pure.

It is not in the registry: nobody enables it. Unlike a forced host, a requested one has to pass
all the enabled filters too.
"""

from novalite.objects.decision import REQUESTED
from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState

_OTHER = Reason("not_requested_host")


class RequestedHost(base.Filter):
    """Passes the named host, the named node, or the named node of the named host.

    Host names are compared without regard to case, node names exactly.
    """

    def __init__(self, host: str | None, node: str | None):
        self._host = None if host is None else host.lower()
        self._node = node

    @property
    def name(self) -> str:
        """Nova's word for it."""
        return REQUESTED

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``not_requested_host``."""
        if self._host is not None and host.host.lower() != self._host:
            return _OTHER
        return _OTHER if self._node is not None and host.node != self._node else None
