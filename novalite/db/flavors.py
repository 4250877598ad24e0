# SPDX-License-Identifier: Apache-2.0
"""Flavors, their extra specs, and which projects may use the ones that are not public.

A server keeps its own copy of its flavor, so a flavor can be deleted at any time.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from novalite import exception
from novalite.db import quota_limits, schema
from novalite.objects.flavor import Flavor

_t = schema.flavors
_a = schema.flavor_access

_FIELDS = (
    "flavorid",
    "name",
    "vcpus",
    "memory_mb",
    "root_gb",
    "ephemeral_gb",
    "swap_mb",
    "rxtx_factor",
    "disabled",
    "is_public",
    "description",
    "extra_specs",
)
SORT: dict[str, sa.ColumnElement[Any]] = {
    "flavorid": _t.c.flavorid,
    "id": _t.c.id,
    "name": _t.c.name,
    "vcpus": _t.c.vcpus,
    "memory_mb": _t.c.memory_mb,
    "root_gb": _t.c.root_gb,
    "ephemeral_gb": _t.c.ephemeral_gb,
    "swap": _t.c.swap_mb,
    "rxtx_factor": _t.c.rxtx_factor,
    # A number, since no database agrees with another on which of two truths is greater.
    "is_public": sa.case((_t.c.is_public, 1), else_=0),
    "created_at": _t.c.created_at,
    "updated_at": sa.func.coalesce(_t.c.updated_at, 0.0),
}
DEFAULT_SORT = [("flavorid", "asc")]


@dataclass(slots=True)
class Query:
    """Which flavors: ``is_public`` None is both kinds; a private flavor that *project_id* has
    access to counts as public. Sizes in MB and GB."""

    is_public: bool | None = True
    project_id: str | None = None
    disabled: bool | None = None
    min_ram: int = 0
    min_disk: int = 0
    sort: list[tuple[str, str]] = field(default_factory=lambda: list(DEFAULT_SORT))
    marker: str | None = None
    limit: int = 1000


_GET = sa.select(_t).where(_t.c.flavorid == sa.bindparam("flavorid_"))
_GET_FOR_SERVER = sa.select(
    _t, quota_limits.has_limits(sa.bindparam("owner_", type_=sa.String)).label("limited")
).where(_t.c.flavorid == sa.bindparam("flavorid_"))
_HAS_ACCESS = sa.select(_a.c.flavorid).where(
    _a.c.flavorid == sa.bindparam("flavorid_"), _a.c.project_id == sa.bindparam("project_id_")
)


def _from_row(row: Any) -> Flavor:
    return Flavor(id=row.id, **{name: getattr(row, name) for name in _FIELDS})


def get(conn: sa.Connection, flavorid: str, project_id: str | None = None) -> Flavor:
    """Return a flavor; with *project_id*, only if that project may use it.

    :raises exception.FlavorNotFound: there is none that may be seen
    """
    row = conn.execute(_GET, {"flavorid_": flavorid}).first()
    return _from_row(_seen(conn, row, flavorid, project_id))


def get_for_server(
    conn: sa.Connection, flavorid: str, owner: str, *, check_access: bool
) -> tuple[Flavor, bool]:
    """Return the flavor of a new server of project *owner*, and whether limits were set in the
    database for that project: so no statement has to be sent about quotas where there are none.

    :raises exception.FlavorNotFound: there is none, or with *check_access* none that it may use
    """
    row = conn.execute(_GET_FOR_SERVER, {"flavorid_": flavorid, "owner_": owner}).first()
    row = _seen(conn, row, flavorid, owner if check_access else None)
    return _from_row(row), bool(row.limited)


def _seen(conn: sa.Connection, row: Any, flavorid: str, project_id: str | None) -> Any:
    """Return the row of a flavor, if the project may use it.

    :raises exception.FlavorNotFound: it may not, or there is no row
    """
    if row is None:
        raise exception.FlavorNotFound(flavor_id=flavorid)
    if project_id is not None and not row.is_public:
        values = {"flavorid_": flavorid, "project_id_": project_id}
        if conn.execute(_HAS_ACCESS, values).first() is None:
            raise exception.FlavorNotFound(flavor_id=flavorid)
    return row


def page(conn: sa.Connection, query: Query) -> tuple[list[Flavor], bool]:
    """Return one page of flavors, and whether more follow.

    :raises exception.MarkerNotFound: the marker is no flavor
    """
    order = [*query.sort, ("id", "asc")]
    statement = _filtered(query).order_by(
        *(SORT[key].desc() if way == "desc" else SORT[key].asc() for key, way in order)
    )
    if query.marker is not None:
        statement = statement.where(_behind(conn, order, query.marker))
    if query.limit == 0:
        return [], False
    rows = conn.execute(statement.limit(query.limit + 1)).all()
    flavors = [_from_row(row) for row in rows[: query.limit]]
    return flavors, len(rows) > query.limit


def _filtered(query: Query) -> sa.Select[Any]:
    statement = sa.select(_t).where(_t.c.memory_mb >= query.min_ram, _t.c.root_gb >= query.min_disk)
    if query.disabled is not None:
        statement = statement.where(_t.c.disabled == query.disabled)
    if query.is_public is None:
        return statement
    condition: sa.ColumnElement[bool] = _t.c.is_public == query.is_public
    if query.is_public and query.project_id is not None:
        mine = sa.select(_a.c.flavorid).where(_a.c.project_id == query.project_id)
        condition = sa.or_(condition, _t.c.flavorid.in_(mine))
    return statement.where(condition)


def _behind(
    conn: sa.Connection, order: list[tuple[str, str]], marker: str
) -> sa.ColumnElement[bool]:
    row = conn.execute(
        sa.select(*(SORT[key].label(f"key_{n}") for n, (key, _way) in enumerate(order))).where(
            _t.c.flavorid == marker
        )
    ).first()
    if row is None:
        raise exception.MarkerNotFound(marker=marker)
    options = []
    for at, (key, way) in enumerate(order):
        same = [SORT[order[n][0]] == row[n] for n in range(at)]
        later = SORT[key] < row[at] if way == "desc" else SORT[key] > row[at]
        options.append(sa.and_(*same, later))
    return sa.or_(*options)


def create(conn: sa.Connection, flavor: Flavor) -> Flavor:
    """Store a new flavor and set its ``id``.

    :raises exception.FlavorIdExists: the flavor id is taken
    :raises exception.FlavorExists: the name is taken
    """
    if conn.execute(_GET, {"flavorid_": flavor.flavorid}).first() is not None:
        raise exception.FlavorIdExists(flavor_id=flavor.flavorid)
    values = {name: getattr(flavor, name) for name in _FIELDS}
    try:
        key = conn.execute(sa.insert(_t), values | {"created_at": time.time()}).inserted_primary_key
    except exc.IntegrityError as error:
        raise exception.FlavorExists(name=flavor.name) from error
    flavor.id = int(key[0]) if key else None
    return flavor


def describe(conn: sa.Connection, flavorid: str, description: str | None) -> Flavor:
    """Change the description, which is all of a flavor that changes; return the flavor.

    :raises exception.FlavorNotFound: there is none
    """
    values = {"description": description, "updated_at": time.time()}
    conn.execute(sa.update(_t).where(_t.c.flavorid == flavorid).values(**values))
    return get(conn, flavorid)


def delete(conn: sa.Connection, flavorid: str) -> None:
    """Remove a flavor and its access list.

    :raises exception.FlavorNotFound: there is none
    """
    if not conn.execute(sa.delete(_t).where(_t.c.flavorid == flavorid)).rowcount:
        raise exception.FlavorNotFound(flavor_id=flavorid)
    conn.execute(sa.delete(_a).where(_a.c.flavorid == flavorid))


def put_extra_specs(conn: sa.Connection, flavorid: str, specs: dict[str, str]) -> None:
    """Add or replace these extra specs.

    :raises exception.FlavorNotFound: there is none
    """
    _write_extra_specs(conn, flavorid, get(conn, flavorid).extra_specs | specs)


def delete_extra_spec(conn: sa.Connection, flavorid: str, key: str) -> None:
    """Remove one extra spec.

    :raises exception.FlavorNotFound: there is no such flavor
    :raises exception.FlavorExtraSpecNotFound: it has no such key
    """
    specs = dict(get(conn, flavorid).extra_specs)
    if key not in specs:
        raise exception.FlavorExtraSpecNotFound(flavor_id=flavorid, key=key)
    del specs[key]
    _write_extra_specs(conn, flavorid, specs)


def _write_extra_specs(conn: sa.Connection, flavorid: str, specs: dict[str, str]) -> None:
    conn.execute(
        sa.update(_t)
        .where(_t.c.flavorid == flavorid)
        .values(extra_specs=specs, updated_at=time.time())
    )


def access(conn: sa.Connection, flavorid: str) -> list[str]:
    """Return the projects that may use a flavor that is not public."""
    rows = conn.execute(
        sa.select(_a.c.project_id).where(_a.c.flavorid == flavorid).order_by(_a.c.project_id)
    )
    return [row.project_id for row in rows]


def add_access(conn: sa.Connection, flavorid: str, project_id: str) -> None:
    """Let a project use a flavor.

    :raises exception.FlavorAccessExists: it may already
    """
    try:
        conn.execute(sa.insert(_a), {"flavorid": flavorid, "project_id": project_id})
    except exc.IntegrityError as error:
        raise exception.FlavorAccessExists(flavor_id=flavorid, project_id=project_id) from error


def remove_access(conn: sa.Connection, flavorid: str, project_id: str) -> None:
    """Take a flavor from a project.

    :raises exception.FlavorAccessNotFound: the project has no access of its own
    """
    removed = conn.execute(
        sa.delete(_a).where(_a.c.flavorid == flavorid, _a.c.project_id == project_id)
    ).rowcount
    if not removed:
        raise exception.FlavorAccessNotFound(flavor_id=flavorid, project_id=project_id)
