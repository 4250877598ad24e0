# SPDX-License-Identifier: Apache-2.0
"""The conductor's half of one attempt: begin, refusal, progress, finish, heartbeat of what is in
hand. The rules are numbered in docs/architecture.md; the token rule (1) is the core here.

A report of an older epoch or counter never gets this far (db/services.py: heartbeat).
"""

import time
from typing import Any

import sqlalchemy as sa

from novalite.db import actions, allocations, failures, ownership, schema, server_groups
from novalite.db.engine import now
from novalite.db.ownership import Outcome
from novalite.db.prepared import Prepared
from novalite.objects import base, build, loss
from novalite.objects.action import ActionEvent
from novalite.objects.states import ActionState, Step, TaskState, Verdict, VMState

_a = schema.instance_actions
_i = schema.instances

_MINE = (
    _a.c.id == sa.bindparam("action_id_"),
    _a.c.state == ActionState.RUNNING.value,
    _a.c.attempt == sa.bindparam("attempt_"),
    _a.c.target_host == sa.bindparam("host_"),
)
_BEGIN = Prepared(
    sa.update(_a)
    .where(*_MINE, sa.or_(_a.c.step == Step.STARTED.value, _a.c.step == Step.BEGUN.value))
    .values(
        step=Step.BEGUN.value,
        token=sa.bindparam("token_"),
        recasts=0,
        deadline=now() + sa.bindparam("lease"),
        updated=now(),
    )
)
_PLACE = Prepared(
    sa.update(_i)
    .where(_i.c.uuid == sa.bindparam("uuid_"), _i.c.action_id == sa.bindparam("action_id_"))
    .values(
        host=sa.bindparam("host_"),
        node=sa.bindparam("node_"),
        availability_zone=sa.bindparam("zone_"),
        task_state=None,
        updated_at=sa.bindparam("time_"),
    )
)
_DONE = Prepared(
    sa.update(_a)
    .where(*_MINE, _a.c.step == Step.BEGUN.value, _a.c.token == sa.bindparam("token_"))
    .values(
        state=ActionState.DONE.value,
        owner=None,
        finish=sa.bindparam("time_"),
        updated=sa.bindparam("time_"),
    )
)
_ACTIVATE = Prepared(
    sa.update(_i)
    .where(_i.c.uuid == sa.bindparam("uuid_"), _i.c.action_id == sa.bindparam("action_id_"))
    .values(
        vm_state=VMState.ACTIVE.value,
        task_state=None,
        power_state=sa.bindparam("power_"),
        network_info=sa.bindparam("networks_"),
        block_devices=sa.bindparam("volumes_"),
        root_device_name=sa.bindparam("root_"),
        launched_at=sa.bindparam("launched_"),
        built_action=sa.bindparam("action_id_"),
        built_attempt=sa.bindparam("attempt_"),
        built_token=sa.bindparam("token_"),
        action_id=None,
        updated_at=sa.bindparam("time_"),
    )
)
_TOUCH = Prepared(sa.update(_a).where(*_MINE).values(deadline=now() + sa.bindparam("lease")))


def begin(
    conn: sa.Connection,
    host: str,
    epoch: int,
    item: build.Begin,
    lease: float,
    max_attempts: int,
) -> Outcome:
    """Answer «may this attempt begin?» and, if so, write host, allocations and token (step 5).

    A server whose group's policy does not want it there goes elsewhere at once.
    """
    row = conn.execute(ownership.LOOK, {"action_id_": item.action_id}).first()
    if row is None:
        return Outcome(Verdict.SUPERSEDED, "the action is unknown")
    if not ownership.is_open(row):
        if ownership.built_here(row, host, item.attempt):
            return Outcome(Verdict.DROP, "this attempt has finished here")
        return Outcome(Verdict.SUPERSEDED, ownership.why(row, item.attempt))
    if row.attempt != item.attempt or row.target_host != host or row.step == Step.SCHEDULING.value:
        return Outcome(Verdict.SUPERSEDED, ownership.why(row, item.attempt))
    token = ownership.qualified(epoch, item.token)
    again = row.step == Step.BEGUN.value
    if again and row.token == token:
        return Outcome(Verdict.GO, "already begun with this token")
    broken = None if again else _broken_policy(conn, row, host)
    if broken is not None:
        action = actions.from_row(row)
        return failures.misplaced(conn, action, host, broken, item.event, max_attempts)
    values = {
        "action_id_": item.action_id,
        "attempt_": item.attempt,
        "host_": host,
        "token_": token,
        "lease": lease,
    }
    if not _BEGIN.execute(conn, values).rowcount:
        # A delete or a move was committed after the look above.
        return Outcome(Verdict.SUPERSEDED, "the attempt was left meanwhile")
    _PLACE.execute(
        conn,
        {
            "uuid_": row.instance_uuid,
            "action_id_": item.action_id,
            "host_": host,
            "node_": item.node,
            "zone_": row.args.get("zone"),
            "time_": time.time(),
        },
    )
    allocations.replace(conn, row.instance_uuid, item.node, item.resources, first=not again)
    if again:
        _note_resume(conn, item, host)
    if item.event is not None:
        actions.put_events(conn, item.action_id, item.attempt, [item.event], new=not again)
    return Outcome(Verdict.RESUME if again else Verdict.GO)


