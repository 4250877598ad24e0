# SPDX-License-Identifier: Apache-2.0
"""Limits that were set for projects, users and classes, and the lock under which they are used.

Called by :mod:`novalite.db.quotas` and by the resources that show and set limits. Nothing here
reads options: the caller passes a function from the resource to the limit of its option.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from novalite.db import schema

# Resource -> limit of its option.
LimitsOf = Callable[[str], int]

UNLIMITED = -1
DEFAULT_CLASS = "default"
# Every resource with a limit, in the order in which a refusal names them.
RESOURCES = (
    "instances",
    "cores",
    "ram",
    "metadata_items",
    "injected_files",
    "injected_file_content_bytes",
    "injected_file_path_bytes",
    "key_pairs",
    "server_groups",
    "server_group_members",
)
# The network service counts these. Their limits are kept for old clients and hold for nothing.
NETWORK = ("fixed_ips", "floating_ips", "security_groups", "security_group_rules")
# In quota_limits a limit of the whole project is one of nobody.
_NOBODY = ""

_l = schema.quota_limits
_c = schema.quota_class_limits
_lock = schema.quota_locks

_TAKE = (
    sa.update(_lock)
    .where(_lock.c.project_id == sa.bindparam("key_"))
    .values(taken=_lock.c.taken + 1)
)
_ROW = {"project_id": sa.bindparam("key_"), "taken": 1}
# Two transactions may find no row at the same time; the second one waits for the first, then.
_MAKE: dict[str, Any] = {
    "sqlite": sqlite.insert(_lock)
    .values(_ROW)
    .on_conflict_do_update(index_elements=["project_id"], set_={"taken": _lock.c.taken + 1}),
    "postgresql": postgresql.insert(_lock)
    .values(_ROW)
    .on_conflict_do_update(index_elements=["project_id"], set_={"taken": _lock.c.taken + 1}),
    "mysql": mysql.insert(_lock).values(_ROW).on_duplicate_key_update(taken=_lock.c.taken + 1),
}
_MAKE["mariadb"] = _MAKE["mysql"]

_LIMITS = sa.union_all(
    sa.select(_l.c.user_id.label("owner"), _l.c.resource, _l.c.hard_limit).where(
        _l.c.project_id == sa.bindparam("project_"),
        _l.c.user_id.in_([_NOBODY, sa.bindparam("user_")]),
    ),
    sa.select(sa.null().label("owner"), _c.c.resource, _c.c.hard_limit).where(
        _c.c.class_name == DEFAULT_CLASS
    ),
)
_USER_SUMS = (
    sa.select(_l.c.resource, sa.func.sum(_l.c.hard_limit))
    .where(
        _l.c.project_id == sa.bindparam("project_"),
        _l.c.user_id.not_in([_NOBODY, sa.bindparam("user_")]),
        _l.c.hard_limit > 0,
    )
    .group_by(_l.c.resource)
)
_SET = (
    sa.update(_l)
    .where(
        _l.c.project_id == sa.bindparam("project_"),
        _l.c.user_id == sa.bindparam("user_"),
        _l.c.resource == sa.bindparam("resource_"),
    )
    .values(hard_limit=sa.bindparam("limit_"))
)
_SET_CLASS = (
    sa.update(_c)
    .where(_c.c.class_name == sa.bindparam("class_"), _c.c.resource == sa.bindparam("resource_"))
    .values(hard_limit=sa.bindparam("limit_"))
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds for a project, and what holds besides for one user in it; -1 is unlimited.

    ``project`` has every resource, ``user`` only those that were set for the user.
    """

    project: Mapping[str, int]
    user: Mapping[str, int]

    def effective(self, resource: str) -> int:
        """Return the stricter one of both limits, which is what the user can use."""
        found = [limit for limit in self.of(resource) if limit >= 0]
        return min(found, default=UNLIMITED)

    def of(self, resource: str) -> tuple[int, int]:
        """Return the limits of the project and of the user."""
        return self.project[resource], self.user.get(resource, UNLIMITED)

    def bound(self, resource: str) -> bool:
        """Tell whether this is limited at all."""
        return self.effective(resource) >= 0


