# SPDX-License-Identifier: Apache-2.0
"""The conductor's half of one attempt: begin, refusal, progress, finish, heartbeat of what is in
hand. The rules are numbered in docs/architecture.md; the token rule (1) is the core here.

A report of an older epoch or counter never gets this far (db/services.py: heartbeat).
"""

import time
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from novalite.db import actions, allocations, builds, schema
from novalite.db.engine import now
from novalite.objects import base, build
from novalite.objects.action import Action
from novalite.objects.instance import InstanceFault
from novalite.objects.states import ActionState, Step, TaskState, Verdict, VMState

_a = schema.instance_actions
_i = schema.instances

_LOOK = (
    sa.select(
        _a,
        _i.c.vm_state,
        _i.c.task_state,
        _i.c.host.label("instance_host"),
        _i.c.action_id,
        _i.c.built_action,
        _i.c.built_attempt,
        _i.c.built_token,
        _i.c.deleted,
    )
    .join(_i, _i.c.uuid == _a.c.instance_uuid)
    .where(_a.c.id == sa.bindparam("action_id_"))
)
_MINE = (
    _a.c.id == sa.bindparam("action_id_"),
    _a.c.state == ActionState.RUNNING.value,
    _a.c.attempt == sa.bindparam("attempt_"),
    _a.c.target_host == sa.bindparam("host_"),
)
_BEGIN = (
    sa.update(_a)
    .where(*_MINE, _a.c.step.in_((Step.STARTED.value, Step.BEGUN.value)))
    .values(
        step=Step.BEGUN.value,
        token=sa.bindparam("token_"),
        recasts=0,
        deadline=now() + sa.bindparam("lease"),
        updated=now(),
    )
)
_PLACE = (
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
_DONE = (
    sa.update(_a)
    .where(*_MINE, _a.c.step == Step.BEGUN.value, _a.c.token == sa.bindparam("token_"))
    .values(
        state=ActionState.DONE.value,
        owner=None,
        finish=sa.bindparam("time_"),
        updated=sa.bindparam("time_"),
    )
)
_ACTIVATE = (
    sa.update(_i)
    .where(_i.c.uuid == sa.bindparam("uuid_"), _i.c.action_id == sa.bindparam("action_id_"))
    .values(
        vm_state=VMState.ACTIVE.value,
        task_state=None,
        power_state=sa.bindparam("power_"),
        network_info=sa.bindparam("networks_"),
        root_device_name=sa.bindparam("root_"),
        launched_at=sa.bindparam("launched_"),
        built_action=sa.bindparam("action_id_"),
        built_attempt=sa.bindparam("attempt_"),
        built_token=sa.bindparam("token_"),
        action_id=None,
        updated_at=sa.bindparam("time_"),
    )
)
_TOUCH = sa.update(_a).where(*_MINE).values(deadline=now() + sa.bindparam("lease"))


@dataclass(slots=True)
class Outcome:
    """What a transaction decided: the answer, and what the conductor has to do after commit."""

    verdict: Verdict
    reason: str = ""
    # Reservations whose builds wait for a conductor now.
    drive: list[str] = field(default_factory=list)
    # Clean-ups that a later pass will do; named here for the log only.
    cleanup: str = ""


def _qualified(epoch: int, token: str) -> str:
    """A token with the epoch it belongs to, since a refusal of a newer start is believed."""
    return f"{epoch}:{token}"


def _epoch_of(token: str | None) -> int:
    return int(token.partition(":")[0]) if token else 0


def begin(conn: sa.Connection, host: str, epoch: int, item: build.Begin, lease: float) -> Outcome:
    """Answer «may this attempt begin?» and, if so, write host, allocations and token (step 5)."""
    row = conn.execute(_LOOK, {"action_id_": item.action_id}).first()
    if row is None:
        return Outcome(Verdict.SUPERSEDED, "the action is unknown")
    if not _is_open(row):
        if _built_here(row, host, item.attempt):
            return Outcome(Verdict.DROP, "this attempt has finished here")
        return Outcome(Verdict.SUPERSEDED, _why(row, item.attempt))
    if row.attempt != item.attempt or row.target_host != host or row.step == Step.SCHEDULING.value:
        return Outcome(Verdict.SUPERSEDED, _why(row, item.attempt))
    token = _qualified(epoch, item.token)
    again = row.step == Step.BEGUN.value
    if again and row.token == token:
        return Outcome(Verdict.GO, "already begun with this token")
    conn.execute(
        _BEGIN,
        {
            "action_id_": item.action_id,
            "attempt_": item.attempt,
            "host_": host,
            "token_": token,
            "lease": lease,
        },
    )
    conn.execute(
        _PLACE,
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
    if item.event is not None:
        actions.put_events(conn, item.action_id, item.attempt, [item.event], new=not again)
    return Outcome(Verdict.RESUME if again else Verdict.GO)


def _is_open(row: Any) -> bool:
    return row.action_id == row.id and row.state in actions.OPEN


def _built_here(row: Any, host: str, attempt: int) -> bool:
    return bool(
        row.vm_state == VMState.ACTIVE.value
        and not row.deleted
        and row.task_state != TaskState.DELETING.value
        and row.instance_host == host
        and row.built_action == row.id
        and row.built_attempt == attempt
    )


def _is_owner(row: Any, host: str, attempt: int) -> bool:
    """Tell whether the server is this attempt's, finished here or still under way."""
    under_way = _is_open(row) and row.step != Step.SCHEDULING.value
    here = row.attempt == attempt and row.target_host == host
    return _built_here(row, host, attempt) or (under_way and here)


def _why(row: Any, attempt: int) -> str:
    """Say why *attempt* does not own the server."""
    if row.deleted or row.task_state == TaskState.DELETING.value:
        return "the server is deleted"
    if not _is_open(row):
        return "the action has ended"
    if row.attempt != attempt or row.step == Step.SCHEDULING.value:
        return f"attempt {attempt} was left"
    return f"host {row.target_host} owns attempt {row.attempt}"


def refuse(
    conn: sa.Connection, host: str, epoch: int, item: build.Refusal, max_attempts: int
) -> Outcome:
    """Take note that a claim did not fit; the build goes on elsewhere or with a fresh picture.

    Believed only while the attempt is not begun, or from the token that begun it, or from a newer
    start of that host.
    """
    row = conn.execute(_LOOK, {"action_id_": item.action_id}).first()
    if row is None or not _is_open(row):
        return Outcome(Verdict.DONE, "the action has ended")
    action = actions.from_row(row)
    doubt = _doubt(action, host, epoch, item)
    if doubt is not None:
        return Outcome(Verdict.DONE, doubt)
    if item.event is not None:
        actions.put_events(conn, action.id, item.attempt, [item.event], new=False)
    # A host that says "stale picture" once gets a second chance; said twice it is a failure.
    stale = item.stale and host not in action.args.get("stale_hosts", [])
    if stale:
        action.args = {
            **action.args,
            "stale_hosts": [*action.args.get("stale_hosts", []), host],
            "alternates": [],
        }
    return _attempt_failed(
        conn,
        action,
        host=host,
        reason=item.reason,
        loss=f"attempt {item.attempt}: {host} refused the claim: {item.reason}",
        failed=not stale,
        guest_left=item.guest_left or action.step is Step.BEGUN,
        max_attempts=max_attempts,
    )


def _doubt(action: Action, host: str, epoch: int, item: build.Refusal | build.Finish) -> str | None:
    """Say why a refusal or failure of an open build is not believed; None if it is."""
    mine = action.attempt == item.attempt and action.target_host == host
    if not mine or action.step is Step.SCHEDULING:
        return f"attempt {item.attempt} was left"
    if action.step is Step.STARTED or action.token == _qualified(epoch, item.token):
        return None
    if epoch > _epoch_of(action.token):
        return None
    return "another handling has begun this attempt"


def finish(
    conn: sa.Connection, host: str, epoch: int, item: build.Finish, max_attempts: int
) -> Outcome:
    """Take the end of an attempt: ACTIVE, or a failure that goes on elsewhere or ends in ERROR."""
    token = _qualified(epoch, item.token)
    if item.fault is not None:
        return _finish_failed(conn, host, epoch, item, max_attempts)
    values = {
        "action_id_": item.action_id,
        "attempt_": item.attempt,
        "host_": host,
        "token_": token,
        "time_": time.time(),
    }
    if not conn.execute(_DONE, values).rowcount:
        return _finish_unowned(conn, token, item)
    conn.execute(
        _ACTIVATE,
        {
            "uuid_": item.instance_uuid,
            "action_id_": item.action_id,
            "attempt_": item.attempt,
            "token_": token,
            "power_": int(item.power_state),
            "networks_": base.encode(item.network_info),
            "root_": item.root_device_name,
            "launched_": item.launched_at,
            "time_": values["time_"],
        },
    )
    actions.put_events(conn, item.action_id, item.attempt, item.events, new=False)
    return Outcome(Verdict.DONE)


def _finish_unowned(conn: sa.Connection, token: str, item: build.Finish) -> Outcome:
    row = conn.execute(_LOOK, {"action_id_": item.action_id}).first()
    if row is None:
        return Outcome(Verdict.SUPERSEDED, "the action is unknown")
    done = row.built_token == token and row.built_action == item.action_id
    if done and not row.deleted and row.task_state != TaskState.DELETING.value:
        return Outcome(Verdict.DONE, "this token has finished already")
    if done:
        # The delete that is under way, or has been, removes the guest; it must not be done twice.
        return Outcome(Verdict.DONE, "finished, and then deleted")
    return Outcome(Verdict.SUPERSEDED, _why(row, item.attempt))


def _finish_failed(
    conn: sa.Connection, host: str, epoch: int, item: build.Finish, max_attempts: int
) -> Outcome:
    row = conn.execute(_LOOK, {"action_id_": item.action_id}).first()
    if row is None or not _is_open(row):
        return _left_behind(conn, host, item, row, "the action has ended")
    action = actions.from_row(row)
    doubt = _doubt(action, host, epoch, item)
    if doubt is not None:
        return _left_behind(conn, host, item, row, doubt)
    actions.put_events(conn, action.id, item.attempt, item.events, new=False)
    fault = item.fault or InstanceFault(500, "unknown failure")
    # Of what a former start of this host has made, the new one knows nothing.
    other = action.step is Step.BEGUN and action.token != _qualified(epoch, item.token)
    guest_left = item.guest_left or other
    if not item.reschedule:
        builds.release(conn, action, guest_may_be_left=guest_left)
        fault.created_at = fault.created_at or time.time()
        builds.fail(conn, action, fault)
        return Outcome(Verdict.DONE, "failed for good")
    return _attempt_failed(
        conn,
        action,
        host=host,
        reason=fault.message,
        loss=None,
        failed=True,
        guest_left=guest_left,
        max_attempts=max_attempts,
        fault=fault,
    )


def _left_behind(
    conn: sa.Connection, host: str, item: build.Finish, row: Any, reason: str
) -> Outcome:
    """A failure nobody waits for any more; a guest that would not go is still remembered, unless
    it is the one that another handling of the same attempt has made or is making."""
    if item.guest_left and row is not None and not _is_owner(row, host, item.attempt):
        builds.add_cleanup(conn, item.instance_uuid, host, item.node, item.attempt)
    return Outcome(Verdict.DONE, reason)


def _attempt_failed(
    conn: sa.Connection,
    action: Action,
    *,
    host: str,
    reason: str,
    loss: str | None,
    failed: bool,
    guest_left: bool,
    max_attempts: int,
    fault: InstanceFault | None = None,
) -> Outcome:
    tried = [*action.args.get("tried", []), f"{host}: {reason}"]
    action.args = {**action.args, "tried": tried}
    left = builds.leave(
        conn,
        action,
        guest_may_be_left=guest_left,
        loss=loss,
        failure=host if failed else None,
    )
    if not left:
        return Outcome(Verdict.DONE, "the attempt was left meanwhile")
    ended = exhausted(action, max_attempts)
    if ended is None:
        return Outcome(Verdict.DONE, drive=[action.reservation_id])
    if fault is not None and fault.details:
        ended.details = f"{ended.details}\n{fault.details}"
    builds.fail(conn, action, ended)
    return Outcome(Verdict.DONE, ended.message)


def exhausted(action: Action, max_attempts: int) -> InstanceFault | None:
    """Return the fault that ends the build, or None while it may go on."""
    uuid = action.instance_uuid
    if len(action.failures) >= max_attempts:
        return InstanceFault(
            code=500,
            message="Exceeded maximum number of retries. Exhausted all hosts available for "
            f"retrying build failures for instance {uuid}.",
            details="\n".join(action.args.get("tried", [])),
            created_at=time.time(),
        )
    if action.drives > builds.MAX_DRIVES:
        return InstanceFault(
            code=500,
            message=f"Build of instance {uuid} was given up after {action.drives} losses on the "
            "way (restarted processes, lost messages, refused claims).",
            details="\n".join(action.args.get("losses", [])),
            created_at=time.time(),
        )
    return None


def progress(conn: sa.Connection, host: str, epoch: int, item: build.Progress) -> Outcome:
    """Show the task state and the steps of an attempt that is under way."""
    owned = sa.exists().where(
        _a.c.id == item.action_id,
        _a.c.attempt == item.attempt,
        _a.c.target_host == host,
        _a.c.state == ActionState.RUNNING.value,
        _a.c.token == _qualified(epoch, item.token),
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
    """Extend the deadlines of the work that a host's report names."""
    if in_hand:
        conn.execute(
            _TOUCH,
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
