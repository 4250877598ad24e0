# SPDX-License-Identifier: Apache-2.0
"""The other servers that a request is about: those of its server group, those its hints name.

Called by the flow of a build just before it asks the scheduler, since where they are changes from
one moment to the next. Requests without group and hints cost nothing here.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from novalite.db import server_groups
from novalite.db.engine import Database
from novalite.objects.request_spec import RequestSpec

_HINTS = ("same_host", "different_host")


def fill(database: Database, specs: Sequence[RequestSpec]) -> None:
    """Set ``instance_group`` and ``hinted_hosts`` of the requests that need them.

    :raises exception.DatabaseUnavailable: nothing is set
    """
    grouped = [spec for spec in specs if spec.scheduler_hints.get("group")]
    hinted = [spec for spec in specs if _named(spec)]
    if grouped or hinted:
        database.read(lambda conn: _fill(conn, grouped, hinted))


def _fill(conn: sa.Connection, grouped: list[RequestSpec], hinted: list[RequestSpec]) -> None:
    groups = server_groups.for_requests(conn, [spec.instance_uuid for spec in grouped])
    for spec in grouped:
        spec.instance_group = groups.get(spec.instance_uuid)
    names = sorted({name for spec in hinted for name in _named(spec)})
    hosts = server_groups.hosts_of(conn, names)
    for spec in hinted:
        spec.hinted_hosts = {name: hosts[name] for name in _named(spec) if name in hosts}


def _named(spec: RequestSpec) -> list[str]:
    """Return the servers that the hints name: one, or a list."""
    found: list[str] = []
    for hint in _HINTS:
        named = spec.scheduler_hints.get(hint) or []
        found += [named] if isinstance(named, str) else named
    return found


def guarded(spec: RequestSpec) -> str | None:
    """Return the group whose policy is checked once more when the build begins, or None.

    A forced host goes past all filters, so past this too.
    """
    group = spec.instance_group
    if group is None or group.policy not in server_groups.HARD:
        return None
    return None if spec.force_host or spec.force_node else group.uuid