def has_limits(project_id: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Return the condition that some limit was set in the database: for the project, for a user
    in it, or for all. A statement that is sent anyway can answer it by the way."""
    return sa.or_(
        sa.exists().where(_l.c.project_id == project_id),
        sa.exists().where(_c.c.class_name == DEFAULT_CLASS),
    )


HAS_LIMITS = sa.select(sa.literal(1)).where(has_limits(sa.bindparam("project_", type_=sa.String)))


def limits(
    conn: sa.Connection, limits_of: LimitsOf, project_id: str, user_id: str | None = None
) -> Limits:
    """Return what holds: a project's row goes before the class ``default``, that before the
    option; a user's row holds besides the project's limit."""
    project = _of_options(limits_of)
    own, user = {}, {}
    values = {"project_": project_id, "user_": user_id or _NOBODY}
    for owner, resource, limit in conn.execute(_LIMITS, values):
        if resource not in project:
            continue
        if owner is None:
            project[resource] = limit
        elif owner == _NOBODY:
            own[resource] = limit
        else:
            user[resource] = limit
    return Limits({**project, **own}, user)


def _of_options(limits_of: LimitsOf) -> dict[str, int]:
    found = dict.fromkeys(NETWORK, UNLIMITED)
    found.update({resource: limits_of(resource) for resource in RESOURCES})
    return found


def lock(conn: sa.Connection, key: str) -> None:
    """Let no other transaction count or change limits of *key* until this one has ended.

    It must be the first statement of its transaction: what is read before may be out of date.
    """
    values = {"key_": key[:255]}
    if not conn.execute(_TAKE, values).rowcount:
        conn.execute(_MAKE[conn.dialect.name], values)


def user_sums(conn: sa.Connection, project_id: str, but: str = _NOBODY) -> dict[str, int]:
    """Return what the users of a project, all *but* one, were given of each resource in all."""
    values = {"project_": project_id, "user_": but}
    return {resource: int(total) for resource, total in conn.execute(_USER_SUMS, values)}


def set_limits(
    conn: sa.Connection, project_id: str, user_id: str, values: Mapping[str, int]
) -> None:
    """Store limits of a project, or with *user_id* of one user in it; the caller has the lock."""
    for resource, limit in values.items():
        key = {"project_": project_id, "user_": user_id, "resource_": resource}
        if not conn.execute(_SET, {**key, "limit_": limit}).rowcount:
            row = {"project_id": project_id, "user_id": user_id, "resource": resource}
            conn.execute(sa.insert(_l), {**row, "hard_limit": limit})


def delete_limits(conn: sa.Connection, project_id: str, user_id: str = _NOBODY) -> None:
    """Forget the limits of a user in a project, or of the project and all its users."""
    statement = sa.delete(_l).where(_l.c.project_id == project_id)
    if user_id:
        statement = statement.where(_l.c.user_id == user_id)
    conn.execute(statement)


def of_class(conn: sa.Connection, limits_of: LimitsOf, class_name: str) -> Limits:
    """Return what holds in a class: its own limit, else the option."""
    statement = sa.select(_c.c.resource, _c.c.hard_limit).where(_c.c.class_name == class_name)
    found = _of_options(limits_of)
    found.update({row.resource: row.hard_limit for row in conn.execute(statement)})
    return Limits(found, {})


def set_class_limits(conn: sa.Connection, class_name: str, values: Mapping[str, int]) -> None:
    """Store limits of a class; this is a transaction's first call."""
    lock(conn, f"class:{class_name}")
    for resource, limit in values.items():
        key = {"class_": class_name, "resource_": resource}
        if not conn.execute(_SET_CLASS, {**key, "limit_": limit}).rowcount:
            row = {"class_name": class_name, "resource": resource, "hard_limit": limit}
            conn.execute(sa.insert(_c), row)
