# SPDX-License-Identifier: Apache-2.0
"""What an administrator gets and may send at each microversion, written down once more.

test_bodies.py plays it at every microversion at which anything changes, and just before.

An answer is a dict: the place of an object in it ("" is the whole, "servers[]" an item of a list)
-> steps (since which minor version, keys that came, keys that went).
"""

from typing import NamedTuple

Steps = tuple[tuple[int, str, str], ...]
Answer = dict[str, Steps]


class Row(NamedTuple):
    """One request that has an answer from *lowest* to *highest*, and else none (404, 400)."""

    method: str
    url: str
    answer: Answer
    lowest: int = 1
    highest: int = 79
    status: int = 200


def always(keys: str) -> Steps:
    return ((1, keys, ""),)


_BASIC = (
    "id name status tenant_id user_id metadata hostId image flavor created updated addresses "
    "accessIPv4 accessIPv6 links progress OS-DCF:diskConfig"
)
_FULL = (
    "OS-EXT-AZ:availability_zone config_drive key_name security_groups "
    "OS-SRV-USG:launched_at OS-SRV-USG:terminated_at OS-EXT-STS:task_state OS-EXT-STS:vm_state "
    "OS-EXT-STS:power_state os-extended-volumes:volumes_attached OS-EXT-SRV-ATTR:host "
    "OS-EXT-SRV-ATTR:instance_name OS-EXT-SRV-ATTR:hypervisor_hostname"
)
_ATTRIBUTES = (
    "OS-EXT-SRV-ATTR:hostname OS-EXT-SRV-ATTR:kernel_id OS-EXT-SRV-ATTR:launch_index "
    "OS-EXT-SRV-ATTR:ramdisk_id OS-EXT-SRV-ATTR:reservation_id OS-EXT-SRV-ATTR:root_device_name "
    "OS-EXT-SRV-ATTR:user_data"
)
_LISTED: Steps = (
    (1, f"{_BASIC} {_FULL}", ""),
    (3, _ATTRIBUTES, ""),
    (9, "locked", ""),
    (16, "host_status", ""),
    (19, "description", ""),
    (26, "tags", ""),
    (63, "trusted_image_certificates", ""),
    (73, "locked_reason", ""),
)
_ATTACHMENT: Steps = (
    (1, "id volumeId serverId device", ""),
    (70, "tag", ""),
    (79, "delete_on_termination", ""),
)
_SHOWN: Steps = (*_LISTED, (71, "server_groups", ""))
_UPDATED: Steps = (
    (1, _BASIC, ""),
    (9, "locked", ""),
    (19, "description", ""),
    (26, "tags", ""),
    (63, "trusted_image_certificates", ""),
    (71, "server_groups", ""),
    (73, "locked_reason", ""),
    (75, f"{_FULL} {_ATTRIBUTES} host_status", ""),
)
_SERVER_FLAVOR: Steps = (
    (1, "id links", ""),
    (47, "disk ephemeral extra_specs original_name ram swap vcpus", "id links"),
)


def _server(place: str, steps: Steps) -> Answer:
    return {
        place: steps,
        f"{place}.flavor": _SERVER_FLAVOR,
        f"{place}.image": always("id links"),
        f"{place}.security_groups[]": ((1, "name", ""),),
        f"{place}.os-extended-volumes:volumes_attached[]": (
            (1, "id", ""),
            (3, "delete_on_termination", ""),
        ),
    }


