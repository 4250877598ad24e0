# SPDX-License-Identifier: Apache-2.0
"""The hosts of the running cloud, for a what-if: asked of its Compute API, as they are now.

Totals, use and state come from os-hypervisors, zones and metadata from os-aggregates, and the
ratios and reservations that each host has from novalite/capacity. A cloud that does not answer the
last is taken to have what the old files say. Nothing in the cloud changes.
"""

from collections.abc import Iterator
from typing import Any

from novalite.advisor.cloud import CloudError, Compute
from novalite.advisor.whatif.fleet import Host
from novalite.advisor.whatif.settings import RATIOS, RESERVED, Side
from novalite.objects import capacity
from novalite.objects.aggregate import Aggregate

Json = dict[str, Any]
_RESOURCES = {
    "memory": ("ram_allocation_ratio", "reserved_host_memory_mb", 1),
    # The reservation of disk is told in GB, the option is in MB.
    "disk": ("disk_allocation_ratio", "reserved_host_disk_mb", 1024),
    "vcpu": ("cpu_allocation_ratio", "reserved_host_cpus", 1),
}


def hosts(compute: Compute, old: Side) -> tuple[list[Host], list[str]]:
    """Return the hosts, and what to say about how they were found.

    :raises CloudError: the cloud does not answer, or the user may not ask
    """
    notes = []
    own: dict[str, dict[str, float]] = {}
    try:
        own = _own(compute)
    except CloudError as error:
        notes.append(f"ratios and reservations of the hosts are those of the old files: {error}")
    aggregates = _aggregates(compute.get("/os-aggregates")["aggregates"])
    found = [
        _host(each, own.get(each["hypervisor_hostname"], {}), aggregates, old)
        for each in _hypervisors(compute)
    ]
    if not found:
        raise CloudError("the cloud has no hosts")
    return found, notes


def _hypervisors(compute: Compute) -> Iterator[Json]:
    path: str | None = "/os-hypervisors/detail"
    while path is not None:
        body = compute.get(path)
        yield from body["hypervisors"]
        following = [link["href"] for link in body.get("hypervisors_links", [])]
        path = (
            "/os-hypervisors" + following[0].partition("/os-hypervisors")[2] if following else None
        )


def _aggregates(found: list[Json]) -> list[tuple[Aggregate, frozenset[str]]]:
    made = []
    for each in found:
        metadata = {k: str(v) for k, v in each["metadata"].items()}
        aggregate = Aggregate(
            each["id"], each["uuid"], each["name"], each["availability_zone"], metadata
        )
        made.append((aggregate, frozenset(each["hosts"])))
    return made


def _own(compute: Compute) -> dict[str, dict[str, float]]:
    """Return each node's own ratios and reservations, in the units of the options."""
    flavors = compute.get("/flavors?limit=1")["flavors"]
    if not flavors:
        raise CloudError("there is no flavor to ask with")
    body = compute.capacity(flavors[0]["id"], {})
    own: dict[str, dict[str, float]] = {}
    for host in body["capacity"]["hosts"]:
        options = own.setdefault(host["node"], {})
        for resource in host["resources"]:
            ratio, reserved, unit = _RESOURCES[resource["resource"]]
            if resource["ratio"] is not None:
                options[ratio] = float(resource["ratio"])
            if resource["reserved"] is not None:
                options[reserved] = float(resource["reserved"]) * unit
    return own


def _host(
    each: Json,
    own: dict[str, float],
    aggregates: list[tuple[Aggregate, frozenset[str]]],
    old: Side,
) -> Host:
    host = each["service"]["host"]
    options = {name: old.values[f"[DEFAULT] {name}"] for name in (*RATIOS, *RESERVED)} | own
    return Host(
        name=host,
        node=each["hypervisor_hostname"],
        memory_mb=each["memory_mb"],
        vcpus=each["vcpus"],
        local_gb=each["local_gb"],
        memory_mb_used=each["memory_mb_used"] - int(options["reserved_host_memory_mb"]),
        vcpus_used=each["vcpus_used"] - int(options["reserved_host_cpus"]),
        local_gb_used=each["local_gb_used"]
        - capacity.whole_gb(int(options["reserved_host_disk_mb"])),
        servers=each["running_vms"],
        disk_available_least=each["disk_available_least"],
        aggregates=tuple(made for made, members in aggregates if host in members),
        up=each["state"] == "up",
        disabled=each["status"] == "disabled",
        own=options,
    )
