# SPDX-License-Identifier: Apache-2.0
"""How many more servers fit, as JSON; the words and sums are those of novalite/objects."""

from typing import Any

from novalite.objects import decision, verdict
from novalite.objects.flavor import Flavor
from novalite.objects.inquiry import CapacityReport, HostCapacity

Json = dict[str, Any]


def show(flavor: Flavor, report: CapacityReport) -> Json:
    """Return the body."""
    need = report.need
    return {
        "capacity": {
            "summary": verdict.how_many(report, flavor.name),
            "flavor": {
                "id": flavor.flavorid,
                "name": flavor.name,
                "memory_mb": need.memory_mb,
                "disk_gb": need.disk_gb,
                "vcpus": need.vcpus,
            },
            "total": report.total,
            "hosts": [_host(host) for host in report.hosts],
            "picture_age": report.picture_age,
        }
    }


def _host(host: HostCapacity) -> Json:
    resources = verdict.resources(host.room)
    return {
        "host": host.host,
        "node": host.node,
        "zone": host.zone,
        "picture": host.picture,
        "selected": host.selected,
        "count": host.count,
        "binds": [{"filter": name} | decision.reason_view(reason) for name, reason in host.binds],
        "binds_text": verdict.binding(host),
        "resources": [each | {"count": host.each.get(each["resource"])} for each in resources],
        "more": verdict.negative(host.room),
    }