_FLAVOR: Steps = (
    (
        1,
        "id name links ram disk vcpus swap rxtx_factor OS-FLV-DISABLED:disabled "
        "OS-FLV-EXT-DATA:ephemeral os-flavor-access:is_public",
        "",
    ),
    (55, "description", ""),
    (61, "extra_specs", ""),
)
_FLAVOR_SUMMARY: Steps = ((1, "id name links", ""), (55, "description", ""))
_ACTION: Steps = (
    (1, "action instance_uuid message project_id request_id start_time user_id", ""),
    (58, "updated_at", ""),
)
_NEW_AGGREGATE: Steps = (
    (1, "id name availability_zone created_at updated_at deleted deleted_at", ""),
    (41, "uuid", ""),
)
_AGGREGATE: Steps = (*_NEW_AGGREGATE, (1, "hosts metadata", ""))
_SERVICE: Steps = (
    (1, "binary disabled_reason host id state status updated_at zone", ""),
    (11, "forced_down", ""),
)
_HYPERVISOR_SUMS = (
    "current_workload disk_available_least free_disk_gb free_ram_mb local_gb local_gb_used "
    "memory_mb memory_mb_used running_vms vcpus vcpus_used"
)
_HYPERVISOR = "hypervisor_hostname id state status"
_HYPERVISOR_DETAIL = (
    f"{_HYPERVISOR} {_HYPERVISOR_SUMS} cpu_info host_ip hypervisor_type hypervisor_version service"
)
_HYPERVISOR_SERVICE = "disabled_reason host id"
_HYPERVISORS: Steps = ((1, "hypervisors", ""), (33, "hypervisors_links", ""))
_KEYPAIR = "name public_key fingerprint"
_TYPE = (2, "type", "")
_GROUP: Steps = (
    (1, "id members metadata name policies", ""),
    (13, "project_id user_id", ""),
    (64, "policy rules", "metadata policies"),
)
_USAGE = (
    "server_usages start stop tenant_id total_hours total_local_gb_usage total_memory_mb_usage "
    "total_vcpus_usage"
)
_SERVER_USAGE = (
    "ended_at flavor hours instance_id local_gb memory_mb name started_at state tenant_id uptime "
    "vcpus"
)
_NETWORK_QUOTAS = "fixed_ips floating_ips security_group_rules security_groups"
_FILE_QUOTAS = "injected_file_content_bytes injected_file_path_bytes injected_files"
_QUOTAS = "cores instances key_pairs metadata_items ram"
_GROUP_QUOTAS = "server_group_members server_groups"
_QUOTA_SET: Steps = (
    (1, f"{_QUOTAS} {_GROUP_QUOTAS} {_NETWORK_QUOTAS} {_FILE_QUOTAS}", ""),
    (36, "", _NETWORK_QUOTAS),
    (57, "", _FILE_QUOTAS),
)
_QUOTA_CLASS: Steps = (
    (1, f"{_QUOTAS} {_NETWORK_QUOTAS} {_FILE_QUOTAS}", ""),
    (50, _GROUP_QUOTAS, _NETWORK_QUOTAS),
    (57, "", _FILE_QUOTAS),
)
_NETWORK_LIMITS = (
    "maxSecurityGroupRules maxSecurityGroups maxTotalFloatingIps totalFloatingIpsUsed "
    "totalSecurityGroupsUsed"
)
_LIMITS: Steps = (
    (
        1,
        "maxImageMeta maxPersonality maxPersonalitySize maxServerGroupMembers maxServerGroups "
        "maxServerMeta maxTotalCores maxTotalInstances maxTotalKeypairs maxTotalRAMSize "
        f"totalCoresUsed totalInstancesUsed totalRAMUsed totalServerGroupsUsed {_NETWORK_LIMITS}",
        "",
    ),
    (36, "", _NETWORK_LIMITS),
    (39, "", "maxImageMeta"),
    (57, "", "maxPersonality maxPersonalitySize"),
)
_ZONES: Answer = {
    "": always("availabilityZoneInfo"),
    "availabilityZoneInfo[]": always("hosts zoneName zoneState"),
    "availabilityZoneInfo[].zoneState": always("available"),
}
_DETAIL_QUOTAS: Answer = {
    "": always("quota_set"),
    "quota_set": (*_QUOTA_SET, (1, "id", "")),
    **{
        f"quota_set.{name}": always("in_use limit reserved")
        for name in f"{_QUOTAS} {_GROUP_QUOTAS}".split()
    },
    **{
        f"quota_set.{name}": ((1, "in_use limit reserved", ""), (36, "", "in_use limit reserved"))
        for name in _NETWORK_QUOTAS.split()
    },
    **{
        f"quota_set.{name}": ((1, "in_use limit reserved", ""), (57, "", "in_use limit reserved"))
        for name in _FILE_QUOTAS.split()
    },
}
_VERSION = "id links min_version status updated version"
_DAY = "start=2026-01-01T00:00:00&end=2026-01-02T00:00:00"

