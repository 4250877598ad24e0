# SPDX-License-Identifier: Apache-2.0
"""What a filter is.

Write one by deriving from :class:`Filter` and answer :meth:`Filter.examine`; name it in
``enabled_filters`` as ``module:Class``. A filter must be pure: the same host and the same demand
always give the same answer, without clock, database, bus or options.
"""

import abc
from typing import ClassVar

from novalite.objects.capacity import Resource
from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.host_state import HostState


class Filter(abc.ABC):
    """Base of all filters.

    ``reads`` are fields of the RequestSpec that the filter wants to see as attributes of the
    demand besides those it has anyway. ``resource`` is the resource whose limit goes with a
    selection while this filter is enabled.
    """

    reads: ClassVar[tuple[str, ...]] = ()
    resource: ClassVar[Resource | None] = None

    @property
    def name(self) -> str:
        """The name in decisions and log lines."""
        return type(self).__name__

    def applies(self, demand: Demand) -> bool:
        """Tell whether the filter could refuse any host for this demand; False skips it."""
        return True

    @abc.abstractmethod
    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None if the host may be taken, else why not."""
