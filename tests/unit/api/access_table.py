# SPDX-License-Identifier: Apache-2.0
"""Who may do what, written down once more: the answer of every route to every kind of caller.

test_access.py plays it. A route, method or action that is added to the API needs its row in ROWS.
"""

# The callers, in the order of the words below. A and B are projects; "none" has no role there,
# "unscoped" has a token for no project, "system" is an administrator with a token for the system.
CALLERS = (
    "A.admin A.member A.reader A.none B.admin B.member B.reader B.none unscoped system".split()
)

# Kind of rule -> what each caller hears, first about an object of project A, then of project B.
# "yes" is anything but a refusal. Where there is no object, or it is the cloud's, both are equal.
_READER = "yes yes yes 403   yes yes yes 403   403 403"
_MEMBER = "yes yes 403 403   yes yes 403 403   403 403"
_ADMIN = " yes 403 403 403   yes 403 403 403   403 403"
_ANYBODY = "yes yes yes yes   yes yes yes yes   yes 403"
_PROJECT = "yes yes yes yes   yes yes yes yes   403 403"
_OPEN = "  yes yes yes yes   yes yes yes yes   yes yes"
WHO: dict[str, tuple[str, str]] = {
    # Acts on what is the caller's own project anyway.
    "reader": (_READER, _READER),
    "member": (_MEMBER, _MEMBER),
    "admin": (_ADMIN, _ADMIN),
    # No role is needed.
    "anybody": (_ANYBODY, _ANYBODY),
    "anybody in a project": (_PROJECT, _PROJECT),
    # No rule is asked, as in Nova.
    "open": (_OPEN, _OPEN),
    # The id of an object: that of another project does not exist.
    "its readers": (
        "yes yes yes 403   yes 404 404 404   404 403",
        "yes 404 404 404   yes yes yes 403   404 403",
    ),
    "its members": (
        "yes yes 403 403   yes 404 404 404   404 403",
        "yes 404 404 404   yes yes 403 403   404 403",
    ),
    "its cloud's admin": (
        "yes 403 403 403   yes 404 404 404   404 403",
        "yes 404 404 404   yes 403 403 403   404 403",
    ),
    # The id of a project in the URL: it is no secret, only forbidden.
    "project's readers": (
        "yes yes yes 403   yes 403 403 403   403 403",
        "yes 403 403 403   yes yes yes 403   403 403",
    ),
    # What belongs to a user, here to A.member and B.member; names are each user's own.
    "its user": (
        "404 yes 404 404   404 404 404 404   404 403",
        "404 404 404 404   404 yes 404 404   404 403",
    ),
}

_SERVER = "/v2.1/servers/{server_id}"
_FLAVOR = "/v2.1/flavors/{flavor_id}"
_QUOTAS = "/v2.1/os-quota-sets/{tenant_id}"
_HYPERVISOR = "/v2.1/os-hypervisors/{hypervisor_id}"
_AGGREGATE = "/v2.1/os-aggregates/{aggregate_id}"