GETS = (
    Row("GET", "/", {"": always("versions"), "versions[]": always(_VERSION)}),
    *(
        Row(
            "GET",
            url,
            {
                "": always("version"),
                "version": always(f"{_VERSION} media-types"),
                "version.media-types[]": always("base type"),
            },
        )
        for url in ("/v2", "/v2/", "/v2.1", "/v2.1/")
    ),
    Row(
        "GET",
        "/v2.1/servers?limit=1",
        {"": always("servers servers_links"), "servers[]": always("id links name")},
    ),
    Row(
        "GET",
        "/v2.1/servers/detail?limit=1",
        {"": always("servers servers_links"), **_server("servers[]", _LISTED)},
    ),
    Row("GET", "/v2.1/servers/{server_id}", {"": always("server"), **_server("server", _SHOWN)}),
    Row("GET", "/v2.1/servers/{server_id}/ips", {"": always("addresses")}),
    Row(
        "GET",
        "/v2.1/servers/{server_id}/ips/{network}",
        {"": always("net"), "net[]": always("addr version")},
    ),
    Row(
        "GET",
        "/v2.1/servers/{server_id}/os-volume_attachments",
        {"": always("volumeAttachments"), "volumeAttachments[]": _ATTACHMENT},
    ),
    Row(
        "GET",
        "/v2.1/servers/{server_id}/os-volume_attachments/{volume_id}",
        {"": always("volumeAttachment"), "volumeAttachment": _ATTACHMENT},
    ),
    Row("GET", "/v2.1/servers/{server_id}/metadata", {"": always("metadata")}),
    Row("GET", "/v2.1/servers/{server_id}/metadata/{key}", {"": always("meta")}),
    Row("GET", "/v2.1/servers/{server_id}/tags", {"": ((26, "tags", ""),)}, 26),
    Row("GET", "/v2.1/servers/{server_id}/tags/{tag}", {}, 26, status=204),
    Row("GET", "/v2.1/servers/{server_id}/topology", {"": ((78, "nodes pagesize_kb", ""),)}, 78),
    Row(
        "GET",
        "/v2.1/servers/{server_id}/os-instance-actions?limit=1",
        {"": ((1, "instanceActions", ""), (58, "links", "")), "instanceActions[]": _ACTION},
    ),
    Row(
        "GET",
        "/v2.1/servers/{server_id}/os-instance-actions/{request_id}",
        {
            "": always("instanceAction"),
            "instanceAction": (*_ACTION, (1, "events", "")),
            "instanceAction.events[]": (
                (1, "event finish_time result start_time traceback", ""),
                (62, "host hostId", ""),
            ),
        },
    ),
    Row(
        "GET",
        "/v2.1/flavors?limit=1&is_public=None",
        {"": always("flavors flavors_links"), "flavors[]": _FLAVOR_SUMMARY},
    ),
    Row(
        "GET",
        "/v2.1/flavors/detail?limit=1&is_public=None",
        {"": always("flavors flavors_links"), "flavors[]": _FLAVOR},
    ),
    Row("GET", "/v2.1/flavors/{flavor_id}", {"": always("flavor"), "flavor": _FLAVOR}),
    Row(
        "GET",
        "/v2.1/flavors/private/os-flavor-access",
        {"": always("flavor_access"), "flavor_access[]": always("flavor_id tenant_id")},
    ),
    Row("GET", "/v2.1/flavors/{flavor_id}/os-extra_specs", {"": always("extra_specs")}),
    Row("GET", "/v2.1/flavors/{flavor_id}/os-extra_specs/hw:foo", {"": always("hw:foo")}),
    Row("GET", "/v2.1/os-services", {"": always("services"), "services[]": _SERVICE}),
    Row(
        "GET",
        "/v2.1/os-hypervisors?limit=1",
        {"": _HYPERVISORS, "hypervisors[]": always(_HYPERVISOR)},
    ),
    Row(
        "GET",
        "/v2.1/os-hypervisors/detail?limit=1&with_servers=yes",
        {
            "": _HYPERVISORS,
            "hypervisors[]": ((1, _HYPERVISOR_DETAIL, ""), (53, "servers", "")),
            "hypervisors[].service": always(_HYPERVISOR_SERVICE),
            "hypervisors[].servers[]": ((53, "name uuid", ""),),
        },
    ),
    Row(
        "GET",
        "/v2.1/os-hypervisors/statistics",
        {
            "": always("hypervisor_statistics"),
            "hypervisor_statistics": always(f"count {_HYPERVISOR_SUMS}"),
        },
    ),
    *(
        Row(
            "GET",
            f"/v2.1/os-hypervisors/{name}",
            {
                "": ((lowest, "hypervisor", ""),),
                "hypervisor": ((lowest, _HYPERVISOR_DETAIL, ""),),
                "hypervisor.service": ((lowest, _HYPERVISOR_SERVICE, ""),),
            },
            lowest,
            highest,
        )
        for name, lowest, highest in (("{number}", 1, 52), ("{node}", 53, 79))
    ),
    Row(
        "GET",
        "/v2.1/os-hypervisors/{empty_node}?with_servers=yes",
        {
            "": ((53, "hypervisor", ""),),
            "hypervisor": ((53, _HYPERVISOR_DETAIL, ""), (75, "servers", "")),
            "hypervisor.service": ((53, _HYPERVISOR_SERVICE, ""),),
        },
        53,
    ),
    *(
        Row(
            "GET",
            f"/v2.1/os-hypervisors/{name}/uptime",
            {
                "": ((lowest, "hypervisor", ""),),
                "hypervisor": ((lowest, f"{_HYPERVISOR} uptime", ""),),
            },
            lowest,
            highest,
        )
        for name, lowest, highest in (("{number}", 1, 52), ("{node}", 53, 79))
    ),
    Row(
        "GET",
        "/v2.1/os-hypervisors/h1/search",
        {"": always("hypervisors"), "hypervisors[]": always(_HYPERVISOR)},
        highest=52,
    ),
    Row(
        "GET",
        "/v2.1/os-hypervisors/h1/servers",
        {
            "": always("hypervisors"),
            "hypervisors[]": always(f"{_HYPERVISOR} servers"),
            "hypervisors[].servers[]": always("name uuid"),
        },
        highest=52,
    ),
    Row(
        "GET",
        "/v2.1/os-keypairs?limit=1",
        {
            "": ((1, "keypairs", ""), (35, "keypairs_links", "")),
            "keypairs[]": always("keypair"),
            "keypairs[].keypair": ((1, _KEYPAIR, ""), _TYPE),
        },
    ),
    Row(
        "GET",
        "/v2.1/os-keypairs/{keypair_name}",
        {
            "": always("keypair"),
            "keypair": (
                (1, f"{_KEYPAIR} id user_id created_at updated_at deleted deleted_at", ""),
                _TYPE,
            ),
        },
    ),
    Row("GET", "/v2.1/os-aggregates", {"": always("aggregates"), "aggregates[]": _AGGREGATE}),
    Row(
        "GET",
        "/v2.1/os-aggregates/{aggregate_id}",
        {"": always("aggregate"), "aggregate": _AGGREGATE},
    ),
    Row("GET", "/v2.1/os-server-groups", {"": always("server_groups"), "server_groups[]": _GROUP}),
    Row(
        "GET",
        "/v2.1/os-server-groups/{server_group_id}",
        {"": always("server_group"), "server_group": _GROUP},
    ),
    Row(
        "GET",
        f"/v2.1/os-simple-tenant-usage?detailed=1&limit=1&{_DAY}",
        {
            "": ((1, "tenant_usages", ""), (40, "tenant_usages_links", "")),
            "tenant_usages[]": always(_USAGE),
            "tenant_usages[].server_usages[]": always(_SERVER_USAGE),
        },
    ),
    Row(
        "GET",
        f"/v2.1/os-simple-tenant-usage/{{tenant_id}}?limit=1&{_DAY}",
        {
            "": ((1, "tenant_usage", ""), (40, "tenant_usage_links", "")),
            "tenant_usage": always(_USAGE),
            "tenant_usage.server_usages[]": always(_SERVER_USAGE),
        },
    ),
    Row(
        "GET",
        "/v2.1/limits",
        {"": always("limits"), "limits": always("absolute rate"), "limits.absolute": _LIMITS},
    ),
    *(
        Row(
            "GET",
            f"/v2.1/os-quota-sets/{{tenant_id}}{tail}",
            {"": always("quota_set"), "quota_set": (*_QUOTA_SET, (1, "id", ""))},
        )
        for tail in ("", "/defaults")
    ),
    Row("GET", "/v2.1/os-quota-sets/{tenant_id}/detail", _DETAIL_QUOTAS),
    Row(
        "GET",
        "/v2.1/os-quota-class-sets/default",
        {"": always("quota_class_set"), "quota_class_set": (*_QUOTA_CLASS, (1, "id", ""))},
    ),
    Row("GET", "/v2.1/os-availability-zone", _ZONES),
    Row("GET", "/v2.1/os-availability-zone/detail", _ZONES),
)
# The routes of our own, which have no microversions; test_explain.py and test_capacity.py look at
# them.
OURS = frozenset(("/v2.1/servers/{server_id}/explain", "/v2.1/servers/{server_id}/why-not"))

