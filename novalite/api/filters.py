# SPDX-License-Identifier: Apache-2.0
"""Query parameters of GET /servers and /servers/detail turned into a database query.

As in Nova, users filter by a short list of things and what they may not use is ignored, while
administrators filter by nearly every column. Values are never ignored: a wrong one is a 400.
"""

import json
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from novalite import exception
from novalite.api import http, paging, pattern, times
from novalite.api.policy import Policy
from novalite.api.views import servers as view
from novalite.db import instance_queries

# Administrators only: parameter -> column that must equal one of the values.
_TEXT_COLUMNS = {
    "host": "host",
    "node": "node",
    "user_id": "user_id",
    "uuid": "uuid",
    "vm_state": "vm_state",
    "key_name": "key_name",
    "availability_zone": "availability_zone",
    "display_description": "display_description",
    "description": "display_description",
    "root_device_name": "root_device_name",
    "access_ip_v4": "access_ip_v4",
    "access_ip_v6": "access_ip_v6",
    "locked_by": "locked_by",
}
_NUMBER_COLUMNS = {"power_state": "power_state", "launch_index": "launch_index"}
_TIME_COLUMNS = ("created_at", "launched_at", "terminated_at")
# What no server here has: only these values match.
_CONSTANTS = {"kernel_id": "", "ramdisk_id": "", "progress": "0"}
_TAGS = ("tags", "tags-any", "not-tags", "not-tags-any")
# From 2.75 on any other parameter is refused. Nothing is soft-deleted in this cloud.
_PARAMETERS = frozenset(
    (
        *_TEXT_COLUMNS,
        *_NUMBER_COLUMNS,
        *_TIME_COLUMNS,
        *_CONSTANTS,
        *_TAGS,
        *("all_tenants", "project_id", "tenant_id", "deleted", "soft_deleted", "status"),
        *("changes-since", "changes-before", "image", "image_ref", "flavor", "reservation_id"),
        *("config_drive", "auto_disk_config", "task_state", "locked", "name", "display_name"),
        *("hostname", "ip", "ip6", "limit", "marker", "sort_key", "sort_dir"),
    )
)
# Parts of a server that are no columns of it in Nova.
_INNER = frozenset(
    ("block_device_mapping", "services", "metadata", "system_metadata", "info_cache")
    + ("security_groups", "pci_devices")
)
_ADMIN_SORT = frozenset(("host", "node"))
# Keys that are taken and make no difference: the first for ever, the others until 2.74.
_EQUAL_SORT = frozenset(_CONSTANTS)
_FORMER_SORT = frozenset(
    ("architecture", "cell_name", "cleaned", "default_ephemeral_device", "default_swap_device")
    + ("deleted", "deleted_at", "disable_terminate", "ephemeral_gb", "ephemeral_key_uuid", "id")
    + ("key_data", "launched_on", "memory_mb", "os_type", "reservation_id", "root_gb")
    + ("shutdown_terminate", "user_data", "vcpus", "vm_mode")
)


def read(
    conf: cfg.ConfigOpts, policy: Policy, req: http.Request, *, detail: bool
) -> instance_queries.Query | None:
    """Return the query that a list request asks for, or None if it can match nothing.

    :raises exception.ValidationError: a value is wrong
    :raises exception.PolicyNotAuthorized: all projects are for administrators
    """
    return _Reader(conf, policy, req, detail).read()


