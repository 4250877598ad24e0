# SPDX-License-Identifier: Apache-2.0
"""What a filter is.

Write one by deriving from :class:`Filter` and answer :meth:`Filter.examine`; name it in
``enabled_filters`` as ``module:Class``. A filter must be pure: the same host and the same demand
always give the same answer, without clock, database, bus or options.
"""

import abc
from collections.abc import Iterable, Sequence
from typing import ClassVar

from novalite.objects.capacity import Resource, Room
from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.host_state import HostState

# Names that the detail of a reason shows.
_SHOWN = 5


class Filter(abc.ABC):
    """Base of all filters.

    ``reads`` are fields of the RequestSpec that the filter wants to see as attributes of the
    demand besides those it has anyway. ``resource`` is the resource whose limit goes with a
    selection while this filter is enabled. ``options`` are the options of [filter_scheduler] whose
    values the filter gets as keyword arguments when it is made.
    """

    reads: ClassVar[tuple[str, ...]] = ()
    resource: ClassVar[Resource | None] = None
    options: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """The name in decisions and log lines."""
        return type(self).__name__

    def applies(self, demand: Demand) -> bool:
        """Tell whether the filter could refuse any host for this demand; False skips it."""
        return True

    def room(self, host: HostState) -> Room | None:
        """Return what the host has of the filter's resource, under the limit it keeps to."""
        return None if self.resource is None else host.room(self.resource)

    def refusals(self, hosts: Sequence[HostState], demand: Demand) -> list[Reason | None]:
        """Return what :meth:`examine` says of each of many hosts.

        A filter that compares one attribute may define this too, since one call for all hosts is
        quicker than one for each.
        """
        examine = self.examine
        return [examine(host, demand) for host in hosts]

    @abc.abstractmethod
    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None if the host may be taken, else why not."""


def listed(names: Iterable[str]) -> str:
    """Return names for a reason's detail, in order; of many, the first ones."""
    ordered = sorted(names)
    more = len(ordered) - _SHOWN
    return ", ".join(ordered[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
