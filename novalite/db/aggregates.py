# SPDX-License-Identifier: Apache-2.0
"""Host aggregates: which hosts are in them, their metadata, and the zones that they make.

The API changes them, schedulers read them with each poll. Every change first writes the one row
of aggregate_changes: so two changes never check the rules of zones at the same time, and a reader
that knows the version of what it has read need not read it again.
"""

import time
import uuid as uuid_module
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from novalite import exception
from novalite.db import schema, services
from novalite.objects.aggregate import Aggregate

_t = schema.aggregates
_h = schema.aggregate_hosts
_m = schema.aggregate_metadata
_v = schema.aggregate_changes

# The key of the metadata that is the aggregate's zone.
ZONE = "availability_zone"
_IN_USE = "One or more hosts contain instances in this zone"

_VERSION = sa.select(_v.c.version)
_ALL = sa.select(_t).order_by(_t.c.id)
_METADATA = sa.select(_m).order_by(_m.c.aggregate_id, _m.c.key)
_HOSTS = sa.select(_h).order_by(_h.c.aggregate_id, _h.c.host)
# Each host that an aggregate gives a zone, with the aggregate.
_ZONES = (
    sa.select(_h.c.host, _m.c.value, _h.c.aggregate_id)
    .join(_m, _m.c.aggregate_id == _h.c.aggregate_id)
    .where(_m.c.key == ZONE)
)
_ZONE_HAS_HOSTS = _ZONES.where(_m.c.value == sa.bindparam("zone_")).limit(1)


@dataclass(slots=True)
class AggregateRecord:
    """An aggregate with its hosts and times, for the API."""

    aggregate: Aggregate
    hosts: list[str] = field(default_factory=list)
    created_at: float = 0.0
    updated_at: float | None = None


# -- reading


def of_hosts(
    conn: sa.Connection, known: int | None
) -> tuple[int, dict[str, tuple[Aggregate, ...]]] | None:
    """Return the version and each host's aggregates; None if *known* still is the version.

    The version is read first: what changes meanwhile is read again the next time.
    """
    version = int(conn.execute(_VERSION).scalar() or 0)
    if version == known:
        return None
    found: dict[str, list[Aggregate]] = {}
    for record in list_all(conn):
        for host in record.hosts:
            found.setdefault(host, []).append(record.aggregate)
    return version, {host: tuple(aggregates) for host, aggregates in found.items()}


def zones(conn: sa.Connection) -> dict[str, str]:
    """Return the zone of each host that an aggregate gives one."""
    return {row.host: row.value for row in conn.execute(_ZONES)}


def zone_has_hosts(conn: sa.Connection, zone: str) -> bool:
    """Tell whether an aggregate of this zone has a host."""
    return conn.execute(_ZONE_HAS_HOSTS, {"zone_": zone}).first() is not None


def list_all(conn: sa.Connection) -> list[AggregateRecord]:
    """Return all aggregates, the oldest first."""
    metadata: dict[int, dict[str, str]] = {}
    for row in conn.execute(_METADATA):
        metadata.setdefault(row.aggregate_id, {})[row.key] = row.value
    hosts: dict[int, list[str]] = {}
    for row in conn.execute(_HOSTS):
        hosts.setdefault(row.aggregate_id, []).append(row.host)
    return [
        _record(row, metadata.get(row.id, {}), hosts.get(row.id, [])) for row in conn.execute(_ALL)
    ]


def get(conn: sa.Connection, aggregate_id: int) -> AggregateRecord:
    """Return one aggregate.

    :raises exception.AggregateNotFound: there is none
    """
    row = conn.execute(sa.select(_t).where(_t.c.id == aggregate_id)).first()
    if row is None:
        raise exception.AggregateNotFound(aggregate_id=aggregate_id)
    metadata = conn.execute(_METADATA.where(_m.c.aggregate_id == aggregate_id))
    hosts = conn.execute(_HOSTS.where(_h.c.aggregate_id == aggregate_id))
    return _record(row, {each.key: each.value for each in metadata}, [each.host for each in hosts])


def _record(row: Any, metadata: dict[str, str], hosts: list[str]) -> AggregateRecord:
    aggregate = Aggregate(row.id, row.uuid, row.name, metadata.get(ZONE), metadata)
    return AggregateRecord(aggregate, hosts, row.created_at, row.updated_at)


# -- changing


def create(conn: sa.Connection, name: str, zone: str | None = None) -> AggregateRecord:
    """Make an aggregate without hosts.

    :raises exception.AggregateNameExists: there is one of this name
    """
    _change(conn)
    _check_name(conn, name)
    values = {"uuid": str(uuid_module.uuid4()), "name": name, "created_at": time.time()}
    made = conn.execute(sa.insert(_t).values(**values)).inserted_primary_key
    aggregate_id = int(made[0]) if made else 0
    if zone is not None:
        _put(conn, aggregate_id, {ZONE: zone})
    return get(conn, aggregate_id)


def rename(conn: sa.Connection, aggregate_id: int, name: str) -> AggregateRecord:
    """Give an aggregate another name.

    :raises exception.AggregateNotFound: there is none
    :raises exception.AggregateNameExists: there is another one of this name
    """
    _change(conn)
    get(conn, aggregate_id)
    _check_name(conn, name, aggregate_id)
    values = {"name": name, "updated_at": time.time()}
    conn.execute(sa.update(_t).where(_t.c.id == aggregate_id).values(**values))
    return get(conn, aggregate_id)


