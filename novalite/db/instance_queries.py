# SPDX-License-Identifier: Apache-2.0
"""Servers as the API reads them: one, or a page of a list in any order with any filters.

Rows come out with their JSON columns as text, because the API shows many rows that share a few
texts; who needs objects uses db/instances.py. What SQL would answer differently on each database
(regular expressions, members of JSON lists) is a Python predicate on the row: then the list is
read in chunks until the page is full.
"""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from novalite import exception
from novalite.db import instances, schema
from novalite.objects.instance import InstanceFault

_t = schema.instances
_f = schema.instance_faults

# Read in one go when predicates have to look at each row.
CHUNK = 500
# Values in one IN (...).
_IN = 500


def _raw(column: sa.Column[Any]) -> sa.Label[Any]:
    return sa.type_coerce(column, sa.Text).label(column.name)


def _selected(names: Iterable[str]) -> list[Any]:
    return [
        _raw(_t.c[name]) if isinstance(_t.c[name].type, schema.Json) else _t.c[name]
        for name in names
    ]


SUMMARY = ("id", "uuid", "display_name", "hostname", "network_info", "tags")
DETAIL = (
    "id",
    "uuid",
    "project_id",
    "user_id",
    "display_name",
    "display_description",
    "hostname",
    "vm_state",
    "task_state",
    "power_state",
    "host",
    "node",
    "availability_zone",
    "image_ref",
    "flavor",
    "key_name",
    "user_data",
    "config_drive",
    "reservation_id",
    "launch_index",
    "access_ip_v4",
    "access_ip_v6",
    "disk_config",
    "root_device_name",
    "locked",
    "locked_by",
    "locked_reason",
    "trusted_certs",
    "metadata",
    "tags",
    "security_groups",
    "network_info",
    "block_devices",
    "created_at",
    "updated_at",
    "launched_at",
    "terminated_at",
    "deleted",
)
_SUMMARY_COLUMNS = _selected(SUMMARY)
_DETAIL_COLUMNS = _selected(DETAIL)

# What a list can be sorted by: the API's word -> an expression without NULL, since each database
# puts NULL somewhere else.
SORT: dict[str, sa.ColumnElement[Any]] = {
    "uuid": _t.c.uuid,
    "created_at": _t.c.created_at,
    "updated_at": sa.func.coalesce(_t.c.updated_at, 0.0),
    "launched_at": sa.func.coalesce(_t.c.launched_at, 0.0),
    "terminated_at": sa.func.coalesce(_t.c.terminated_at, 0.0),
    "display_name": _t.c.display_name,
    "display_description": sa.func.coalesce(_t.c.display_description, ""),
    "hostname": _t.c.hostname,
    "host": sa.func.coalesce(_t.c.host, ""),
    "node": sa.func.coalesce(_t.c.node, ""),
    "availability_zone": sa.func.coalesce(_t.c.availability_zone, ""),
    "project_id": _t.c.project_id,
    "user_id": _t.c.user_id,
    "image_ref": _t.c.image_ref,
    "instance_type_id": _t.c.flavorid,
    "key_name": sa.func.coalesce(_t.c.key_name, ""),
    "launch_index": _t.c.launch_index,
    "vm_state": _t.c.vm_state,
    "task_state": sa.func.coalesce(_t.c.task_state, ""),
    "power_state": _t.c.power_state,
    "access_ip_v4": sa.func.coalesce(_t.c.access_ip_v4, ""),
    "access_ip_v6": sa.func.coalesce(_t.c.access_ip_v6, ""),
    "auto_disk_config": _t.c.disk_config,
    "root_device_name": sa.func.coalesce(_t.c.root_device_name, ""),
    "locked_by": sa.func.coalesce(_t.c.locked_by, ""),
    # Numbers, since no database agrees with another on which of two truths is greater.
    "locked": sa.case((_t.c.locked, 1), else_=0),
    "config_drive": sa.case((_t.c.config_drive, 1), else_=0),
}
DEFAULT_SORT = [("created_at", "desc")]

Predicate = Callable[[Any], bool]


@dataclass(slots=True)
class Query:
    """Which servers, in which order.

    ``project_id`` None is every project. ``deleted`` None is both kinds. ``equal`` maps a column
    to the values it may have, None among them for NULL. ``seconds`` maps a column to the second in
    which its time lies. ``marker`` is the uuid after which the page begins. Times are seconds since
    the epoch; those that are shown without fractions are compared without them.
    """

    project_id: str | None = None
    deleted: bool | None = False
    changes_since: float | None = None
    changes_before: float | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    equal: dict[str, list[Any]] = field(default_factory=dict)
    predicates: list[Predicate] = field(default_factory=list)
    sort: list[tuple[str, str]] = field(default_factory=lambda: list(DEFAULT_SORT))
    marker: str | None = None
    limit: int = 1000


_BY_UUID = sa.select(*_DETAIL_COLUMNS).where(_t.c.uuid == sa.bindparam("uuid_"))


def get_row(
    conn: sa.Connection, uuid: str, project_id: str | None = None, *, read_deleted: bool = False
) -> Any:
    """Return one server as a row with the DETAIL columns, of this project unless None.

    :raises exception.InstanceNotFound: there is none that may be seen
    """
    row = conn.execute(_BY_UUID, {"uuid_": uuid}).first()
    if row is None or (row.deleted and not read_deleted):
        raise exception.InstanceNotFound(instance_id=uuid)
    if project_id is not None and row.project_id != project_id:
        raise exception.InstanceNotFound(instance_id=uuid)
    return row