# What POST and PUT answer; the bodies sent are in test_bodies.py.
CHANGES = (
    Row(
        "POST",
        "/v2.1/servers",
        {
            "": always("server"),
            "server": always("id links OS-DCF:diskConfig security_groups adminPass"),
            "server.security_groups[]": always("name"),
        },
        status=202,
    ),
    Row(
        "PUT",
        "/v2.1/servers/{server_id}",
        {
            "": always("server"),
            "server": _UPDATED,
            "server.flavor": _SERVER_FLAVOR,
            "server.image": always("id links"),
            "server.security_groups[]": ((75, "name", ""),),
            "server.os-extended-volumes:volumes_attached[]": (
                (75, "id delete_on_termination", ""),
            ),
        },
    ),
    Row("POST", "/v2.1/servers/{server_id}/metadata", {"": always("metadata")}),
    Row("PUT", "/v2.1/servers/{server_id}/metadata", {"": always("metadata")}),
    Row("PUT", "/v2.1/servers/{server_id}/metadata/{key}", {"": always("meta")}),
    Row("PUT", "/v2.1/servers/{server_id}/tags", {"": ((26, "tags", ""),)}, 26),
    Row("POST", "/v2.1/flavors", {"": always("flavor"), "flavor": _FLAVOR}),
    Row(
        "PUT",
        "/v2.1/flavors/{flavor_id}",
        {"": ((55, "flavor", ""),), "flavor": _FLAVOR},
        55,
    ),
    Row(
        "PUT",
        "/v2.1/os-services/{service_id}",
        {"": ((53, "service", ""),), "service": _SERVICE},
        53,
    ),
    Row(
        "PUT",
        "/v2.1/os-services/disable-log-reason",
        {"": always("service"), "service": always("binary disabled_reason host status")},
        highest=52,
    ),
    Row(
        "POST",
        "/v2.1/os-aggregates",
        {"": always("aggregate"), "aggregate": _NEW_AGGREGATE},
    ),
    Row(
        "PUT",
        "/v2.1/os-aggregates/{aggregate_id}",
        {"": always("aggregate"), "aggregate": _AGGREGATE},
    ),
    Row(
        "POST",
        "/v2.1/os-aggregates/{aggregate_id}/action",
        {"": always("aggregate"), "aggregate": _AGGREGATE},
    ),
    Row(
        "POST",
        "/v2.1/os-server-groups",
        {"": always("server_group"), "server_group": _GROUP},
    ),
    Row(
        "PUT",
        "/v2.1/os-quota-sets/{tenant_id}",
        {"": always("quota_set"), "quota_set": _QUOTA_SET},
    ),
    Row(
        "PUT",
        "/v2.1/os-quota-class-sets/default",
        {"": always("quota_class_set"), "quota_class_set": _QUOTA_CLASS},
    ),
)