def _broken_policy(conn: sa.Connection, row: Any, host: str) -> str | None:
    """Say which policy of its server group the server would break on the host; mostly there is no
    group, which the conductor has noted with the attempt."""
    group = row.args.get("group")
    if group is None:
        return None
    return server_groups.violation(conn, group, row.instance_uuid, host)


def _note_resume(conn: sa.Connection, item: build.Begin, host: str) -> None:
    """Keep in the history that another handling of the attempt begins."""
    moment = time.time()
    event = ActionEvent(loss.EVENT, host, moment, moment, "Success")
    text = f"attempt {item.attempt}: {host} starts over what a former handling of it had begun"
    event.details = {"code": loss.BEGUN_AGAIN, "text": text}
    actions.put_events(conn, item.action_id, item.attempt, [event], new=True)


def finish(
    conn: sa.Connection, host: str, epoch: int, item: build.Finish, max_attempts: int
) -> Outcome:
    """Take the end of an attempt: ACTIVE, or a failure that goes on elsewhere or ends in ERROR."""
    token = ownership.qualified(epoch, item.token)
    if item.fault is not None:
        return failures.finish_failed(conn, host, epoch, item, max_attempts)
    values = {
        "action_id_": item.action_id,
        "attempt_": item.attempt,
        "host_": host,
        "token_": token,
        "time_": time.time(),
    }
    if not _DONE.execute(conn, values).rowcount:
        return _finish_unowned(conn, host, token, item)
    _ACTIVATE.execute(
        conn,
        {
            "uuid_": item.instance_uuid,
            "action_id_": item.action_id,
            "attempt_": item.attempt,
            "token_": token,
            "power_": int(item.power_state),
            "networks_": base.encode(item.network_info),
            "volumes_": base.encode(item.block_devices) or None,
            "root_": item.root_device_name,
            "launched_": item.launched_at,
            "time_": values["time_"],
        },
    )
    actions.put_events(conn, item.action_id, item.attempt, item.events, new=False)
    return Outcome(Verdict.DONE)


def _finish_unowned(conn: sa.Connection, host: str, token: str, item: build.Finish) -> Outcome:
    row = conn.execute(ownership.LOOK, {"action_id_": item.action_id}).first()
    if row is None:
        return Outcome(Verdict.SUPERSEDED, "the action is unknown")
    done = row.built_token == token and row.built_action == item.action_id
    if done and not row.deleted and row.task_state != TaskState.DELETING.value:
        return Outcome(Verdict.DONE, "this token has finished already")
    if done:
        # The delete that is under way, or has been, removes the guest; it must not be done twice.
        return Outcome(Verdict.DONE, "finished, and then deleted")
    if ownership.built_here(row, host, item.attempt):
        return Outcome(Verdict.DONE, "this attempt has finished already")
    return Outcome(Verdict.SUPERSEDED, ownership.why(row, item.attempt))


def progress(conn: sa.Connection, host: str, epoch: int, item: build.Progress) -> Outcome:
    """Show the task state and the steps of an attempt that is under way."""
    owned = sa.exists().where(
        _a.c.id == item.action_id,
        _a.c.attempt == item.attempt,
        _a.c.target_host == host,
        _a.c.state == ActionState.RUNNING.value,
        _a.c.token == ownership.qualified(epoch, item.token),
    )
    values: dict[str, Any] = {"task_state": item.task_state, "updated_at": time.time()}
    if item.network_info is not None:
        values["network_info"] = base.encode(item.network_info)
    changed = conn.execute(
        sa.update(_i)
        .where(_i.c.uuid == item.instance_uuid, _i.c.action_id == item.action_id, owned)
        .values(**values)
    ).rowcount
    if not changed:
        return Outcome(Verdict.SUPERSEDED)
    actions.put_events(conn, item.action_id, item.attempt, item.events, new=False)
    return Outcome(Verdict.DONE)


def touch(conn: sa.Connection, host: str, in_hand: list[build.InHand], lease: float) -> None:
    """Extend the deadlines of the work that a host's report names.

    The report is of the host's present epoch, so what it names is in hand there now.
    """
    _TOUCH.execute_many(
        conn,
        [
            {
                "action_id_": work.action_id,
                "attempt_": work.attempt,
                "host_": host,
                "lease": lease,
            }
            for work in in_hand
        ],
    )
