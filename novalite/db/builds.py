# SPDX-License-Identifier: Apache-2.0
"""Open builds as the conductor drives them: create, take, start, give back, leave, fail.

Every function is one compare-and-set or a few in the caller's transaction; what it may change is
decided by the row, never by memory. The compute's half (begin, finish) is in db/attempts.py.
"""

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from novalite import context as context_module
from novalite.db import actions, allocations, instances, schema
from novalite.db.engine import now
from novalite.db.prepared import Prepared
from novalite.objects import base
from novalite.objects.action import Action, ActionEvent
from novalite.objects.instance import Instance, InstanceFault
from novalite.objects.request_spec import RequestSpec
from novalite.objects.states import ActionState, Step, VMState

_a = schema.instance_actions
_i = schema.instances
_r = schema.request_specs
_c = schema.cleanups

_ADD_SPEC = Prepared(sa.insert(_r).inline())
_WAITING = (
    _a.c.action == "create",
    _a.c.state == ActionState.PENDING.value,
    _a.c.step == Step.SCHEDULING.value,
)
_TAKE = (
    sa.update(_a)
    .where(_a.c.reservation_id.in_(sa.bindparam("reservations", expanding=True)), *_WAITING)
    .values(
        state=ActionState.RUNNING.value,
        owner=sa.bindparam("owner_"),
        deadline=now() + sa.bindparam("lease"),
        updated=now(),
    )
)
_TAKEN = (
    sa.select(_a, _r.c.spec)
    .join(_r, _r.c.instance_uuid == _a.c.instance_uuid)
    .where(_a.c.owner == sa.bindparam("owner_"), _a.c.state == ActionState.RUNNING.value)
    .order_by(_a.c.id)
)
_OWNED = (
    _a.c.id == sa.bindparam("action_id_"),
    _a.c.owner == sa.bindparam("owner_"),
    _a.c.state == ActionState.RUNNING.value,
    _a.c.step == Step.SCHEDULING.value,
)
_START = Prepared(
    sa.update(_a)
    .where(*_OWNED, _a.c.attempt == sa.bindparam("attempt_"))
    .values(
        step=Step.STARTED.value,
        attempt=_a.c.attempt + 1,
        target_host=sa.bindparam("host_"),
        target_node=sa.bindparam("node_"),
        args=sa.bindparam("args_"),
        recasts=0,
        token=None,
        owner=None,
        deadline=now() + sa.bindparam("lease"),
        updated=now(),
    )
)
_GIVE_BACK = (
    sa.update(_a)
    .where(*_OWNED)
    .values(
        state=ActionState.PENDING.value,
        owner=None,
        deadline=now() + sa.bindparam("lease"),
        updated=now(),
    )
)
_RENEW = (
    sa.update(_a)
    .where(
        _a.c.owner.in_(sa.bindparam("owners", expanding=True)),
        _a.c.state == ActionState.RUNNING.value,
    )
    .values(deadline=now() + sa.bindparam("lease"))
)
_INSTANCES = sa.select(_i).where(_i.c.uuid.in_(sa.bindparam("uuids", expanding=True)))


@dataclass(slots=True)
class Taken:
    """One open build that this conductor holds, with what it takes to go on."""

    action: Action
    spec: RequestSpec
    context: context_module.RequestContext


def create(
    conn: sa.Connection,
    context: context_module.RequestContext,
    wanted: list[tuple[Instance, RequestSpec]],
    *,
    grace: float,
) -> None:
    """Store new servers, each with its request and its open action (step 1 of the boot map).

    Sets ``id`` and ``action_id`` of each instance. *grace* is how many seconds the first message
    may take before recovery looks after the build.
    """
    for instance, spec in wanted:
        instance.action_id = actions.add(
            conn,
            context,
            instance_uuid=instance.uuid,
            action="create",
            state=ActionState.PENDING,
            lease=grace,
            reservation_id=instance.reservation_id,
        )
        instances.insert(conn, instance)
        _ADD_SPEC.execute(conn, {"instance_uuid": instance.uuid, "spec": base.pack(spec)})


def take(conn: sa.Connection, reservations: list[str], owner: str, lease: float) -> list[Taken]:
    """Take all open, not started builds of these reservations; *owner* is new for each take."""
    values = {"reservations": reservations, "owner_": owner, "lease": lease}
    if not conn.execute(_TAKE, values).rowcount:
        return []
    return [_taken(row) for row in conn.execute(_TAKEN, {"owner_": owner})]


def _taken(row: Any) -> Taken:
    action = actions.from_row(row)
    spec: RequestSpec = base.decode(row.spec)
    spec.ignore_hosts = list(action.failures)
    return Taken(action, spec, context_of(action))


def context_of(action: Action) -> context_module.RequestContext:
    """Return the context of the user whose request the action is."""
    return context_module.from_wire(
        {
            "request_id": action.request_id,
            "user_id": action.user_id or None,
            "project_id": action.project_id or None,
        }
    )


def load_instances(conn: sa.Connection, uuids: list[str]) -> dict[str, Instance]:
    """Return servers by uuid."""
    rows = conn.execute(_INSTANCES, {"uuids": uuids})
    return {row.uuid: instances.from_row(row) for row in rows}