class _Reader:
    def __init__(self, conf: cfg.ConfigOpts, policy: Policy, req: http.Request, detail: bool):
        self._conf = conf
        self._policy = policy
        self._context = req.state.context
        self._version = req.state.version
        self._values = paging.values(req)
        self._detail = detail
        self._admin = policy.allows(self._context, "servers:allow_all_filters")
        self._query = instance_queries.Query()

    def read(self) -> instance_queries.Query | None:
        query = self._query
        self._known()
        self._projects()
        self._time_and_deleted()
        self._equals()
        self._patterns()
        self._tags()
        possible = self._status() and self._constants()
        page = paging.page(self._conf, self._values)
        query.limit, query.marker = page.limit, page.marker
        query.sort = self._order()
        return query if possible else None

    def _known(self) -> None:
        """Refuse parameters that nobody knows (2.75) or that name inner parts of a server."""
        inner = [name for name in self._values if name in _INNER or name.startswith("_")]
        if inner and self._admin:
            raise exception.InvalidInput(f"Invalid filter field: {inner[0][:64]}.")
        paging.refuse_unknown(self._values, self._version, *_PARAMETERS, *inner)

    def _constants(self) -> bool:
        """Filter by what all servers have in common; False if it is asked for otherwise."""
        return not self._admin or all(
            text == constant
            for name, constant in _CONSTANTS.items()
            for text in self._values.get(name, ())
        )

    def _last(self, name: str) -> str | None:
        return paging.last(self._values, name)

    def _projects(self) -> None:
        text = self._last("all_tenants")
        if text is None and self._admin:
            text = self._last("all_projects")
        everything = text is not None and (not text or paging.boolean("all_tenants", text))
        if not everything:
            # Without all_tenants the project filters are ignored, as in Nova.
            self._query.project_id = self._context.project_id or ""
            return
        rule = "servers:detail:get_all_tenants" if self._detail else "servers:index:get_all_tenants"
        self._policy.check(self._context, rule)
        project = self._last("project_id") or self._last("tenant_id")
        if project:
            self._query.project_id = project

    def _time_and_deleted(self) -> None:
        query = self._query
        query.changes_since, query.changes_before = times.span(
            self._last("changes-since"),
            self._last("changes-before") if self._version >= 66 else None,
        )
        if query.changes_since is not None or query.changes_before is not None:
            query.deleted = None
        wanted = self._last("deleted") if self._admin else None
        if wanted is not None:
            self._query.deleted = paging.boolean("deleted", wanted)

    def _equals(self) -> None:
        """Filters by a column's value."""
        equal = self._query.equal
        for names, column in ((("image", "image_ref"), "image_ref"), (("flavor",), "flavorid")):
            items = [value for name in names for value in self._values.get(name, ())]
            if items:
                equal[column] = list(items)
        if "reservation_id" in self._values:
            equal["reservation_id"] = list(self._values["reservation_id"])
        locked = self._last("locked") if self._version >= 73 else None
        if locked is not None:
            equal["locked"] = [paging.boolean("locked", locked)]
        if self._admin:
            self._more_equals(equal)

    def _more_equals(self, equal: dict[str, list[Any]]) -> None:
        values = self._values
        for name, column in _TEXT_COLUMNS.items():
            if name in values:
                equal[column] = list(values[name])
        for name, column in _NUMBER_COLUMNS.items():
            if name in values:
                equal[column] = [paging.number(name, text) for text in values[name]]
        for name in _TIME_COLUMNS:
            text = self._last(name)
            if text is not None:
                self._query.seconds[name] = times.parse(name, text)
        automatic = self._last("auto_disk_config")
        if automatic is not None:
            wanted = paging.boolean("auto_disk_config", automatic)
            equal["disk_config"] = ["AUTO" if wanted else "MANUAL"]
        config_drive = self._last("config_drive")
        if config_drive is not None:
            wanted = bool(config_drive) and paging.boolean("config_drive", config_drive)
            equal["config_drive"] = [wanted]
        if "task_state" in values:
            nothing = ("none", "null")
            words = values["task_state"]
            equal["task_state"] = [None if word.lower() in nothing else word for word in words]

    def _status(self) -> bool:
        """Filter by the API's status; False if it is one that no server can have."""
        words = self._values.get("status")
        if not words:
            return True
        states = sorted({state for word in words for state in view.STATES.get(word.lower(), ())})
        if not states:
            if self._version >= 38:
                raise exception.InvalidInput("Invalid status value")
            return False
        if "deleted" in states:
            if not self._admin:
                raise exception.Forbidden("Only administrators may list deleted instances")
            self._query.deleted = True if states == ["deleted"] else None
        former = self._query.equal.get("vm_state")
        self._query.equal["vm_state"] = (
            states if former is None else [state for state in states if state in former]
        )
        return True

    def _patterns(self) -> None:
        """Filters by a regular expression, which Python looks at row by row."""
        name = self._last("name")
        if name is None and self._admin:
            name = self._last("display_name")
        if name is not None:
            self._add(_matcher(pattern.Pattern(name), lambda row: [row.display_name]))
        host = self._last("hostname") if self._admin else None
        if host is not None:
            self._add(_matcher(pattern.Pattern(host), lambda row: [row.hostname]))
        for parameter, six in (("ip", False), ("ip6", True)):
            text = self._last(parameter)
            # By IPv6 address everybody may filter since 2.5.
            if text is not None and (not six or self._admin or self._version >= 5):
                self._add(_matcher(pattern.Pattern(text, anchored=True), _addresses(six)))

    def _add(self, predicate: instance_queries.Predicate) -> None:
        self._query.predicates.append(predicate)

    def _tags(self) -> None:
        """Filters by tags, for everybody since 2.26."""
        if self._version < 26:
            return
        tests: dict[str, Callable[[set[str], set[str]], bool]] = {
            "tags": lambda wanted, has: wanted <= has,
            "tags-any": lambda wanted, has: bool(wanted & has),
            "not-tags": lambda wanted, has: not wanted <= has,
            "not-tags-any": lambda wanted, has: not wanted & has,
        }
        for name, test in tests.items():
            text = self._last(name)
            if text is not None:
                self._add(_tag_predicate(set(text.split(",")), test))

    def _order(self) -> list[tuple[str, str]]:
        idle = _EQUAL_SORT if self._version >= 75 else _EQUAL_SORT | _FORMER_SORT
        if self._version < 73:
            idle |= {"locked"}
        default = list(instance_queries.DEFAULT_SORT)
        keys = paging.sorting(self._values, [*instance_queries.SORT, *idle], default)
        if not self._admin:
            idle |= _ADMIN_SORT
        return [(key, way) for key, way in keys if key not in idle] or default


def _matcher(
    compiled: pattern.Pattern, texts: Callable[[Any], list[str]]
) -> instance_queries.Predicate:
    return lambda row: any(compiled.matches(text) for text in texts(row))


def _addresses(six: bool) -> Callable[[Any], list[str]]:
    def texts(row: Any) -> list[str]:
        shown = view.addresses(row.network_info, extended=False)
        version = 6 if six else 4
        return [
            entry["addr"]
            for entries in shown.values()
            for entry in entries
            if entry["version"] == version
        ]

    return texts


def _tag_predicate(
    wanted: set[str], test: Callable[[set[str], set[str]], bool]
) -> instance_queries.Predicate:
    return lambda row: test(wanted, set(json.loads(row.tags)))