# (method, URL of app.ROUTES, and for an action "#" with its key) -> (rule, kind of WHO). A URL of
# old microversions ends with "@" and the last one.
ROWS: dict[tuple[str, str], tuple[str, str]] = {
    ("GET", "/v2.1/servers"): ("servers:index", "reader"),
    ("POST", "/v2.1/servers"): ("servers:create", "member"),
    ("GET", "/v2.1/servers/detail"): ("servers:detail", "reader"),
    ("GET", _SERVER): ("servers:show", "its readers"),
    ("PUT", _SERVER): ("servers:update", "its members"),
    ("DELETE", _SERVER): ("servers:delete", "its members"),
    ("POST", f"{_SERVER}/action#os-getConsoleOutput"): ("os-console-output", "its members"),
    ("POST", f"{_SERVER}/action#forceDelete"): ("os-deferred-delete:force", "its members"),
    ("GET", f"{_SERVER}/explain"): ("servers:explain", "its readers"),
    ("GET", f"{_SERVER}/why-not"): ("servers:why-not", "its cloud's admin"),
    ("POST", f"{_SERVER}/action#lock"): ("os-lock-server:lock", "its members"),
    ("POST", f"{_SERVER}/action#unlock"): ("os-lock-server:unlock", "its members"),
    ("GET", f"{_SERVER}/metadata"): ("server-metadata:index", "its readers"),
    ("POST", f"{_SERVER}/metadata"): ("server-metadata:create", "its members"),
    ("PUT", f"{_SERVER}/metadata"): ("server-metadata:update_all", "its members"),
    ("GET", f"{_SERVER}/metadata/{{key}}"): ("server-metadata:show", "its readers"),
    ("PUT", f"{_SERVER}/metadata/{{key}}"): ("server-metadata:update", "its members"),
    ("DELETE", f"{_SERVER}/metadata/{{key}}"): ("server-metadata:delete", "its members"),
    ("GET", f"{_SERVER}/tags"): ("os-server-tags:index", "its readers"),
    ("PUT", f"{_SERVER}/tags"): ("os-server-tags:update_all", "its members"),
    ("DELETE", f"{_SERVER}/tags"): ("os-server-tags:delete_all", "its members"),
    ("GET", f"{_SERVER}/tags/{{tag}}"): ("os-server-tags:show", "its readers"),
    ("PUT", f"{_SERVER}/tags/{{tag}}"): ("os-server-tags:update", "its members"),
    ("DELETE", f"{_SERVER}/tags/{{tag}}"): ("os-server-tags:delete", "its members"),
    ("GET", f"{_SERVER}/topology"): ("compute:server:topology:index", "its readers"),
    ("GET", f"{_SERVER}/ips"): ("ips:index", "its readers"),
    ("GET", f"{_SERVER}/ips/{{network}}"): ("ips:show", "its readers"),
    ("GET", f"{_SERVER}/os-volume_attachments"): (
        "os-volumes-attachments:index",
        "its readers",
    ),
    ("GET", f"{_SERVER}/os-volume_attachments/{{volume_id}}"): (
        "os-volumes-attachments:show",
        "its readers",
    ),
    ("GET", f"{_SERVER}/os-instance-actions"): ("os-instance-actions:list", "its readers"),
    ("GET", f"{_SERVER}/os-instance-actions/{{request_id}}"): (
        "os-instance-actions:show",
        "its readers",
    ),
    ("GET", "/v2.1/flavors"): ("", "open"),
    ("POST", "/v2.1/flavors"): ("os-flavor-manage:create", "admin"),
    ("GET", "/v2.1/flavors/detail"): ("", "open"),
    ("GET", _FLAVOR): ("", "open"),
    ("PUT", _FLAVOR): ("os-flavor-manage:update", "admin"),
    ("DELETE", _FLAVOR): ("os-flavor-manage:delete", "admin"),
    ("POST", f"{_FLAVOR}/action#addTenantAccess"): (
        "os-flavor-access:add_tenant_access",
        "admin",
    ),
    ("POST", f"{_FLAVOR}/action#removeTenantAccess"): (
        "os-flavor-access:remove_tenant_access",
        "admin",
    ),
    ("GET", f"{_FLAVOR}/os-flavor-access"): ("os-flavor-access", "admin"),
    ("GET", f"{_FLAVOR}/os-extra_specs"): ("os-flavor-extra-specs:index", "reader"),
    ("POST", f"{_FLAVOR}/os-extra_specs"): ("os-flavor-extra-specs:create", "admin"),
    ("GET", f"{_FLAVOR}/os-extra_specs/{{key}}"): ("os-flavor-extra-specs:show", "reader"),
    ("PUT", f"{_FLAVOR}/os-extra_specs/{{key}}"): ("os-flavor-extra-specs:update", "admin"),
    ("DELETE", f"{_FLAVOR}/os-extra_specs/{{key}}"): ("os-flavor-extra-specs:delete", "admin"),
    ("GET", "/v2.1/os-services"): ("os-services:list", "admin"),
    ("PUT", "/v2.1/os-services/{service_id}"): ("os-services:update", "admin"),
    ("DELETE", "/v2.1/os-services/{service_id}"): ("os-services:delete", "admin"),
    ("GET", "/v2.1/os-hypervisors"): ("os-hypervisors:list", "admin"),
    ("GET", "/v2.1/os-hypervisors/detail"): ("os-hypervisors:list-detail", "admin"),
    ("GET", "/v2.1/os-hypervisors/statistics"): ("os-hypervisors:statistics", "admin"),
    ("GET", _HYPERVISOR): ("os-hypervisors:show", "admin"),
    ("GET", f"{_HYPERVISOR}/uptime"): ("os-hypervisors:uptime", "admin"),
    ("GET", f"{_HYPERVISOR}/search@52"): ("os-hypervisors:search", "admin"),
    ("GET", f"{_HYPERVISOR}/servers@52"): ("os-hypervisors:servers", "admin"),
    ("GET", "/v2.1/os-keypairs"): ("os-keypairs:index", "anybody"),
    ("POST", "/v2.1/os-keypairs"): ("os-keypairs:create", "anybody"),
    ("GET", "/v2.1/os-keypairs/{keypair_name}"): ("os-keypairs:show", "its user"),
    ("DELETE", "/v2.1/os-keypairs/{keypair_name}"): ("os-keypairs:delete", "its user"),
    ("GET", "/v2.1/os-server-groups"): ("os-server-groups:index", "reader"),
    ("POST", "/v2.1/os-server-groups"): ("os-server-groups:create", "member"),
    ("GET", "/v2.1/os-server-groups/{server_group_id}"): (
        "os-server-groups:show",
        "its readers",
    ),
    ("DELETE", "/v2.1/os-server-groups/{server_group_id}"): (
        "os-server-groups:delete",
        "its members",
    ),
    ("GET", "/v2.1/os-simple-tenant-usage"): ("os-simple-tenant-usage:list", "admin"),
    ("GET", "/v2.1/os-simple-tenant-usage/{tenant_id}"): (
        "os-simple-tenant-usage:show",
        "project's readers",
    ),
    ("POST", "/v2.1/novalite/capacity"): ("novalite:capacity", "admin"),
    ("GET", "/v2.1/limits"): ("limits", "anybody in a project"),
    ("GET", _QUOTAS): ("os-quota-sets:show", "project's readers"),
    ("PUT", _QUOTAS): ("os-quota-sets:update", "admin"),
    ("DELETE", _QUOTAS): ("os-quota-sets:delete", "admin"),
    ("GET", f"{_QUOTAS}/defaults"): ("os-quota-sets:defaults", "anybody"),
    ("GET", f"{_QUOTAS}/detail"): ("os-quota-sets:detail", "project's readers"),
    ("GET", "/v2.1/os-quota-class-sets/{quota_class}"): ("os-quota-class-sets:show", "admin"),
    ("PUT", "/v2.1/os-quota-class-sets/{quota_class}"): ("os-quota-class-sets:update", "admin"),
    ("GET", "/v2.1/os-aggregates"): ("os-aggregates:index", "admin"),
    ("POST", "/v2.1/os-aggregates"): ("os-aggregates:create", "admin"),
    ("GET", _AGGREGATE): ("os-aggregates:show", "admin"),
    ("PUT", _AGGREGATE): ("os-aggregates:update", "admin"),
    ("DELETE", _AGGREGATE): ("os-aggregates:delete", "admin"),
    ("POST", f"{_AGGREGATE}/action#add_host"): ("os-aggregates:add_host", "admin"),
    ("POST", f"{_AGGREGATE}/action#remove_host"): ("os-aggregates:remove_host", "admin"),
    ("POST", f"{_AGGREGATE}/action#set_metadata"): ("os-aggregates:set_metadata", "admin"),
    ("GET", "/v2.1/os-availability-zone"): ("os-availability-zone:list", "anybody"),
    ("GET", "/v2.1/os-availability-zone/detail"): ("os-availability-zone:detail", "admin"),
}

# Answered without a token.
DOCUMENTS = frozenset(("/", "/v2", "/v2/", "/v2.1", "/v2.1/", "/healthz"))

# Rules whose operation is not served yet.
RESERVED = frozenset(
    (
        "servers:create:trusted_certs",
        "compute:server:topology:host:index",
        "os-flavor-manage:update",
    )
)
