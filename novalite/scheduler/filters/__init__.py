# SPDX-License-Identifier: Apache-2.0
"""The filters, and how a name in ``enabled_filters`` becomes one. Pure."""

import importlib
from collections.abc import Sequence

from novalite import exception
from novalite.scheduler.filters.availability_zone_filter import AvailabilityZoneFilter
from novalite.scheduler.filters.base import Filter
from novalite.scheduler.filters.compute_filter import ComputeFilter
from novalite.scheduler.filters.core_filter import CoreFilter
from novalite.scheduler.filters.disk_filter import DiskFilter
from novalite.scheduler.filters.image_properties_filter import ImagePropertiesFilter
from novalite.scheduler.filters.ram_filter import RamFilter
from novalite.scheduler.filters.retry_filter import RetryFilter

# Every filter of our own; the order is the default order of enabled_filters.
FILTERS: dict[str, type[Filter]] = {
    "ComputeFilter": ComputeFilter,
    "RetryFilter": RetryFilter,
    "AvailabilityZoneFilter": AvailabilityZoneFilter,
    "RamFilter": RamFilter,
    "DiskFilter": DiskFilter,
    "CoreFilter": CoreFilter,
    "ImagePropertiesFilter": ImagePropertiesFilter,
}


def load(names: Sequence[str]) -> list[Filter]:
    """Return the filters of these names in their order; ``module:Class`` is a filter of one's own.

    A name that stands there twice counts once.

    :raises exception.ConfigurationError: naming every name that is wrong and the valid ones
    """
    made, wrong = [], []
    for name in dict.fromkeys(names):
        try:
            made.append(_make(name))
        except (LookupError, ImportError, AttributeError, TypeError, ValueError) as error:
            wrong.append(f"{name} ({error})" if ":" in name else name)
    if wrong:
        raise exception.ConfigurationError(
            reason=f"unknown filters: {', '.join(wrong)}; valid: {', '.join(FILTERS)}, or "
            "module:Class for a filter of your own"
        )
    return made


def _make(name: str) -> Filter:
    if ":" not in name:
        return FILTERS[name]()
    module, _, class_name = name.partition(":")
    made = getattr(importlib.import_module(module), class_name)()
    if not isinstance(made, Filter):
        raise TypeError("it must derive from novalite.scheduler.filters.base.Filter")
    return made
