# SPDX-License-Identifier: Apache-2.0
"""Server groups and which servers are in them.

A server joins in the transaction that stores it and leaves in the one that ends its delete, so a
group never names a server that was refused or is gone. A policy is checked once more in the
transaction that gives a server its host (:func:`violation`), under the group's row: whatever two
schedulers thought at the same time, no two members get hosts that the policy forbids.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from novalite import exception
from novalite.db import schema
from novalite.objects.request_spec import InstanceGroup
from novalite.objects.server_group import AFFINITY, ANTI_AFFINITY, ServerGroup

_g = schema.server_groups
_m = schema.server_group_members
_i = schema.instances

# Servers or groups in one IN (...).
_IN = 500

_GET = sa.select(_g).where(_g.c.uuid == sa.bindparam("uuid_"))
# Writes what is there: others who want to join wait here, and a group that goes is noticed.
_LOCK = (
    sa.update(_g)
    .where(_g.c.uuid == sa.bindparam("uuid_"), _g.c.project_id == sa.bindparam("project_id_"))
    .values(name=_g.c.name)
)
_JOIN = sa.insert(_m)
_LEAVE = sa.delete(_m).where(_m.c.instance_uuid == sa.bindparam("uuid_"))
_MEMBERS = (
    sa.select(_m.c.group_uuid, _m.c.instance_uuid)
    .join(_i, _i.c.uuid == _m.c.instance_uuid)
    .where(_m.c.group_uuid.in_(sa.bindparam("uuids", expanding=True)), ~_i.c.deleted)
    .order_by(_i.c.id)
)
_OF_INSTANCES = (
    sa.select(_m.c.instance_uuid, _m.c.group_uuid)
    .join(_g, _g.c.uuid == _m.c.group_uuid)
    .where(_m.c.instance_uuid.in_(sa.bindparam("uuids", expanding=True)))
)
_HOLD = sa.update(_g).where(_g.c.uuid == sa.bindparam("uuid_")).values(name=_g.c.name)
_GROUPS_OF = (
    sa.select(_m.c.instance_uuid, _g)
    .join(_g, _g.c.uuid == _m.c.group_uuid)
    .where(_m.c.instance_uuid.in_(sa.bindparam("uuids", expanding=True)))
)
_PLACED = (
    sa.select(_m.c.group_uuid, _i.c.uuid, _i.c.host)
    .join(_i, _i.c.uuid == _m.c.instance_uuid)
    .where(
        _m.c.group_uuid.in_(sa.bindparam("uuids", expanding=True)),
        _i.c.host.is_not(None),
        ~_i.c.deleted,
    )
)
_HOSTS = sa.select(_i.c.uuid, _i.c.host).where(
    _i.c.uuid.in_(sa.bindparam("uuids", expanding=True)), _i.c.host.is_not(None), ~_i.c.deleted
)
# The policies that are more than a wish, and Nova's words when one is not kept.
HARD = {
    ANTI_AFFINITY: "Anti-affinity instance group policy was violated.",
    AFFINITY: "Affinity instance group policy was violated.",
}


def _from_row(row: Any, members: list[str]) -> ServerGroup:
    return ServerGroup(
        uuid=row.uuid,
        project_id=row.project_id,
        user_id=row.user_id,
        name=row.name,
        policy=row.policy,
        rules=row.rules,
        members=members,
    )


def create(conn: sa.Connection, group: ServerGroup) -> None:
    """Store a new group; it has no members yet."""
    conn.execute(
        sa.insert(_g),
        {
            "uuid": group.uuid,
            "project_id": group.project_id,
            "user_id": group.user_id,
            "name": group.name,
            "policy": group.policy,
            "rules": group.rules,
            "created_at": time.time(),
        },
    )


def get(conn: sa.Connection, uuid: str, project_id: str | None = None) -> ServerGroup:
    """Return a group with its members, of this project unless None.

    :raises exception.InstanceGroupNotFound: there is none that may be seen
    """
    row = conn.execute(_GET, {"uuid_": uuid}).first()
    if row is None or (project_id is not None and row.project_id != project_id):
        raise exception.InstanceGroupNotFound(group_uuid=uuid)
    return _from_row(row, _members(conn, [row.uuid]).get(row.uuid, []))


def page(
    conn: sa.Connection, project_id: str | None, *, offset: int, limit: int
) -> list[ServerGroup]:
    """Return groups of a project (None: of all) with their members, the oldest first."""
    statement = sa.select(_g).order_by(_g.c.id).offset(offset).limit(limit)
    if project_id is not None:
        statement = statement.where(_g.c.project_id == project_id)
    rows = conn.execute(statement).all()
    members = _members(conn, [row.uuid for row in rows])
    return [_from_row(row, members.get(row.uuid, [])) for row in rows]


def _members(conn: sa.Connection, uuids: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in _in_parts(conn, _MEMBERS, uuids):
        found.setdefault(row.group_uuid, []).append(row.instance_uuid)
    return found


def delete(conn: sa.Connection, uuid: str) -> None:
    """Remove a group; its servers stay, in no group.

    :raises exception.InstanceGroupNotFound: there is none
    """
    if not conn.execute(sa.delete(_g).where(_g.c.uuid == uuid)).rowcount:
        raise exception.InstanceGroupNotFound(group_uuid=uuid)
    conn.execute(sa.delete(_m).where(_m.c.group_uuid == uuid))


def join(conn: sa.Connection, uuid: str, project_id: str, instance_uuids: Sequence[str]) -> None:
    """Put new servers of a project into one of its groups.

    :raises exception.InstanceGroupInBodyNotFound: the project has no such group
    """
    if not conn.execute(_LOCK, {"uuid_": uuid, "project_id_": project_id}).rowcount:
        raise exception.InstanceGroupInBodyNotFound(group_uuid=uuid)
    conn.execute(
        _JOIN, [{"instance_uuid": server, "group_uuid": uuid} for server in instance_uuids]
    )


def leave(conn: sa.Connection, instance_uuid: str) -> None:
    """Take a server out of its group, if it is in one."""
    conn.execute(_LEAVE, {"uuid_": instance_uuid})


def of_instances(conn: sa.Connection, uuids: Sequence[str]) -> dict[str, str]:
    """Return server -> group for those of the servers that are in one."""
    rows = _in_parts(conn, _OF_INSTANCES, uuids)
    return {row.instance_uuid: row.group_uuid for row in rows}


# -- where members are


def for_requests(conn: sa.Connection, uuids: Sequence[str]) -> dict[str, InstanceGroup]:
    """Return the group of each of these servers that is in one, with where its members are."""
    found: dict[str, InstanceGroup] = {}
    groups: dict[str, InstanceGroup] = {}
    for row in _in_parts(conn, _GROUPS_OF, uuids):
        if row.uuid not in groups:
            groups[row.uuid] = InstanceGroup(row.uuid, row.policy, row.rules)
        found[row.instance_uuid] = groups[row.uuid]
    for row in _in_parts(conn, _PLACED, list(groups)):
        groups[row.group_uuid].placed[row.uuid] = row.host
    return found


def hosts_of(conn: sa.Connection, uuids: Sequence[str]) -> dict[str, str]:
    """Return the service hosts of those of these servers that have one."""
    return {row.uuid: row.host for row in _in_parts(conn, _HOSTS, uuids)}


def violation(conn: sa.Connection, group_uuid: str, instance_uuid: str, host: str) -> str | None:
    """Tell why a member may not be placed on *host*, in Nova's words; None if it may.

    Others who place members of the group wait until the caller's transaction ends. The soft
    policies, and a group that is gone, allow everything.
    """
    if not conn.execute(_HOLD, {"uuid_": group_uuid}).rowcount:
        return None
    group = conn.execute(_GET, {"uuid_": group_uuid}).one()
    hosts = [
        row.host
        for row in conn.execute(_PLACED, {"uuids": [group_uuid]})
        if row.uuid != instance_uuid
    ]
    here = hosts.count(host)
    if group.policy == ANTI_AFFINITY:
        broken = here >= int(group.rules.get("max_server_per_host", 1))
    else:
        broken = group.policy == AFFINITY and bool(hosts) and not here
    return HARD[group.policy] if broken else None


def _in_parts(conn: sa.Connection, statement: Any, uuids: Sequence[str]) -> Iterator[Any]:
    for start in range(0, len(uuids), _IN):
        yield from conn.execute(statement, {"uuids": uuids[start : start + _IN]})
