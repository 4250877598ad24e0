# SPDX-License-Identifier: Apache-2.0
"""The filters, and how a name in ``enabled_filters`` becomes one. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from novalite.scheduler import guard, loading
from novalite.scheduler.filters.affinity_filter import (
    DifferentHostFilter,
    SameHostFilter,
    ServerGroupAffinityFilter,
    ServerGroupAntiAffinityFilter,
    SimpleCIDRAffinityFilter,
)
from novalite.scheduler.filters.aggregate_instance_extra_specs import (
    AggregateInstanceExtraSpecsFilter,
)
from novalite.scheduler.filters.aggregate_isolation import (
    AggregateImagePropertiesIsolation,
    AggregateMultiTenancyIsolation,
)
from novalite.scheduler.filters.all_hosts_filter import AllHostsFilter
from novalite.scheduler.filters.availability_zone_filter import AvailabilityZoneFilter
from novalite.scheduler.filters.base import Filter
from novalite.scheduler.filters.compute_capabilities_filter import ComputeCapabilitiesFilter
from novalite.scheduler.filters.compute_filter import ComputeFilter
from novalite.scheduler.filters.core_filter import AggregateCoreFilter, CoreFilter
from novalite.scheduler.filters.disk_filter import AggregateDiskFilter, DiskFilter
from novalite.scheduler.filters.exact_filter import (
    ExactCoreFilter,
    ExactDiskFilter,
    ExactRamFilter,
)
from novalite.scheduler.filters.image_properties_filter import ImagePropertiesFilter
from novalite.scheduler.filters.isolated_hosts_filter import IsolatedHostsFilter
from novalite.scheduler.filters.most_filter import (
    AggregateIoOpsFilter,
    AggregateNumInstancesFilter,
    IoOpsFilter,
    NumInstancesFilter,
)
from novalite.scheduler.filters.ram_filter import AggregateRamFilter, RamFilter
from novalite.scheduler.filters.retry_filter import RetryFilter
from novalite.scheduler.filters.type_filter import (
    AggregateTypeAffinityFilter,
    TypeAffinityFilter,
)

_DEFAULT: tuple[type[Filter], ...] = (
    ComputeFilter,
    RetryFilter,
    AvailabilityZoneFilter,
    RamFilter,
    DiskFilter,
    CoreFilter,
    ComputeCapabilitiesFilter,
    ImagePropertiesFilter,
    ServerGroupAntiAffinityFilter,
    ServerGroupAffinityFilter,
)
_OTHERS: tuple[type[Filter], ...] = (
    AggregateCoreFilter,
    AggregateDiskFilter,
    AggregateImagePropertiesIsolation,
    AggregateInstanceExtraSpecsFilter,
    AggregateIoOpsFilter,
    AggregateMultiTenancyIsolation,
    AggregateNumInstancesFilter,
    AggregateRamFilter,
    AggregateTypeAffinityFilter,
    AllHostsFilter,
    DifferentHostFilter,
    ExactCoreFilter,
    ExactDiskFilter,
    ExactRamFilter,
    IoOpsFilter,
    IsolatedHostsFilter,
    NumInstancesFilter,
    SameHostFilter,
    SimpleCIDRAffinityFilter,
    TypeAffinityFilter,
)
# Every filter of our own by its name.
FILTERS: dict[str, type[Filter]] = {made.__name__: made for made in (*_DEFAULT, *_OTHERS)}
# The default of enabled_filters, in this order.
DEFAULT = tuple(made.__name__ for made in _DEFAULT)
# Filters of Nova's that are left out on purpose, and why.
LEFT_OUT = {
    "JsonFilter": "users would write filters; use the hints and extra specs",
    "MetricsFilter": "no compute reports metrics",
    "NUMATopologyFilter": "guests have no NUMA topology",
    "PciPassthroughFilter": "there is no PCI passthrough",
    "TrustedFilter": "it needs an attestation service that is no more",
}
ALL = ("novalite.scheduler.filters.all_filters", "nova.scheduler.filters.all_filters")
_LOADER = loading.Loader(
    kind="filter",
    base=Filter,  # type: ignore[type-abstract]
    ours=FILTERS,
    left_out=LEFT_OUT,
    everything=ALL,
    checks=guard.FILTER,
)


def load(
    names: Sequence[str],
    options: Mapping[str, Any] | None = None,
    available: Sequence[str] = ALL[:1],
) -> list[Filter]:
    """Return the filters of these names in their order; one that stands there twice counts once.

    :param names: class names, or ``module:Class`` or ``module.Class`` for a filter of one's own
    :param options: values of the options that filters declare
    :param available: paths of classes that may be named without their module
    :raises exception.ConfigurationError: naming every name that is wrong and the valid ones
    """
    values = options or {}
    return [
        _LOADER.make(made, {name: values[name] for name in made.options if name in values})
        for made in _LOADER.classes(names, available)
    ]
