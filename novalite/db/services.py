# SPDX-License-Identifier: Apache-2.0
"""Services: who is there, which start of it, and when it was last heard of."""

import uuid
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from novalite import exception
from novalite.db import schema
from novalite.db.engine import now
from novalite.db.prepared import Prepared
from novalite.objects.service import Service

_t = schema.services

# Hosts in one IN (...).
_IN = 500

_SELECT = sa.select(_t, (now() - _t.c.last_seen_up).label("age"))
_BY_NAME = _SELECT.where(_t.c.host == sa.bindparam("host_"), _t.c.binary == sa.bindparam("binary_"))
_ALL = _SELECT.order_by(_t.c.id)
_ALL_OF_KIND = _ALL.where(_t.c.binary == sa.bindparam("binary_"))
_HEARTBEAT = Prepared(
    sa.update(_t)
    .where(
        _t.c.host == sa.bindparam("host_"),
        _t.c.binary == sa.bindparam("binary_"),
        _t.c.epoch == sa.bindparam("epoch_"),
        _t.c.report_count < sa.bindparam("counter_"),
    )
    .values(report_count=sa.bindparam("counter_"), last_seen_up=now(), updated_at=now())
)


def from_row(row: Any) -> Service:
    """Make the object of a row selected with its age."""
    return Service(
        id=row.id,
        uuid=row.uuid,
        host=row.host,
        binary=row.binary,
        topic=row.topic,
        epoch=row.epoch,
        report_count=row.report_count,
        node_identity=row.node_identity,
        disabled=row.disabled,
        disabled_reason=row.disabled_reason,
        forced_down=row.forced_down,
        last_seen_up=row.last_seen_up,
        created_at=row.created_at,
        updated_at=row.updated_at,
        age=row.age,
        version=row.version,
    )


def find(conn: sa.Connection, host: str, binary: str) -> Service | None:
    """Return the service of that name or None."""
    row = conn.execute(_BY_NAME, {"host_": host, "binary_": binary}).first()
    return None if row is None else from_row(row)


def get(conn: sa.Connection, service_id: int | str) -> Service:
    """Return the service with this id (int) or uuid (str).

    :raises exception.ServiceNotFound: there is none
    """
    column = _t.c.id if isinstance(service_id, int) else _t.c.uuid
    row = conn.execute(_SELECT.where(column == service_id)).first()
    if row is None:
        raise exception.ServiceNotFound(service_id=service_id)
    return from_row(row)


def list_all(conn: sa.Connection, binary: str | None = None) -> list[Service]:
    """Return all services, of one kind if *binary* is given, in the order of their ids."""
    rows = conn.execute(_ALL) if binary is None else conn.execute(_ALL_OF_KIND, {"binary_": binary})
    return [from_row(row) for row in rows]


def register(
    conn: sa.Connection, host: str, binary: str, topic: str, identity: str, version: int = 0
) -> Service:
    """Note a start of a service: its epoch grows by one and counts as a report.

    :param version: see ``objects/service.py``; 0 if the service did not say

    :raises exception.Conflict: another node identity has this name, or this identity has another
        name; nothing is changed
    """
    _check_identity(conn, host, binary, identity)
    found = find(conn, host, binary)
    if found is None:
        conn.execute(
            sa.insert(_t).values(
                uuid=str(uuid.uuid4()),
                host=host,
                binary=binary,
                topic=topic,
                version=version,
                epoch=1,
                report_count=0,
                node_identity=identity,
                disabled=False,
                forced_down=False,
                last_seen_up=now(),
                created_at=now(),
                updated_at=now(),
            )
        )
    else:
        if identity and found.node_identity and identity != found.node_identity:
            raise exception.Conflict(
                f"host {host} is known with node identity {found.node_identity}, but this process "
                f"has {identity}: the state directory is another one, or two hosts have one name"
            )
        conn.execute(
            sa.update(_t)
            .where(_t.c.id == found.id)
            .values(
                epoch=_t.c.epoch + 1,
                report_count=0,
                node_identity=identity or found.node_identity,
                topic=topic,
                version=version,
                last_seen_up=now(),
                updated_at=now(),
            )
        )
    service = find(conn, host, binary)
    if service is None:
        raise exception.ServiceNotFound(service_id=f"{binary} on {host}")
    return service


def _check_identity(conn: sa.Connection, host: str, binary: str, identity: str) -> None:
    if not identity:
        return
    other = conn.execute(
        sa.select(_t.c.host).where(
            _t.c.node_identity == identity, _t.c.binary == binary, _t.c.host != host
        )
    ).first()
    if other is not None:
        raise exception.Conflict(
            f"the node identity in this state directory belongs to host {other.host}, not to "
            f"{host}: was the host renamed? Set host = {other.host}, or use another state_path"
        )


def heartbeat(conn: sa.Connection, host: str, binary: str, epoch: int, counter: int) -> bool:
    """Stamp a report by the database's clock; False if it is not newer than the last one."""
    values = {"host_": host, "binary_": binary, "epoch_": epoch, "counter_": counter}
    return _HEARTBEAT.execute(conn, values).rowcount == 1


def update(conn: sa.Connection, service_id: int, **values: Any) -> None:
    """Set ``disabled``, ``disabled_reason`` or ``forced_down``."""
    conn.execute(sa.update(_t).where(_t.c.id == service_id).values(updated_at=now(), **values))


def in_use(conn: sa.Connection, hosts: Sequence[str]) -> bool:
    """Tell whether servers, or open work on servers, are on one of these hosts."""
    i, a = schema.instances, schema.instance_actions
    for start in range(0, len(hosts), _IN):
        some = hosts[start : start + _IN]
        here = sa.select(i.c.id).where(i.c.host.in_(some), ~i.c.deleted)
        coming = sa.select(a.c.id).where(
            a.c.target_host.in_(some), a.c.state.in_(("pending", "running"))
        )
        if any(conn.execute(found.limit(1)).first() for found in (here, coming)):
            return True
    return False


def delete(conn: sa.Connection, service: Service) -> None:
    """Remove a service; a compute's nodes and the clean-ups of its host go with it.

    A compute that comes back under this name destroys whatever is not to be kept anyway.

    :raises exception.ServiceInUse: servers or open work are on the host
    """
    if service.binary == "nova-compute":
        if in_use(conn, [service.host]):
            raise exception.ServiceInUse()
        n = schema.compute_nodes
        conn.execute(sa.delete(n).where(n.c.host == service.host))
        c = schema.cleanups
        conn.execute(sa.delete(c).where(c.c.host == service.host))
    conn.execute(sa.delete(_t).where(_t.c.id == service.id))