def page(conn: sa.Connection, query: Query, *, detail: bool) -> tuple[list[Any], bool]:
    """Return the rows of one page, and whether more follow.

    :raises exception.MarkerNotFound: the marker is no server of the project
    """
    order = [(SORT[key], direction) for key, direction in query.sort if key in SORT]
    order.append((_t.c.id, query.sort[0][1] if query.sort else "desc"))
    after = _marker_values(conn, query, order) if query.marker is not None else None
    if query.limit == 0:
        return [], False
    statement = _statement(query, order, detail)
    wanted = query.limit + 1
    found: list[Any] = []
    while True:
        size = CHUNK if query.predicates else wanted
        chunk = statement if after is None else statement.where(_behind(order, after))
        rows = conn.execute(chunk.limit(size)).all()
        for row in rows:
            if all(predicate(row) for predicate in query.predicates):
                found.append(row)
                if len(found) == wanted:
                    return found[:-1], True
        if len(rows) < size:
            return found, False
        after = list(rows[-1][-len(order) :])


def _statement(query: Query, order: list[tuple[Any, str]], detail: bool) -> sa.Select[Any]:
    columns = _DETAIL_COLUMNS if detail else _SUMMARY_COLUMNS
    keys = [expression.label(f"sort_{n}") for n, (expression, _way) in enumerate(order)]
    statement = sa.select(*columns, *keys)
    if query.project_id is not None:
        statement = statement.where(_t.c.project_id == query.project_id)
    if query.deleted is not None:
        statement = statement.where(_t.c.deleted == query.deleted)
    changed = sa.func.coalesce(_t.c.updated_at, _t.c.created_at)
    if query.changes_since is not None:
        statement = statement.where(changed >= query.changes_since)
    if query.changes_before is not None:
        statement = statement.where(changed < math.floor(query.changes_before) + 1.0)
    for name, moment in query.seconds.items():
        second = math.floor(moment)
        statement = statement.where(_t.c[name] >= second, _t.c[name] < second + 1.0)
    for name, values in query.equal.items():
        statement = statement.where(_one_of(_t.c[name], values))
    return statement.order_by(
        *(expression.desc() if way == "desc" else expression.asc() for expression, way in order)
    )


def _one_of(column: sa.Column[Any], values: list[Any]) -> sa.ColumnElement[bool]:
    known = [value for value in values if value is not None]
    condition: sa.ColumnElement[bool] = column.in_(known) if known else sa.false()
    if None in values:
        condition = sa.or_(condition, column.is_(None))
    return condition


def _marker_values(conn: sa.Connection, query: Query, order: list[tuple[Any, str]]) -> list[Any]:
    """Return the marker's place in the order; a marker that was deleted meanwhile still has one."""
    statement = sa.select(*(expression for expression, _way in order)).where(
        _t.c.uuid == query.marker
    )
    if query.project_id is not None:
        statement = statement.where(_t.c.project_id == query.project_id)
    row = conn.execute(statement).first()
    if row is None:
        raise exception.MarkerNotFound(marker=query.marker)
    return list(row)


def _behind(order: list[tuple[Any, str]], values: list[Any]) -> sa.ColumnElement[bool]:
    """Return the condition for rows that come after *values* in the order."""
    options = []
    for at, (expression, way) in enumerate(order):
        same = [order[n][0] == values[n] for n in range(at)]
        later = expression < values[at] if way == "desc" else expression > values[at]
        options.append(sa.and_(*same, later))
    return sa.or_(*options)


def faults(conn: sa.Connection, uuids: list[str]) -> dict[str, InstanceFault]:
    """Return the latest fault of each of these servers that has one."""
    found: dict[str, InstanceFault] = {}
    for start in range(0, len(uuids), _IN):
        latest = (
            sa.select(sa.func.max(_f.c.id))
            .where(_f.c.instance_uuid.in_(uuids[start : start + _IN]))
            .group_by(_f.c.instance_uuid)
        )
        for row in conn.execute(sa.select(_f).where(_f.c.id.in_(latest))):
            found[row.instance_uuid] = instances.fault_from_row(row)
    return found


def exists(conn: sa.Connection, uuid: str) -> bool:
    """Tell whether a server with this uuid was ever stored."""
    return conn.execute(sa.select(_t.c.id).where(_t.c.uuid == uuid)).first() is not None


def update(conn: sa.Connection, uuid: str, values: dict[str, Any]) -> None:
    """Set what a user may change of a server by PUT.

    :raises exception.InstanceNotFound: it is gone meanwhile
    """
    changed = conn.execute(
        sa.update(_t)
        .where(_t.c.uuid == uuid, ~_t.c.deleted)
        .values(updated_at=time.time(), **values)
    ).rowcount
    if not changed:
        raise exception.InstanceNotFound(instance_id=uuid)


def on_nodes(conn: sa.Connection) -> dict[tuple[str, str], list[dict[str, str]]]:
    """Return the servers of every (host, node), as name on the hypervisor and uuid."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    rows = conn.execute(
        sa.select(_t.c.host, _t.c.node, _t.c.id, _t.c.uuid)
        .where(_t.c.host.is_not(None), ~_t.c.deleted)
        .order_by(_t.c.id)
    )
    for row in rows:
        server = {"name": f"instance-{row.id:08x}", "uuid": row.uuid}
        found.setdefault((row.host, row.node or ""), []).append(server)
    return found