def start(
    conn: sa.Connection, taken: Taken, host: str, node: str, args: dict[str, Any], lease: float
) -> Taken | None:
    """Write the next attempt and its target (step 4); None if the build is not ours any more.

    :returns: the build with its new attempt; *taken* stays as it was, since the caller's
        transaction may be repeated
    """
    values = {
        "action_id_": taken.action.id,
        "owner_": taken.action.owner,
        "attempt_": taken.action.attempt,
        "host_": host,
        "node_": node,
        "args_": args,
        "lease": lease,
    }
    if not _START.execute(conn, values).rowcount:
        return None
    action = dataclasses.replace(
        taken.action,
        step=Step.STARTED,
        attempt=taken.action.attempt + 1,
        target_host=host,
        target_node=node,
        args=args,
        recasts=0,
        owner=None,
    )
    return dataclasses.replace(taken, action=action)


def give_back(conn: sa.Connection, taken: Taken, delay: float) -> bool:
    """Let the build wait *delay* seconds for another try; this is not counted as a loss.

    :returns: False if the build is not ours any more
    """
    values = {"action_id_": taken.action.id, "owner_": taken.action.owner, "lease": delay}
    return bool(conn.execute(_GIVE_BACK, values).rowcount)


def renew(conn: sa.Connection, owners: list[str], lease: float) -> None:
    """Extend the leases of what these takes still hold."""
    if owners:
        conn.execute(_RENEW, {"owners": owners, "lease": lease})


def fail_taken(
    conn: sa.Connection, taken: Taken, fault: InstanceFault, event: ActionEvent | None
) -> bool:
    """End a build that this conductor holds; False if it is not ours any more."""
    owned = conn.execute(
        sa.select(_a.c.id).where(*_OWNED),
        {"action_id_": taken.action.id, "owner_": taken.action.owner},
    ).first()
    if owned is None:
        return False
    if event is not None:
        actions.put_events(conn, taken.action.id, event.attempt, [event], new=False)
    return fail(conn, taken.action, fault)


def fail(conn: sa.Connection, action: Action, fault: InstanceFault) -> bool:
    """End an open build with a fault: the server goes to ERROR and holds nothing."""
    if not actions.close(conn, action.id, ActionState.ERROR, "Error"):
        return False
    conn.execute(
        sa.update(_i)
        .where(_i.c.uuid == action.instance_uuid, _i.c.action_id == action.id)
        .values(
            vm_state=VMState.ERROR.value,
            task_state=None,
            power_state=0,
            host=None,
            node=None,
            network_info=[],
            action_id=None,
            updated_at=time.time(),
        )
    )
    allocations.delete(conn, action.instance_uuid)
    instances.add_fault(conn, action.instance_uuid, fault)
    return True


def leave(
    conn: sa.Connection,
    action: Action,
    *,
    guest_may_be_left: bool,
    loss: str | None,
    failure: str | None = None,
    unless_renewed: bool = False,
) -> bool:
    """Leave the present attempt: the build waits for a conductor to choose another host.

    :param guest_may_be_left: the host may hold a guest of this attempt, so it goes into the
        clean-ups (rule 9)
    :param loss: what got lost, counted in drives; None for what is no loss
    :param failure: the host that really failed, counted in failures
    :param unless_renewed: only if the action still has the deadline that was seen
    :returns: False if the attempt was not the present one any more
    """
    args = dict(action.args)
    if loss:
        args["losses"] = [*args.get("losses", []), loss]
    failures = [*action.failures, failure] if failure else action.failures
    changed = conn.execute(
        sa.update(_a)
        .where(
            _a.c.id == action.id,
            _a.c.state == ActionState.RUNNING.value,
            _a.c.step == action.step.value,
            _a.c.attempt == action.attempt,
            _a.c.deadline == action.deadline if unless_renewed else sa.true(),
        )
        .values(
            state=ActionState.PENDING.value,
            step=Step.SCHEDULING.value,
            failures=failures,
            drives=action.drives + (1 if loss else 0),
            args=args,
            target_host=None,
            target_node=None,
            owner=None,
            token=None,
            deadline=now(),
            updated=now(),
        )
    ).rowcount
    if not changed:
        return False
    release(conn, action, guest_may_be_left=guest_may_be_left)
    action.failures, action.args = failures, args
    action.drives += 1 if loss else 0
    return True


def release(conn: sa.Connection, action: Action, *, guest_may_be_left: bool) -> None:
    """Take the server off the attempt's host in the books, and remember what may be left there."""
    if action.step is Step.BEGUN:
        conn.execute(
            sa.update(_i)
            .where(_i.c.uuid == action.instance_uuid)
            .values(host=None, node=None, network_info=[], updated_at=time.time())
        )
        allocations.delete(conn, action.instance_uuid)
    if guest_may_be_left and action.target_host:
        add_cleanup(
            conn,
            action.instance_uuid,
            action.target_host,
            action.target_node or "",
            action.attempt,
        )


def add_cleanup(
    conn: sa.Connection, instance_uuid: str, host: str, node: str, attempt: int | None
) -> None:
    """Remember that *host* may hold a guest up to *attempt* (None: any) that must go.

    What is remembered already is never narrowed.
    """
    here = (_c.c.instance_uuid == instance_uuid, _c.c.host == host)
    former = conn.execute(sa.select(_c.c.attempt).where(*here)).first()
    if former is not None:
        if attempt is not None:
            attempt = None if former.attempt is None else max(attempt, former.attempt)
        conn.execute(sa.delete(_c).where(*here))
    conn.execute(
        sa.insert(_c).values(
            instance_uuid=instance_uuid, host=host, node=node, attempt=attempt, deadline=now()
        )
    )
