# SPDX-License-Identifier: Apache-2.0
"""NumInstancesFilter, IoOpsFilter and their aggregate forms: not too many at once. Pure."""

import abc
from typing import ClassVar

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState

_OF_AGGREGATE = "the most is that of an aggregate"


class MostFilter(base.Filter):
    """Passes hosts on which fewer than the most are counted.

    :param most: as many may be there
    """

    code: ClassVar[str]

    def __init__(self, most: int):
        self._most = most

    @abc.abstractmethod
    def count(self, host: HostState) -> int:
        """Return how many there are."""

    def most_of_aggregates(self, host: HostState) -> float | None:
        """Return how many there may be by the host's aggregates; None: the option counts."""
        return None

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or the code with the numbers."""
        count, found = self.count(host), self.most_of_aggregates(host)
        most = self._most if found is None else found
        if count < most:
            return None
        detail = None if found is None else _OF_AGGREGATE
        return Reason(self.code, 1, most - count, most, most, None, count, 0, detail)


class NumInstancesFilter(MostFilter):
    """Passes hosts with fewer than ``max_instances_per_host`` servers."""

    code = "too_many_instances"
    options = ("max_instances_per_host",)

    def __init__(self, max_instances_per_host: int = 50):
        super().__init__(max_instances_per_host)

    def count(self, host: HostState) -> int:
        """Return the servers on the host."""
        return host.num_instances


class IoOpsFilter(MostFilter):
    """Passes hosts with fewer than ``max_io_ops_per_host`` builds, resizes and snapshots."""

    code = "too_many_io_ops"
    options = ("max_io_ops_per_host",)

    def __init__(self, max_io_ops_per_host: int = 8):
        super().__init__(max_io_ops_per_host)

    def count(self, host: HostState) -> int:
        """Return what is going on on the host."""
        return host.io_ops


class AggregateNumInstancesFilter(NumInstancesFilter):
    """As NumInstancesFilter, with the least ``max_instances_per_host`` of the aggregates."""

    def most_of_aggregates(self, host: HostState) -> float | None:
        """Return how many servers the aggregates allow."""
        return host.joined.least.get("max_instances_per_host")


class AggregateIoOpsFilter(IoOpsFilter):
    """As IoOpsFilter, with the least ``max_io_ops_per_host`` of the aggregates."""

    def most_of_aggregates(self, host: HostState) -> float | None:
        """Return how much the aggregates allow to go on."""
        return host.joined.least.get("max_io_ops_per_host")
