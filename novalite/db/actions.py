# SPDX-License-Identifier: Apache-2.0
"""Instance actions and their events: history for the API, intent for the conductor."""

import time
from typing import Any

import sqlalchemy as sa

from novalite import context as context_module
from novalite import exception
from novalite.db import schema
from novalite.db.engine import now
from novalite.db.prepared import Prepared
from novalite.objects.action import Action, ActionEvent
from novalite.objects.states import ActionState, Step

_a = schema.instance_actions
_e = schema.instance_action_events

OPEN = (ActionState.PENDING.value, ActionState.RUNNING.value)

_INSERT = Prepared(sa.insert(_a).values(deadline=now() + sa.bindparam("lease")))
_GET = sa.select(_a).where(_a.c.id == sa.bindparam("action_id_"))
_CLOSE = (
    sa.update(_a)
    .where(_a.c.id == sa.bindparam("action_id_"), _a.c.state.in_(OPEN))
    .values(
        state=sa.bindparam("state_"),
        message=sa.bindparam("message_"),
        owner=None,
        finish=sa.bindparam("finish_"),
        updated=sa.bindparam("finish_"),
    )
)
_ADD_EVENTS = Prepared(sa.insert(_e).inline())
_DROP_EVENTS = sa.delete(_e).where(
    _e.c.action_id == sa.bindparam("action_id_"),
    _e.c.attempt == sa.bindparam("attempt_"),
    _e.c.event.in_(sa.bindparam("events_", expanding=True)),
)


def from_row(row: Any) -> Action:
    """Make the object of a row of the instance_actions table."""
    return Action(
        id=row.id,
        request_id=row.request_id,
        instance_uuid=row.instance_uuid,
        action=row.action,
        project_id=row.project_id,
        user_id=row.user_id,
        state=ActionState(row.state),
        step=Step(row.step),
        attempt=row.attempt,
        failures=row.failures,
        drives=row.drives,
        recasts=row.recasts,
        target_host=row.target_host,
        target_node=row.target_node,
        owner=row.owner,
        token=row.token,
        deadline=row.deadline,
        reservation_id=row.reservation_id,
        args=row.args,
        start=row.start,
        finish=row.finish,
        updated=row.updated,
        message=row.message,
    )


def add(
    conn: sa.Connection,
    context: context_module.RequestContext,
    *,
    instance_uuid: str,
    action: str,
    state: ActionState,
    lease: float,
    reservation_id: str = "",
    step: Step = Step.SCHEDULING,
    target_host: str | None = None,
    target_node: str | None = None,
    args: dict[str, Any] | None = None,
    message: str | None = None,
) -> int:
    """Store an action and return its id; its deadline is *lease* seconds from now."""
    moment = time.time()
    closed = state.value not in OPEN
    return _INSERT.insert(
        conn,
        {
            "request_id": context.request_id,
            "instance_uuid": instance_uuid,
            "action": action,
            "project_id": context.project_id or "",
            "user_id": context.user_id or "",
            "reservation_id": reservation_id,
            "state": state.value,
            "step": step.value,
            "attempt": 0,
            "failures": [],
            "drives": 0,
            "recasts": 0,
            "target_host": target_host,
            "target_node": target_node,
            "args": args or {},
            "message": message,
            "lease": lease,
            "start": moment,
            "updated": moment,
            "finish": moment if closed else None,
        },
    )


def get(conn: sa.Connection, action_id: int) -> Action | None:
    """Return the action or None."""
    row = conn.execute(_GET, {"action_id_": action_id}).first()
    return None if row is None else from_row(row)


def close(
    conn: sa.Connection, action_id: int, state: ActionState, message: str | None = None
) -> bool:
    """End an open action; False if it was closed already."""
    values = {
        "action_id_": action_id,
        "state_": state.value,
        "message_": message,
        "finish_": time.time(),
    }
    return conn.execute(_CLOSE, values).rowcount == 1


def put_events(
    conn: sa.Connection, action_id: int, attempt: int, events: list[ActionEvent], *, new: bool
) -> None:
    """Store events of one attempt; unless they are known to be *new*, former ones of the same
    names are replaced, so that an event written at its start gets its finish."""
    if not events:
        return
    if not new:
        names = [event.event for event in events]
        conn.execute(_DROP_EVENTS, {"action_id_": action_id, "attempt_": attempt, "events_": names})
    _ADD_EVENTS.execute_many(
        conn,
        [
            {
                "action_id": action_id,
                "attempt": attempt,
                "event": event.event,
                "host": event.host,
                "start": event.start,
                "finish": event.finish,
                "result": event.result,
                "details": event.details,
                "traceback": event.traceback,
            }
            for event in events
        ],
    )


def list_for_instance(conn: sa.Connection, instance_uuid: str) -> list[Action]:
    """Return the actions of a server, the latest first."""
    rows = conn.execute(
        sa.select(_a).where(_a.c.instance_uuid == instance_uuid).order_by(_a.c.id.desc())
    )
    return [from_row(row) for row in rows]


def page(
    conn: sa.Connection,
    instance_uuid: str,
    *,
    limit: int,
    marker: str | None = None,
    since: float | None = None,
    before: float | None = None,
) -> tuple[list[Action], bool]:
    """Return so many actions of a server, the latest first, and whether more follow.

    :param marker: the request id of the action after which the page begins
    :param since: only what has changed at this time or later
    :param before: only what has changed at this time or earlier
    :raises exception.MarkerNotFound: the server has no such action
    """
    statement = sa.select(_a).where(_a.c.instance_uuid == instance_uuid)
    changed = sa.func.coalesce(_a.c.updated, _a.c.start)
    if since is not None:
        statement = statement.where(changed >= since)
    if before is not None:
        statement = statement.where(changed <= before)
    if marker is not None:
        last = by_request_id(conn, instance_uuid, marker)
        if last is None:
            raise exception.MarkerNotFound(marker=marker)
        statement = statement.where(_a.c.id < last.id)
    if limit == 0:
        return [], False
    rows = conn.execute(statement.order_by(_a.c.id.desc()).limit(limit + 1)).all()
    return [from_row(row) for row in rows[:limit]], len(rows) > limit


def by_request_id(conn: sa.Connection, instance_uuid: str, request_id: str) -> Action | None:
    """Return the server's action of that request or None."""
    row = conn.execute(
        sa.select(_a)
        .where(_a.c.instance_uuid == instance_uuid, _a.c.request_id == request_id)
        .order_by(_a.c.id.desc())
    ).first()
    return None if row is None else from_row(row)


def events(conn: sa.Connection, action_id: int) -> list[ActionEvent]:
    """Return the events of an action in the order in which they began."""
    rows = conn.execute(
        sa.select(_e).where(_e.c.action_id == action_id).order_by(_e.c.start, _e.c.id)
    )
    return [
        ActionEvent(
            event=row.event,
            host=row.host,
            start=row.start,
            finish=row.finish,
            result=row.result,
            details=row.details,
            traceback=row.traceback,
            attempt=row.attempt,
        )
        for row in rows
    ]
