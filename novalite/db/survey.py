# SPDX-License-Identifier: Apache-2.0
"""What has to be known about a whole database before and after an upgrade.

Used by ``novalite-status`` and ``novalite-manage db sync``; nothing here writes.
"""

import sqlalchemy as sa

from novalite import exception
from novalite.db import actions, quota_limits, quotas, schema
from novalite.db.engine import Database, now

# Kinds of actions that the conductors of this program drive.
KINDS = frozenset({"create", "delete", "forceDelete"})

_a = schema.instance_actions
_s = schema.services
_n = schema.compute_nodes
_i = schema.instances

# Columns of the first revision only: a database of any revision must answer.
_OPEN = (
    sa.select(_a.c.action, sa.func.count())
    .where(_a.c.state.in_(actions.OPEN))
    .group_by(_a.c.action)
    .order_by(_a.c.action)
)
_OVERDUE = sa.select(sa.func.count()).where(
    _a.c.state.in_(actions.OPEN), _a.c.deadline < now() - sa.bindparam("seconds_")
)
_HOSTS_WITHOUT = (
    sa.select(_s.c.host)
    .where(_s.c.binary == "nova-compute", ~sa.exists().where(_n.c.host == _s.c.host))
    .order_by(_s.c.host)
)
_NODES_WITHOUT = (
    sa.select(_n.c.hypervisor_hostname)
    .where(~sa.exists().where(_s.c.host == _n.c.host, _s.c.binary == "nova-compute"))
    .order_by(_n.c.hypervisor_hostname)
)
_PROJECTS = sa.select(_i.c.project_id).where(~_i.c.deleted).distinct().order_by(_i.c.project_id)


def open_actions(conn: sa.Connection) -> dict[str, int]:
    """Return the number of open actions of each kind."""
    return {str(kind): int(count) for kind, count in conn.execute(_OPEN)}


def overdue_actions(conn: sa.Connection, seconds: float) -> int:
    """Return how many open actions have waited *seconds* longer than they should."""
    return int(conn.execute(_OVERDUE, {"seconds_": seconds}).scalar_one())


def unknown_kinds(found: dict[str, int]) -> dict[str, int]:
    """Return those of the open actions that nobody would drive after an upgrade to this program."""
    return {kind: count for kind, count in found.items() if kind not in KINDS}


def check_drained(database: Database) -> None:
    """Refuse to change the tables while there is work that this program does not know.

    :raises exception.ConfigurationError: naming the kinds and what to do
    """

    def look(conn: sa.Connection) -> dict[str, int]:
        if not sa.inspect(conn).has_table(_a.name):
            return {}
        return unknown_kinds(open_actions(conn))

    found = database.read(look)
    if found:
        raise exception.ConfigurationError(
            reason=f"open actions that this program does not drive: {words(found)}; let the "
            "conductors of the program that accepted them finish them, or end them with "
            "reset-state or delete, then run this again. Nothing was changed."
        )


def words(counts: dict[str, int]) -> str:
    """Return counts by name as a text."""
    return ", ".join(f"{name} ({count})" for name, count in counts.items())


def hosts_without_nodes(conn: sa.Connection) -> list[str]:
    """Return compute hosts that have never told what they have."""
    return [str(host) for host in conn.execute(_HOSTS_WITHOUT).scalars()]


def nodes_without_hosts(conn: sa.Connection) -> list[str]:
    """Return compute nodes whose service is gone."""
    return [str(node) for node in conn.execute(_NODES_WITHOUT).scalars()]


def projects_over_quota(
    conn: sa.Connection, limits_of: quota_limits.LimitsOf
) -> dict[str, list[str]]:
    """Return, for each project that has more than it may, the resources with used and limit."""
    over: dict[str, list[str]] = {}
    for project in list(conn.execute(_PROJECTS).scalars()):
        used = quotas.usages(conn, str(project))
        limits = quota_limits.limits(conn, limits_of, str(project)).project
        found = [
            f"{name} {used[name].project} of {limits[name]}"
            for name in used
            if 0 <= limits[name] < used[name].project
        ]
        if found:
            over[str(project)] = found
    return over
