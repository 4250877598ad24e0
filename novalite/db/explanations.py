# SPDX-License-Identifier: Apache-2.0
"""Everything that explains one server, read in one transaction."""

from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from novalite import exception
from novalite.db import actions, companions, instances, schema, services
from novalite.objects import base
from novalite.objects.history import History
from novalite.objects.instance import InstanceFault
from novalite.objects.request_spec import RequestSpec
from novalite.objects.service import Service
from novalite.objects.states import ActionState

_a = schema.instance_actions
_c = schema.cleanups
_r = schema.request_specs

# So many of the latest actions are read, and so many of the latest steps of each.
ACTIONS = 10
EVENTS = 200

_LATEST = (
    sa.select(_a)
    .where(_a.c.instance_uuid == sa.bindparam("uuid_"))
    .order_by(_a.c.id.desc())
    .limit(ACTIONS + 1)
)
_CREATE = (
    sa.select(_a)
    .where(_a.c.instance_uuid == sa.bindparam("uuid_"), _a.c.action == "create")
    .order_by(_a.c.id.desc())
    .limit(1)
)
_MEMBERS = (
    sa.select(sa.func.count())
    .select_from(_a)
    .where(_a.c.reservation_id == sa.bindparam("reservation_"), _a.c.action == "create")
)
_SPEC = sa.select(_r.c.spec).where(_r.c.instance_uuid == sa.bindparam("uuid_"))
_CLEANUPS = sa.select(_c.c.host).where(_c.c.instance_uuid == sa.bindparam("uuid_"))


@dataclass(slots=True)
class Found:
    """What the tables know of a server; ``histories`` the latest action first.

    ``more`` tells that there are older actions than these.
    """

    histories: list[History] = field(default_factory=list)
    more: bool = False
    fault: InstanceFault | None = None
    cleanups: list[str] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)


def read(conn: sa.Connection, uuid: str) -> Found:
    """Return what explains a server; of a long history the latest actions and the create."""
    rows = conn.execute(_LATEST, {"uuid_": uuid}).all()
    more = len(rows) > ACTIONS
    kept = list(rows[:ACTIONS])
    if more:
        kept.extend(row for row in conn.execute(_CREATE, {"uuid_": uuid}) if row not in kept)
    return Found(
        histories=[_history(conn, row) for row in kept],
        more=more,
        fault=instances.last_fault(conn, uuid),
        cleanups=[str(row.host) for row in conn.execute(_CLEANUPS, {"uuid_": uuid})],
        services=services.list_all(conn),
    )


def request(conn: sa.Connection, uuid: str) -> RequestSpec:
    """Return what was asked for with a server, as a scheduler would be asked now.

    With the hosts where its build has failed, and where the servers are that it is about.

    :raises exception.InstanceNotFound: its request is not kept
    """
    packed = conn.scalar(_SPEC, {"uuid_": uuid})
    if packed is None:
        raise exception.InstanceNotFound(instance_id=uuid)
    spec: RequestSpec = base.decode(packed)
    create = conn.execute(_CREATE, {"uuid_": uuid}).first()
    if create is not None and create.state != ActionState.DONE.value:
        spec.ignore_hosts = list(actions.from_row(create).failures)
    if companions.needed(spec):
        companions.fill(conn, [spec])
    return spec


def _history(conn: sa.Connection, row: Any) -> History:
    action = actions.from_row(row)
    members = 1
    if action.action == "create" and action.reservation_id:
        members = int(conn.scalar(_MEMBERS, {"reservation_": action.reservation_id}) or 1)
    return History(action, actions.events(conn, action.id)[-EVENTS:], members)
