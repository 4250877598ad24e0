# SPDX-License-Identifier: Apache-2.0
"""Attempts that do not succeed: a claim that is refused, a build that fails, and when it is enough.

The rules are numbered in docs/architecture.md. A report of an older epoch or counter never gets
this far (db/services.py: heartbeat).
"""

import dataclasses
import time
from typing import Any

import sqlalchemy as sa

from novalite import exception
from novalite.db import actions, builds, ownership
from novalite.db.ownership import Outcome
from novalite.objects import build
from novalite.objects.action import Action, ActionEvent
from novalite.objects.instance import InstanceFault
from novalite.objects.loss import MAX_DRIVES
from novalite.objects.states import Step, Verdict


def refuse(
    conn: sa.Connection, host: str, epoch: int, item: build.Refusal, max_attempts: int
) -> Outcome:
    """Take note that a claim did not fit; the build goes on elsewhere or with a fresh picture.

    Believed only while the attempt is not begun, or from the token that begun it, or from a newer
    start of that host.
    """
    row = conn.execute(ownership.LOOK, {"action_id_": item.action_id}).first()
    if row is None or not ownership.is_open(row):
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
    if action.step is Step.STARTED or action.token == ownership.qualified(epoch, item.token):
        return None
    if epoch > ownership.epoch_of(action.token):
        return None
    return "another handling has begun this attempt"


def finish_failed(
    conn: sa.Connection, host: str, epoch: int, item: build.Finish, max_attempts: int
) -> Outcome:
    """Take note that an attempt failed: the build goes on elsewhere, or ends in ERROR.

    Believed as a refusal is.
    """
    row = conn.execute(ownership.LOOK, {"action_id_": item.action_id}).first()
    if row is None or not ownership.is_open(row):
        return _left_behind(conn, host, item, row, "the action has ended")
    action = actions.from_row(row)
    doubt = _doubt(action, host, epoch, item)
    if doubt is not None:
        return _left_behind(conn, host, item, row, doubt)
    actions.put_events(conn, action.id, item.attempt, item.events, new=False)
    fault = item.fault or InstanceFault(500, "unknown failure")
    # Of what a former start of this host has made, the new one knows nothing.
    other = action.step is Step.BEGUN and action.token != ownership.qualified(epoch, item.token)
    guest_left = item.guest_left or other
    if not item.reschedule:
        fault.created_at = fault.created_at or time.time()
        reasons = [*action.args.get("tried", []), f"{host}: {fault.details or fault.message}"]
        fault.details = "\n".join(reasons)
        if not builds.fail(conn, action, fault):
            # A delete was committed after the look above; what is here is its own by now.
            return Outcome(Verdict.DONE, "the attempt was left meanwhile")
        if guest_left:
            node = action.target_node or ""
            builds.add_cleanup(conn, action.instance_uuid, host, node, action.attempt)
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


def misplaced(
    conn: sa.Connection,
    action: Action,
    host: str,
    reason: str,
    event: ActionEvent | None,
    max_attempts: int,
) -> Outcome:
    """Take a build from a host that the policy of its server group forbids, before it has begun.

    It is chosen for anew, with where the other members are by then. The host did nothing wrong.

    :param reason: which policy
    :param event: the step of the claim, which stood
    """
    if event is not None:
        refused = dataclasses.replace(event, result="Error")
        refused.details = {**event.details, "error": reason}
        actions.put_events(conn, action.id, action.attempt, [refused], new=False)
    moved = exception.RescheduledException(instance_uuid=action.instance_uuid, reason=reason)
    action.args = {**action.args, "alternates": []}
    outcome = _attempt_failed(
        conn,
        action,
        host=host,
        reason=reason,
        loss=None,
        failed=True,
        guest_left=False,
        max_attempts=max_attempts,
        last=moved.message(),
    )
    return Outcome(Verdict.SUPERSEDED, moved.message(), drive=outcome.drive)


def _left_behind(
    conn: sa.Connection, host: str, item: build.Finish, row: Any, reason: str
) -> Outcome:
    """A failure nobody waits for any more; a guest that would not go is still remembered, unless
    it is the one that another handling of the same attempt has made or is making."""
    if item.guest_left and row is not None and not ownership.is_owner(row, host, item.attempt):
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
    last: str | None = None,
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
    ended = exhausted(action, max_attempts, last)
    if ended is None:
        return Outcome(Verdict.DONE, drive=[action.reservation_id])
    if fault is not None and fault.details:
        ended.details = f"{ended.details}\n{fault.details}"
    builds.fail(conn, action, ended)
    return Outcome(Verdict.DONE, ended.message)


def exhausted(action: Action, max_attempts: int, last: str | None = None) -> InstanceFault | None:
    """Return the fault that ends the build, or None while it may go on.

    :param last: what to tell of the last attempt, if everybody may read it
    """
    uuid = action.instance_uuid
    if len(action.failures) >= max_attempts:
        used_up = f"Exhausted all hosts available for retrying build failures for instance {uuid}."
        return InstanceFault(
            code=500,
            message=exception.MaxRetriesExceeded(reason=last or used_up).message(),
            details="\n".join(action.args.get("tried", [])),
            created_at=time.time(),
        )
    if action.drives > MAX_DRIVES:
        return InstanceFault(
            code=500,
            message=f"Build of instance {uuid} was given up after {action.drives} losses on the "
            "way (restarted processes, lost messages, refused claims).",
            details="\n".join(action.args.get("losses", [])),
            created_at=time.time(),
        )
    return None
