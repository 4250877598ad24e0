# SPDX-License-Identifier: Apache-2.0
"""Whether more fits into what a project and its users may have: usage and the check.

Called by the API inside the transaction that makes what is counted. That transaction writes the
lock row first, so two of one project never count at the same time; nothing is stored about usage
but the rows that are counted, so a delete frees exactly once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from novalite import exception
from novalite.db import quota_limits, schema
from novalite.db.quota_limits import RESOURCES, Limits, LimitsOf

SERVERS = ("instances", "cores", "ram")
_i = schema.instances
_k = schema.key_pairs
_g = schema.server_groups
_m = schema.server_group_members

_mine = _i.c.user_id == sa.bindparam("user_")
_SERVERS = sa.select(
    sa.func.count().label("instances"),
    sa.func.coalesce(sa.func.sum(_i.c.vcpus), 0).label("cores"),
    sa.func.coalesce(sa.func.sum(_i.c.memory_mb), 0).label("ram"),
    sa.func.coalesce(sa.func.sum(sa.case((_mine, 1), else_=0)), 0).label("my_instances"),
    sa.func.coalesce(sa.func.sum(sa.case((_mine, _i.c.vcpus), else_=0)), 0).label("my_cores"),
    sa.func.coalesce(sa.func.sum(sa.case((_mine, _i.c.memory_mb), else_=0)), 0).label("my_ram"),
).where(_i.c.project_id == sa.bindparam("project_"), ~_i.c.deleted)
_KEY_PAIRS = sa.select(sa.func.count()).where(_k.c.user_id == sa.bindparam("user_"))
_GROUPS = sa.select(
    sa.func.count().label("all"),
    sa.func.coalesce(
        sa.func.sum(sa.case((_g.c.user_id == sa.bindparam("user_"), 1), else_=0)), 0
    ).label("mine"),
).where(_g.c.project_id == sa.bindparam("project_"))
_MEMBERS = (
    sa.select(
        sa.func.count().label("all"),
        sa.func.coalesce(sa.func.sum(sa.case((_mine, 1), else_=0)), 0).label("mine"),
    )
    .join(_i, _i.c.uuid == _m.c.instance_uuid)
    .where(_m.c.group_uuid == sa.bindparam("group_"), ~_i.c.deleted)
)
_REFUSALS: dict[str, type[exception.OverQuota]] = {
    "key_pairs": exception.KeypairLimitExceeded,
    "server_groups": exception.ServerGroupLimitExceeded,
    "server_group_members": exception.ServerGroupMemberLimitExceeded,
}


@dataclass(frozen=True, slots=True)
class Usage:
    """What a project has of one resource, and what of that is one user's."""

    project: int = 0
    user: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Equal servers that are asked for: at least ``least``, at best ``most``; memory in MB."""

    vcpus: int
    memory_mb: int
    least: int
    most: int
    metadata_items: int = 0

    def each(self) -> dict[str, int]:
        """Return what one of them takes."""
        return {"instances": 1, "cores": self.vcpus, "ram": self.memory_mb}


def enforce(
    conn: sa.Connection,
    limits_of: LimitsOf,
    project_id: str,
    user_id: str,
    wanted: Mapping[str, int],
    *,
    group_uuid: str = "",
) -> None:
    """Refuse what would pass a limit, before the transaction makes it.

    :param limits_of: the limit of a resource's option, see ``novalite.api.quotas.options``
    :param wanted: how much more of which resources, memory in MB
    :param group_uuid: the group that ``server_group_members`` are counted of
    :raises exception.OverQuota: naming every resource that is short
    """
    if not any(limits_of(resource) >= 0 for resource in wanted):
        if conn.execute(quota_limits.HAS_LIMITS, {"project_": project_id}).first() is None:
            return
    quota_limits.lock(conn, _lock_key(project_id, user_id, wanted))
    found = quota_limits.limits(conn, limits_of, project_id, user_id)
    usage = _count(conn, found, project_id, user_id, wanted, group_uuid)
    over = _over(found, usage, wanted)
    if over:
        raise _refusal(found, usage, over, {name: str(wanted[name]) for name in over})


def admit(
    conn: sa.Connection,
    limits_of: LimitsOf,
    project_id: str,
    user_id: str,
    batch: Batch,
    *,
    has_limits: bool = True,
) -> int:
    """Return how many of these servers fit; they are to be made in this same transaction.

    :param has_limits: False if it is known that nothing was set in the database; then, with all
        options unlimited, nothing is locked, read or counted
    :raises exception.OverQuota: not even ``least`` of them fit
    :raises exception.MetadataLimitExceeded: too many metadata items each
    """
    if not has_limits and not any(limits_of(resource) >= 0 for resource in SERVERS):
        check_metadata(limits_of("metadata_items"), batch.metadata_items)
        return batch.most
    quota_limits.lock(conn, project_id)
    found = quota_limits.limits(conn, limits_of, project_id, user_id)
    check_metadata(found.effective("metadata_items"), batch.metadata_items)
    each = batch.each()
    usage = _count(conn, found, project_id, user_id, each, "")
    fits = min(
        (_room(found, usage, name) // need for name, need in each.items() if found.bound(name)),
        default=batch.most,
    )
    if fits >= batch.most:
        return batch.most
    if fits >= batch.least:
        return int(fits)
    over = _over(found, usage, {name: need * batch.most for name, need in each.items()})
    shown = {name: str(each[name] * batch.most) for name in over}
    if "instances" in over and batch.least != batch.most:
        shown["instances"] = f"{batch.least}-{batch.most}"
    raise _refusal(found, usage, over, shown)


def check_metadata(limit: int, items: int) -> None:
    """Refuse more metadata items than one server may have.

    :raises exception.MetadataLimitExceeded: naming the limit
    """
    if 0 <= limit < items:
        raise exception.MetadataLimitExceeded(allowed=limit)


def usages(conn: sa.Connection, project_id: str, user_id: str | None = None) -> dict[str, Usage]:
    """Return what is in use, as far as it belongs to a project; key pairs belong to users and
    members to groups, so neither is in here."""
    values = {"project_": project_id, "user_": user_id or ""}
    row = conn.execute(_GROUPS, values).one()
    return {
        **_servers(conn, project_id, user_id or ""),
        "server_groups": Usage(int(row[0]), int(row.mine)),
    }


def _lock_key(project_id: str, user_id: str, wanted: Mapping[str, int]) -> str:
    # A user has the same key pairs in every project.
    return f"user:{user_id}" if "key_pairs" in wanted else project_id


def _servers(conn: sa.Connection, project_id: str, user_id: str) -> dict[str, Usage]:
    row = conn.execute(_SERVERS, {"project_": project_id, "user_": user_id}).one()._mapping
    return {name: Usage(int(row[name]), int(row[f"my_{name}"])) for name in SERVERS}


def _count(
    conn: sa.Connection,
    found: Limits,
    project_id: str,
    user_id: str,
    wanted: Iterable[str],
    group_uuid: str,
) -> dict[str, Usage]:
    """Count what is limited of *wanted*."""
    bound = {name for name in wanted if found.bound(name)}
    values = {"project_": project_id, "user_": user_id}
    usage: dict[str, Usage] = {}
    if bound.intersection(SERVERS):
        usage.update(_servers(conn, project_id, user_id))
    if "key_pairs" in bound:
        number = int(conn.execute(_KEY_PAIRS, {"user_": user_id}).scalar_one())
        usage["key_pairs"] = Usage(number, number)
    if "server_groups" in bound:
        usage["server_groups"] = Usage(*map(int, conn.execute(_GROUPS, values).one()))
    if "server_group_members" in bound:
        row = conn.execute(_MEMBERS, {"group_": group_uuid, "user_": user_id}).one()
        usage["server_group_members"] = Usage(*map(int, row))
    return usage


def _tightest(found: Limits, usage: Mapping[str, Usage], resource: str) -> tuple[int, int]:
    """Return used and allowed of the level, project or user, that leaves the least room."""
    project, user = found.of(resource)
    used = usage.get(resource, Usage())
    pairs = [(used.project, project), (used.user, user)]
    return min(
        (pair for pair in pairs if pair[1] >= 0),
        key=lambda pair: pair[1] - pair[0],
    )


def _room(found: Limits, usage: Mapping[str, Usage], resource: str) -> int:
    used, allowed = _tightest(found, usage, resource)
    return max(allowed - used, 0)


def _over(found: Limits, usage: Mapping[str, Usage], wanted: Mapping[str, int]) -> list[str]:
    return [
        name
        for name in RESOURCES
        if wanted.get(name, 0) > 0
        and found.bound(name)
        and wanted[name] > _room(found, usage, name)
    ]


def _refusal(
    found: Limits, usage: Mapping[str, Usage], over: list[str], shown: Mapping[str, str]
) -> exception.OverQuota:
    pairs = [_tightest(found, usage, name) for name in over]
    kind = _REFUSALS.get(over[0], exception.OverQuota)
    return kind(
        overs=", ".join(over),
        req=", ".join(shown[name] for name in over),
        used=", ".join(str(used) for used, _allowed in pairs),
        allowed=", ".join(str(allowed) for _used, allowed in pairs),
    )
