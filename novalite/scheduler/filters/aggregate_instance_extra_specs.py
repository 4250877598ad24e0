# SPDX-License-Identifier: Apache-2.0
"""AggregateInstanceExtraSpecsFilter: the flavor's extra specs against aggregates' metadata. Pure.

Extra specs of the scope ``aggregate_instance_extra_specs`` and those without any scope count.
"""

import functools

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base, extra_specs_ops
from novalite.scheduler.host_state import HostState

_SCOPE = "aggregate_instance_extra_specs"


class AggregateInstanceExtraSpecsFilter(base.Filter):
    """Passes hosts whose aggregates have, for every such extra spec, a value that meets it."""

    def applies(self, demand: Demand) -> bool:
        """Only a flavor that asks for something."""
        return bool(demand.extra_specs) and bool(_wanted(demand.extra_specs))

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``aggregate_lacks_extra_spec`` with what is asked for."""
        for key, wanted in _wanted(demand.extra_specs):
            values = host.joined.of(key)
            if not any(extra_specs_ops.match(value, wanted) for value in values):
                there = base.listed(values) or "not set"
                detail = f"{key} must be {wanted}, is {there}"
                return Reason("aggregate_lacks_extra_spec", detail=detail)
        return None


@functools.lru_cache(maxsize=1024)
def _wanted(extra_specs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    found = []
    for name, wanted in extra_specs:
        scope, colon, key = name.partition(":")
        if not colon:
            found.append((name, wanted))
        elif scope == _SCOPE:
            found.append((key, wanted))
    return tuple(found)
