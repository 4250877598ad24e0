# SPDX-License-Identifier: Apache-2.0
"""Every policy rule: Nova's name and default, what it guards and where.

Read by :mod:`novalite.api.policy` and by oslopolicy-sample-generator. A rule belongs to one
operation. Names stand without the prefix ``os_compute_api:`` unless they begin with ``compute:``
or ``network:``.
"""

from typing import Any

from oslo_policy import policy

from novalite.api import rules_volumes
from novalite.api.roles import ADMIN, ANYBODY, BASE, MEMBER, READER, USER

PREFIX = "os_compute_api:"
_WHOLE = ("compute:", "network:")

_SERVER = "/servers/{server_id}"
_FLAVOR = "/flavors/{flavor_id}"
_AGGREGATE = "/os-aggregates/{aggregate_id}"

# (name, default, what it allows, operations ...)
RULES: tuple[tuple[str, ...], ...] = (
    *rules_volumes.RULES,
    ("servers:index", READER, "List servers", "GET /servers"),
    ("servers:detail", READER, "List servers with details", "GET /servers/detail"),
    (
        "servers:index:get_all_tenants",
        ADMIN,
        "List the servers of all projects",
        "GET /servers",
    ),
    (
        "servers:detail:get_all_tenants",
        ADMIN,
        "List the servers of all projects with details",
        "GET /servers/detail",
    ),
    (
        "servers:allow_all_filters",
        ADMIN,
        "Use every filter when listing servers",
        "GET /servers",
        "GET /servers/detail",
    ),
    ("servers:show", READER, "Show a server", f"GET {_SERVER}"),
    (
        "servers:show:host_status",
        ADMIN,
        "See the state of a server's host",
        f"GET {_SERVER}",
        "GET /servers/detail",
    ),
    ("servers:explain", READER, "Explain a server", f"GET {_SERVER}/explain"),
    ("servers:explain:host_details", ADMIN, "Explain it with hosts", f"GET {_SERVER}/explain"),
    (
        "servers:why-not",
        ADMIN,
        "Ask the scheduler what it thinks of a host for a server",
        f"GET {_SERVER}/why-not",
    ),
    (
        "novalite:capacity",
        ADMIN,
        "Count how many more servers of a flavor fit",
        "POST /novalite/capacity",
    ),
    ("servers:create", MEMBER, "Create servers", "POST /servers"),
    (
        "servers:create:forced_host",
        ADMIN,
        "Name the host or node of a new server, past the filters",
        "POST /servers",
    ),
    (
        "compute:servers:create:requested_destination",
        ADMIN,
        "Name the host or node of a new server, subject to the filters",
        "POST /servers",
    ),
    (
        "servers:create:attach_network",
        MEMBER,
        "Name the networks of a new server",
        "POST /servers",
    ),
    (
        "servers:create:trusted_certs",
        MEMBER,
        "Name the trusted image certificates of a new server",
        "POST /servers",
    ),
    ("servers:update", MEMBER, "Change a server", f"PUT {_SERVER}"),
    ("servers:delete", MEMBER, "Delete a server", f"DELETE {_SERVER}"),
    (
        "os-extended-server-attributes",
        ADMIN,
        "See the host, instance name and other inner attributes of servers",
        f"GET {_SERVER}",
        "GET /servers/detail",
        f"PUT {_SERVER}",
    ),
    (
        "os-deferred-delete:force",
        MEMBER,
        "Delete a server whatever else is going on",
        f"POST {_SERVER}/action (forceDelete)",
    ),
    (
        "os-console-output",
        MEMBER,
        "Read the console of a server",
        f"POST {_SERVER}/action (os-getConsoleOutput)",
    ),
    ("os-lock-server:lock", MEMBER, "Lock a server", f"POST {_SERVER}/action (lock)"),
    ("os-lock-server:unlock", MEMBER, "Unlock a server", f"POST {_SERVER}/action (unlock)"),
    (
        "os-lock-server:unlock:unlock_override",
        ADMIN,
        "Unlock a server whoever locked it",
        f"POST {_SERVER}/action (unlock)",
    ),
    ("ips:index", READER, "List the addresses of a server", f"GET {_SERVER}/ips"),
    (
        "ips:show",
        READER,
        "Show the addresses of a server in one network",
        f"GET {_SERVER}/ips/{{network_label}}",
    ),
    ("server-metadata:index", READER, "List a server's metadata", f"GET {_SERVER}/metadata"),
    (
        "server-metadata:show",
        READER,
        "Show one metadata item",
        f"GET {_SERVER}/metadata/{{key}}",
    ),
    ("server-metadata:create", MEMBER, "Add metadata items", f"POST {_SERVER}/metadata"),
    ("server-metadata:update_all", MEMBER, "Replace all metadata", f"PUT {_SERVER}/metadata"),
    (
        "server-metadata:update",
        MEMBER,
        "Set one metadata item",
        f"PUT {_SERVER}/metadata/{{key}}",
    ),
    (
        "server-metadata:delete",
        MEMBER,
        "Remove one metadata item",
        f"DELETE {_SERVER}/metadata/{{key}}",
    ),
    ("os-server-tags:index", READER, "List a server's tags", f"GET {_SERVER}/tags"),
    ("os-server-tags:show", READER, "Check a tag", f"GET {_SERVER}/tags/{{tag}}"),
    ("os-server-tags:update_all", MEMBER, "Replace all tags", f"PUT {_SERVER}/tags"),
    ("os-server-tags:update", MEMBER, "Add a tag", f"PUT {_SERVER}/tags/{{tag}}"),
    ("os-server-tags:delete_all", MEMBER, "Remove all tags", f"DELETE {_SERVER}/tags"),
    ("os-server-tags:delete", MEMBER, "Remove a tag", f"DELETE {_SERVER}/tags/{{tag}}"),
    (
        "compute:server:topology:index",
        READER,
        "Show the NUMA topology of a server",
        f"GET {_SERVER}/topology",
    ),
    (
        "compute:server:topology:host:index",
        ADMIN,
        "See host cells and pinned CPUs in a server's topology",
        f"GET {_SERVER}/topology",
    ),
    (
        "os-instance-actions:list",
        READER,
        "List what was done with a server",
        f"GET {_SERVER}/os-instance-actions",
    ),
    (
        "os-instance-actions:show",
        READER,
        "Show what was done with a server",
        f"GET {_SERVER}/os-instance-actions/{{request_id}}",
    ),
    (
        "os-instance-actions:events",
        ADMIN,
        "See tracebacks of events, and events at all before 2.51",
        f"GET {_SERVER}/os-instance-actions/{{request_id}}",
    ),
    ("os-flavor-manage:create", ADMIN, "Create a flavor", "POST /flavors"),
    ("os-flavor-manage:update", ADMIN, "Change a flavor", f"PUT {_FLAVOR}"),
    ("os-flavor-manage:delete", ADMIN, "Delete a flavor", f"DELETE {_FLAVOR}"),
    (
        "os-flavor-access",
        ADMIN,
        "List who may use a flavor",
        f"GET {_FLAVOR}/os-flavor-access",
    ),
    (
        "os-flavor-access:add_tenant_access",
        ADMIN,
        "Let a project use a flavor",
        f"POST {_FLAVOR}/action (addTenantAccess)",
    ),
    (
        "os-flavor-access:remove_tenant_access",
        ADMIN,
        "Let a project use a flavor no more",
        f"POST {_FLAVOR}/action (removeTenantAccess)",
    ),
    (
        "os-flavor-extra-specs:index",
        READER,
        "List extra specs",
        f"GET {_FLAVOR}/os-extra_specs",
        f"GET {_FLAVOR}",
        "GET /flavors/detail",
    ),
    (
        "os-flavor-extra-specs:show",
        READER,
        "Show an extra spec",
        f"GET {_FLAVOR}/os-extra_specs/{{flavor_extra_spec_key}}",
    ),
    (
        "os-flavor-extra-specs:create",
        ADMIN,
        "Add extra specs",
        f"POST {_FLAVOR}/os-extra_specs",
    ),
    (
        "os-flavor-extra-specs:update",
        ADMIN,
        "Change an extra spec",
        f"PUT {_FLAVOR}/os-extra_specs/{{flavor_extra_spec_key}}",
    ),
    (
        "os-flavor-extra-specs:delete",
        ADMIN,
        "Remove an extra spec",
        f"DELETE {_FLAVOR}/os-extra_specs/{{flavor_extra_spec_key}}",
    ),
    ("os-services:list", ADMIN, "List services", "GET /os-services"),
    ("os-services:update", ADMIN, "Change a service", "PUT /os-services/{service_id}"),
    ("os-services:delete", ADMIN, "Forget a service", "DELETE /os-services/{service_id}"),
    ("os-hypervisors:list", ADMIN, "List hypervisors", "GET /os-hypervisors"),
    (
        "os-hypervisors:list-detail",
        ADMIN,
        "List hypervisors with details",
        "GET /os-hypervisors/detail",
    ),
    (
        "os-hypervisors:statistics",
        ADMIN,
        "Show sums over all hypervisors",
        "GET /os-hypervisors/statistics",
    ),
    ("os-hypervisors:show", ADMIN, "Show a hypervisor", "GET /os-hypervisors/{hypervisor_id}"),
    (
        "os-hypervisors:uptime",
        ADMIN,
        "Show since when a host runs",
        "GET /os-hypervisors/{hypervisor_id}/uptime",
    ),
    (
        "os-hypervisors:search",
        ADMIN,
        "Find hypervisors by name",
        "GET /os-hypervisors/{hypervisor_hostname_pattern}/search",
    ),
    (
        "os-hypervisors:servers",
        ADMIN,
        "List servers by the names of hypervisors",
        "GET /os-hypervisors/{hypervisor_hostname_pattern}/servers",
    ),
    ("os-aggregates:index", ADMIN, "List host aggregates", "GET /os-aggregates"),
    ("os-aggregates:create", ADMIN, "Create a host aggregate", "POST /os-aggregates"),
    ("os-aggregates:show", ADMIN, "Show a host aggregate", f"GET {_AGGREGATE}"),
    ("os-aggregates:update", ADMIN, "Change a host aggregate", f"PUT {_AGGREGATE}"),
    ("os-aggregates:delete", ADMIN, "Delete a host aggregate", f"DELETE {_AGGREGATE}"),
    (
        "os-aggregates:add_host",
        ADMIN,
        "Add a host to an aggregate",
        f"POST {_AGGREGATE}/action (add_host)",
    ),
    (
        "os-aggregates:remove_host",
        ADMIN,
        "Remove a host from an aggregate",
        f"POST {_AGGREGATE}/action (remove_host)",
    ),
    (
        "os-aggregates:set_metadata",
        ADMIN,
        "Change the metadata of an aggregate",
        f"POST {_AGGREGATE}/action (set_metadata)",
    ),
    ("os-availability-zone:list", ANYBODY, "List zones", "GET /os-availability-zone"),
    (
        "os-availability-zone:detail",
        ADMIN,
        "List zones with hosts and services",
        "GET /os-availability-zone/detail",
    ),
    ("os-keypairs:index", USER, "List key pairs", "GET /os-keypairs"),
    ("os-keypairs:create", USER, "Create a key pair", "POST /os-keypairs"),
    ("os-keypairs:show", USER, "Show a key pair", "GET /os-keypairs/{keypair_name}"),
    ("os-keypairs:delete", USER, "Delete a key pair", "DELETE /os-keypairs/{keypair_name}"),
    ("os-quota-sets:show", READER, "Show quotas", "GET /os-quota-sets/{tenant_id}"),
    (
        "os-quota-sets:detail",
        READER,
        "Show quotas and what is used of them",
        "GET /os-quota-sets/{tenant_id}/detail",
    ),
    (
        "os-quota-sets:defaults",
        ANYBODY,
        "Show default quotas",
        "GET /os-quota-sets/{tenant_id}/defaults",
    ),
    ("os-quota-sets:update", ADMIN, "Change quotas", "PUT /os-quota-sets/{tenant_id}"),
    (
        "os-quota-sets:delete",
        ADMIN,
        "Take quotas back to the defaults",
        "DELETE /os-quota-sets/{tenant_id}",
    ),
    (
        "os-quota-class-sets:show",
        ADMIN,
        "Show the quotas of a class",
        "GET /os-quota-class-sets/{quota_class}",
    ),
    (
        "os-quota-class-sets:update",
        ADMIN,
        "Change the quotas of a class",
        "PUT /os-quota-class-sets/{quota_class}",
    ),
    ("limits", ANYBODY, "Show the limits of one's project", "GET /limits"),
    ("limits:other_project", ADMIN, "Show the limits of another project", "GET /limits"),
    ("os-server-groups:index", READER, "List server groups", "GET /os-server-groups"),
    (
        "os-server-groups:index:all_projects",
        ADMIN,
        "List the server groups of all projects",
        "GET /os-server-groups",
    ),
    ("os-server-groups:create", MEMBER, "Create a server group", "POST /os-server-groups"),
    (
        "os-server-groups:show",
        READER,
        "Show a server group",
        "GET /os-server-groups/{server_group_id}",
    ),
    (
        "os-server-groups:delete",
        MEMBER,
        "Delete a server group",
        "DELETE /os-server-groups/{server_group_id}",
    ),
    (
        "os-simple-tenant-usage:list",
        ADMIN,
        "Show the usage of all projects",
        "GET /os-simple-tenant-usage",
    ),
    (
        "os-simple-tenant-usage:show",
        READER,
        "Show the usage of a project",
        "GET /os-simple-tenant-usage/{tenant_id}",
    ),
)


def full_name(name: str) -> str:
    """Return a rule's name as it stands in policy files and in refusals."""
    return name if name.startswith(_WHOLE) else PREFIX + name


def list_rules() -> list[Any]:
    """Return all rules with their defaults, for the enforcer and the sample generator.

    All are for tokens with a project: system and domain scope are refused, as Nova does.
    """
    rules: list[Any] = [policy.RuleDefault(name, check, text) for name, check, text in BASE]
    for name, check, text, *operations in RULES:
        documented: list[Any] = [
            dict(zip(("method", "path"), operation.split(" ", 1), strict=True))
            for operation in operations
        ]
        rules.append(
            policy.DocumentedRuleDefault(
                full_name(name), check, text, documented, scope_types=["project"]
            )
        )
    return rules