# (schema in novalite/api/schemas, where, field) -> minor versions at which it may be sent.
FIELDS: dict[tuple[str, str, str], range] = {
    ("servers.CREATE", "server", "key_name"): range(1, 80),
    ("servers.CREATE", "server", "description"): range(19, 80),
    ("servers.CREATE", "server", "tags"): range(52, 80),
    ("servers.CREATE", "server", "personality"): range(1, 57),
    ("servers.CREATE", "server", "trusted_image_certificates"): range(63, 80),
    ("servers.CREATE", "server", "host"): range(74, 80),
    ("servers.CREATE", "server", "hypervisor_hostname"): range(74, 80),
    ("servers.CREATE", "server", "nonsense"): range(0),
    ("servers.UPDATE", "server", "name"): range(1, 80),
    ("servers.UPDATE", "server", "description"): range(19, 80),
    ("servers.UPDATE", "server", "nonsense"): range(0),
    ("servers.LOCK", "lock", "locked_reason"): range(1, 80),
    ("servers.LOCK", "lock", "nonsense"): range(1, 73),
    ("flavors.CREATE", "flavor", "swap"): range(1, 80),
    ("flavors.CREATE", "flavor", "description"): range(55, 80),
    ("flavors.CREATE", "flavor", "nonsense"): range(0),
    ("flavors.UPDATE", "flavor", "description"): range(55, 80),
}