def set_metadata(
    conn: sa.Connection,
    aggregate_id: int,
    metadata: Mapping[str, str | None],
    default_zone: str,
) -> AggregateRecord:
    """Set some keys of an aggregate and remove those that are None; the others stay.

    :param default_zone: of hosts without a zone of their own
    :raises exception.AggregateNotFound: there is none
    :raises exception.AggregateUpdateRefused: a host would be in two zones, or servers in another
    """
    _change(conn)
    record = get(conn, aggregate_id)
    if ZONE in metadata:
        _check_zones(
            conn,
            {host: (record.aggregate.zone, metadata[ZONE]) for host in record.hosts},
            aggregate_id,
            default_zone,
            exception.AggregateUpdateRefused,
        )
    _put(conn, aggregate_id, metadata)
    conn.execute(sa.update(_t).where(_t.c.id == aggregate_id).values(updated_at=time.time()))
    return get(conn, aggregate_id)


def delete(conn: sa.Connection, aggregate_id: int) -> None:
    """Remove an aggregate without hosts.

    :raises exception.AggregateNotFound: there is none
    :raises exception.AggregateNotEmpty: it has hosts
    """
    _change(conn)
    if get(conn, aggregate_id).hosts:
        raise exception.AggregateNotEmpty(aggregate_id=aggregate_id)
    conn.execute(sa.delete(_m).where(_m.c.aggregate_id == aggregate_id))
    conn.execute(sa.delete(_t).where(_t.c.id == aggregate_id))


def add_host(
    conn: sa.Connection, aggregate_id: int, host: str, default_zone: str
) -> AggregateRecord:
    """Put a compute host into an aggregate.

    :param default_zone: of hosts without a zone of their own
    :raises exception.AggregateNotFound: there is none
    :raises exception.ComputeHostNotFound: there is no compute service of this name
    :raises exception.AggregateHostExists: it is in there already
    :raises exception.AggregateAddRefused: it would be in two zones, or servers in another
    """
    _change(conn)
    record = get(conn, aggregate_id)
    service = services.find(conn, host, "nova-compute")
    # Some databases find a name in capitals too; the aggregate has it as the service has.
    if service is None or service.host != host:
        raise exception.ComputeHostNotFound(host=host)
    if host in record.hosts:
        raise exception.AggregateHostExists(aggregate_id=aggregate_id, host=host)
    _check_zones(
        conn,
        {host: (None, record.aggregate.zone)},
        aggregate_id,
        default_zone,
        exception.AggregateAddRefused,
    )
    conn.execute(sa.insert(_h).values(aggregate_id=aggregate_id, host=host))
    return get(conn, aggregate_id)


def remove_host(
    conn: sa.Connection, aggregate_id: int, host: str, default_zone: str
) -> AggregateRecord:
    """Take a host out of an aggregate.

    :param default_zone: of hosts without a zone of their own
    :raises exception.AggregateNotFound: there is none
    :raises exception.AggregateHostNotFound: it has no such host
    :raises exception.AggregateRemoveRefused: servers would be in another zone
    """
    _change(conn)
    record = get(conn, aggregate_id)
    if host not in record.hosts:
        raise exception.AggregateHostNotFound(aggregate_id=aggregate_id, host=host)
    _check_zones(
        conn,
        {host: (record.aggregate.zone, None)},
        aggregate_id,
        default_zone,
        exception.AggregateRemoveRefused,
    )
    conn.execute(sa.delete(_h).where(_h.c.aggregate_id == aggregate_id, _h.c.host == host))
    return get(conn, aggregate_id)


def forget_host(conn: sa.Connection, host: str) -> None:
    """Take a host that is no more out of all aggregates."""
    if conn.execute(sa.delete(_h).where(_h.c.host == host)).rowcount:
        _change(conn)


def _change(conn: sa.Connection) -> None:
    """Count a change, and keep others from changing anything until this one is committed."""
    if not conn.execute(sa.update(_v).values(version=_v.c.version + 1)).rowcount:
        conn.execute(sa.insert(_v).values(id=1, version=1))


def _check_name(conn: sa.Connection, name: str, but: int | None = None) -> None:
    found = conn.execute(sa.select(_t.c.id).where(_t.c.name == name)).scalar()
    if found is not None and found != but:
        raise exception.AggregateNameExists(aggregate_name=name)


def _put(conn: sa.Connection, aggregate_id: int, metadata: Mapping[str, str | None]) -> None:
    for key, value in metadata.items():
        conn.execute(sa.delete(_m).where(_m.c.aggregate_id == aggregate_id, _m.c.key == key))
        if value is not None:
            values = {"aggregate_id": aggregate_id, "key": key, "value": value}
            conn.execute(sa.insert(_m).values(**values))


def _check_zones(
    conn: sa.Connection,
    moves: Mapping[str, tuple[str | None, str | None]],
    aggregate_id: int,
    default_zone: str,
    refused: type[exception.NovaliteException],
) -> None:
    """Check the rules of zones: a host is in one zone, and no server comes into another one.

    :param moves: for each host the zone that the aggregate gives it now, and then
    :raises refused: with the reason
    """
    others: dict[str, str] = {}
    for row in conn.execute(_ZONES.where(_m.c.aggregate_id != aggregate_id)):
        if row.host in moves:
            others[row.host] = row.value
    wrong = {
        others[host]
        for host, (_before, after) in moves.items()
        if after is not None and others.get(host, after) != after
    }
    if wrong:
        reason = f"One or more hosts already in availability zone(s) {sorted(wrong)}"
        raise refused(aggregate_id=aggregate_id, reason=reason)
    moved = [
        host
        for host, zones_of in moves.items()
        if len({zone or others.get(host, default_zone) for zone in zones_of}) > 1
    ]
    if services.in_use(conn, moved):
        raise refused(aggregate_id=aggregate_id, reason=_IN_USE)
