# SPDX-License-Identifier: Apache-2.0
"""Aggregates that are kept for some projects or some kinds of images. Pure."""

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState

_OTHER_PROJECT = Reason("aggregate_wants_project")


class AggregateMultiTenancyIsolation(base.Filter):
    """Passes hosts whose aggregates name the project in ``filter_tenant_id``, or name none."""

    reads = ("project_id",)

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``aggregate_wants_project``."""
        projects = host.joined.of("filter_tenant_id")
        if not projects or demand.project_id in projects:
            return None
        return _OTHER_PROJECT


class AggregateImagePropertiesIsolation(base.Filter):
    """Keeps images with a property away from hosts whose aggregates want another value of it.

    A property that the image does not have says nothing, nor does one that no aggregate names.

    :param aggregate_image_properties_isolation_namespace: only metadata that begins with it counts
    :param aggregate_image_properties_isolation_separator: stands between it and the rest
    """

    reads = ("image_properties",)
    options = (
        "aggregate_image_properties_isolation_namespace",
        "aggregate_image_properties_isolation_separator",
    )

    def __init__(
        self,
        aggregate_image_properties_isolation_namespace: str | None = None,
        aggregate_image_properties_isolation_separator: str = ".",
    ):
        namespace = aggregate_image_properties_isolation_namespace
        self._prefix = (
            namespace + aggregate_image_properties_isolation_separator if namespace else ""
        )

    def applies(self, demand: Demand) -> bool:
        """Only an image with properties."""
        return bool(demand.image_properties)

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``aggregate_wants_image`` with the property."""
        for key, values in host.joined.values.items():
            if not key.startswith(self._prefix):
                continue
            value = demand.image_properties.get(key)
            if value and str(value) not in values:
                detail = f"{key} must be {base.listed(values)}, is {value}"
                return Reason("aggregate_wants_image", detail=detail)
        return None
