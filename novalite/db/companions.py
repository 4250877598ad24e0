# SPDX-License-Identifier: Apache-2.0
"""The other servers that a request is about: those of its server group, those its hints name.

Read just before a scheduler is asked, by the flow of a build and by questions of the API, since
where they are changes from one moment to the next.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from novalite.db import server_groups
from novalite.objects.request_spec import RequestSpec

_HINTS = ("same_host", "different_host")


def needed(spec: RequestSpec) -> bool:
    """Tell whether a request has a group or names servers; most have neither."""
    return bool(spec.scheduler_hints.get("group") or _named(spec))


def fill(conn: sa.Connection, specs: Sequence[RequestSpec]) -> None:
    """Set ``instance_group`` and ``hinted_hosts`` of the requests that need them."""
    grouped = [spec for spec in specs if spec.scheduler_hints.get("group")]
    hinted = [spec for spec in specs if _named(spec)]
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
