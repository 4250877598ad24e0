# SPDX-License-Identifier: Apache-2.0
"""Which servers existed in a span of time, for the usage of projects. Deleted ones count too."""

import json
from typing import Any

import sqlalchemy as sa

from novalite import exception
from novalite.db import schema
from novalite.objects import base
from novalite.objects.flavor import Flavor
from novalite.objects.usage import ServerUsage

_t = schema.instances
_COLUMNS = (
    _t.c.uuid,
    _t.c.project_id,
    _t.c.display_name,
    _t.c.vm_state,
    # As text: many servers share a flavor, and it is read once for all of them.
    sa.type_coerce(_t.c.flavor, sa.Text).label("flavor"),
    _t.c.launched_at,
    _t.c.terminated_at,
)


def page(
    conn: sa.Connection,
    *,
    start: float,
    stop: float,
    project_id: str | None,
    marker: str | None,
    limit: int,
) -> tuple[list[ServerUsage], bool]:
    """Return servers that ran between *start* and *stop*, by project and uuid, and whether more
    follow. One that was never launched used nothing and is not among them.

    :param project_id: of this project only; None is all of them
    :param marker: the uuid after which the page begins
    :raises exception.MarkerNotFound: the marker is no server, or none of the project
    """
    statement = (
        sa.select(*_COLUMNS)
        .where(
            _t.c.launched_at < stop,
            sa.or_(_t.c.terminated_at.is_(None), _t.c.terminated_at > start),
        )
        .order_by(_t.c.project_id, _t.c.uuid)
    )
    if project_id is not None:
        statement = statement.where(_t.c.project_id == project_id)
    if marker is not None:
        statement = statement.where(_behind(conn, marker, project_id))
    if limit == 0:
        return [], False
    rows = conn.execute(statement.limit(limit + 1)).all()
    flavors: dict[str, Flavor] = {}
    return [_from_row(row, flavors) for row in rows[:limit]], len(rows) > limit


def _behind(conn: sa.Connection, marker: str, project_id: str | None) -> sa.ColumnElement[bool]:
    row = conn.execute(sa.select(_t.c.project_id).where(_t.c.uuid == marker)).first()
    if row is None or project_id not in (None, row.project_id):
        raise exception.MarkerNotFound(marker=marker)
    return sa.or_(
        _t.c.project_id > row.project_id,
        sa.and_(_t.c.project_id == row.project_id, _t.c.uuid > marker),
    )


def _from_row(row: Any, flavors: dict[str, Flavor]) -> ServerUsage:
    flavor = flavors.get(row.flavor)
    if flavor is None:
        flavor = flavors[row.flavor] = base.decode(json.loads(row.flavor))
    return ServerUsage(
        uuid=row.uuid,
        project_id=row.project_id,
        name=row.display_name,
        vm_state=row.vm_state,
        flavor=flavor,
        launched_at=row.launched_at,
        terminated_at=row.terminated_at,
    )
