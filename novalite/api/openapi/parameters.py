# SPDX-License-Identifier: Apache-2.0
"""The parameters of every URL: those in the path by name, those in the query by route.

Called by :mod:`novalite.api.openapi.document`. The handlers read the query by hand; a test compares
the tables here with the names that the handlers take at each microversion.
"""

from collections.abc import Iterator
from typing import Any

from novalite.api import microversion
from novalite.api.schemas import common
from novalite.db import flavors, instance_queries

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_NAME: Json = {"type": "string", "maxLength": 255}
_COUNT: Json = {"type": "integer", "minimum": 0}
_NUMBER: Json = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
_TIME: Json = {"type": "string", "format": "date-time"}
_DIRECTIONS: Json = {"type": "array", "items": {"type": "string", "enum": ["asc", "desc"]}}


def _keys(known: Any) -> Json:
    return {"type": "array", "items": {"type": "string", "enum": sorted(known)}}


def _always(schema: Json) -> microversion.Ranges:
    return microversion.Ranges((1, schema))


_IDS = microversion.Ranges((1, _NUMBER), (53, common.UUID))
_PATH: dict[str, microversion.Ranges] = {
    "server_id": _always(common.UUID),
    "network": _always(_TEXT),
    "key": _always(_NAME),
    "tag": _always(common.TAG),
    "request_id": _always(_TEXT),
    "flavor_id": _always(_NAME),
    "service_id": _IDS,
    "hypervisor_id": _IDS,
    "aggregate_id": _always(_NUMBER),
    "keypair_name": _always(_NAME),
    "volume_id": _always(_TEXT),
    "server_group_id": _always(common.UUID),
    "tenant_id": _always(_NAME),
    "quota_class": _always(_NAME),
}
# Where a name in braces means something else than in all other URLs.
_PATH_OF: dict[str, microversion.Ranges] = {
    "/v2.1/os-hypervisors/{hypervisor_id}/search": _always(_TEXT),
    "/v2.1/os-hypervisors/{hypervisor_id}/servers": _always(_TEXT),
}

# Route -> name -> (since which minor version, schema).
_Query = dict[str, tuple[int, Json]]


def _paged(since: int) -> _Query:
    return {"limit": (since, _COUNT), "marker": (since, _TEXT)}


def _user(since: int) -> _Query:
    return {"user_id": (since, _NAME)}


def _each(schema: Json, *names: str, since: int = 1) -> _Query:
    return {name: (since, schema) for name in names}


_SERVERS: _Query = {
    **_each(_TEXT, "name", "status", "image", "flavor", "ip", "ip6", "reservation_id"),
    **_each(_TEXT, "tags", "tags-any", "not-tags", "not-tags-any", since=26),
    **_each(_TIME, "changes-since"),
    **_each(_TIME, "changes-before", since=66),
    **_each(common.boolean(), "locked", since=73),
    **_each(common.boolean(), "all_tenants", "deleted", "soft_deleted"),
    **_each(common.boolean(), "config_drive", "auto_disk_config"),
    **_each(_TEXT, "project_id", "tenant_id", "user_id", "uuid", "host", "node", "hostname"),
    **_each(_TEXT, "vm_state", "task_state", "key_name", "availability_zone", "locked_by"),
    **_each(_TEXT, "display_name", "display_description", "description", "image_ref"),
    **_each(_TEXT, "root_device_name", "access_ip_v4", "access_ip_v6", "kernel_id", "ramdisk_id"),
    **_each(_TEXT, "progress"),
    **_each(_COUNT, "power_state", "launch_index"),
    **_each(_TIME, "created_at", "launched_at", "terminated_at"),
    **_each(_keys(instance_queries.SORT), "sort_key"),
    **_each(_DIRECTIONS, "sort_dir"),
    **_paged(1),
}
_FLAVORS: _Query = {
    **_each(_COUNT, "minRam", "minDisk"),
    **_each(_TEXT, "is_public"),
    **_each(_keys(flavors.SORT), "sort_key"),
    **_each(_DIRECTIONS, "sort_dir"),
    **_paged(1),
}
_HYPERVISORS: _Query = {
    **_paged(33),
    **_each(common.boolean(), "with_servers", since=53),
    **_each(_TEXT, "hypervisor_hostname_pattern", since=53),
}
_USAGE: _Query = {**_each(_TEXT, "start", "end"), **_paged(40)}
_ACTIONS: _Query = {
    **_paged(58),
    **_each(_TIME, "changes-since", since=58),
    **_each(_TIME, "changes-before", since=66),
}
_QUERY: dict[tuple[str, str], _Query] = {
    ("GET", "/v2.1/servers"): _SERVERS,
    ("GET", "/v2.1/servers/detail"): _SERVERS,
    ("GET", "/v2.1/servers/{server_id}/os-instance-actions"): _ACTIONS,
    ("GET", "/v2.1/servers/{server_id}/why-not"): _each(_TEXT, "host"),
    ("GET", "/v2.1/flavors"): _FLAVORS,
    ("GET", "/v2.1/flavors/detail"): _FLAVORS,
    ("GET", "/v2.1/os-services"): _each(_TEXT, "host", "binary"),
    ("GET", "/v2.1/os-hypervisors"): _HYPERVISORS,
    ("GET", "/v2.1/os-hypervisors/detail"): _HYPERVISORS,
    ("GET", "/v2.1/os-hypervisors/{hypervisor_id}"): _each(
        common.boolean(), "with_servers", since=53
    ),
    ("GET", "/v2.1/os-keypairs"): {**_user(10), **_paged(35)},
    ("GET", "/v2.1/os-keypairs/{keypair_name}"): _user(10),
    ("DELETE", "/v2.1/os-keypairs/{keypair_name}"): _user(10),
    ("GET", "/v2.1/os-server-groups"): _each(_COUNT, "limit", "offset")
    | _each(_TEXT, "all_projects"),
    ("GET", "/v2.1/os-simple-tenant-usage"): {**_USAGE, **_each(_TEXT, "detailed")},
    ("GET", "/v2.1/os-simple-tenant-usage/{tenant_id}"): _USAGE,
    ("GET", "/v2.1/limits"): _each(_TEXT, "reserved", "tenant_id"),
    ("GET", "/v2.1/os-quota-sets/{tenant_id}"): _user(1),
    ("PUT", "/v2.1/os-quota-sets/{tenant_id}"): _user(1),
    ("DELETE", "/v2.1/os-quota-sets/{tenant_id}"): _user(1),
    ("GET", "/v2.1/os-quota-sets/{tenant_id}/detail"): _user(1),
}


def of(method: str, url: str, names: list[str], version: int) -> Iterator[Json]:
    """Yield the parameters of a route; *names* are those in braces.

    :raises KeyError: a name in braces is not in the table
    """
    for name in names:
        found = _PATH_OF.get(url) or _PATH[name]
        yield {"name": name, "in": "path", "required": True, "schema": found.at(version)}
    for name, (since, schema) in sorted(_QUERY.get((method, url), {}).items()):
        if since <= version:
            yield {"name": name, "in": "query", "schema": schema}
