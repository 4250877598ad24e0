# SPDX-License-Identifier: Apache-2.0
"""Deleting a server: what the API opens, what ends it, what a host reports (rule 12)."""

import time
from dataclasses import dataclass

import sqlalchemy as sa

from novalite import context as context_module
from novalite import exception
from novalite.db import actions, allocations, builds, instances, schema, server_groups
from novalite.db.engine import now
from novalite.objects import build
from novalite.objects.action import DELETED, Action
from novalite.objects.instance import Instance, InstanceFault
from novalite.objects.states import ActionState, Step, TaskState, Verdict, VMState

_a = schema.instance_actions
_i = schema.instances
_c = schema.cleanups

# The first statement of a delete. A database server may commit a begin at any time; this way it is
# seen by what follows, or it waits and then finds its build closed.
_LOCK = sa.update(_i).where(_i.c.uuid == sa.bindparam("uuid_")).values(updated_at=_i.c.updated_at)

# So many answers that the guest would not go end a delete in ERROR.
MAX_DESTROY_FAILURES = 3


@dataclass(slots=True)
class Opened:
    """A delete was accepted. Unless it is ``closed`` already, ``request`` goes to ``host``.

    Without a host a conductor ends it, after it has given back what an earlier host may hold.
    """

    closed: bool
    host: str | None = None
    request: build.DestroyRequest | None = None


def open_delete(
    conn: sa.Connection,
    context: context_module.RequestContext,
    uuid: str,
    *,
    lease: float,
    force: bool = False,
) -> Opened:
    """Open the delete of a server; a build that is under way ends here.

    A delete that is open already is driven again, which is what the user asks for.

    :raises exception.InstanceNotFound: there is no such server
    :raises exception.InstanceActionOpen: another open action took the server meanwhile
    """
    conn.execute(_LOCK, {"uuid_": uuid})
    instance = instances.get(conn, uuid)
    former = actions.get(conn, instance.action_id) if instance.action_id else None
    if former is not None and former.action in ("delete", "forceDelete"):
        return _drive_again(context, instance, former)
    on_host = instance.host is not None and (former is None or former.step is Step.BEGUN)
    action_id = actions.add(
        conn,
        context,
        instance_uuid=uuid,
        action="forceDelete" if force else "delete",
        state=ActionState.RUNNING,
        step=Step.STARTED,
        lease=lease,
        target_host=instance.host if on_host else None,
        target_node=instance.node if on_host else None,
    )
    replaced = conn.execute(
        sa.update(_i)
        .where(
            _i.c.uuid == uuid,
            _i.c.action_id.is_(None) if former is None else _i.c.action_id == former.id,
        )
        .values(action_id=action_id, task_state=TaskState.DELETING.value, updated_at=time.time())
    ).rowcount
    if not replaced:
        raise exception.InstanceActionOpen(
            action="delete", instance_id=uuid, task_state=instance.task_state
        )
    if former is not None:
        actions.close(conn, former.id, ActionState.SUPERSEDED, DELETED)
    if not on_host and (instance.block_devices or _left_behind(conn, uuid)):
        # An earlier host may never come back to give its ports back, and volumes outlive the
        # attempts that made them: a conductor gives back what there is, at once.
        conn.execute(sa.update(_a).where(_a.c.id == action_id).values(deadline=now()))
        return Opened(closed=False)
    if not on_host:
        finish(conn, uuid, action_id)
        return Opened(closed=True)
    return Opened(False, instance.host, _request(context, instance, action_id))


def _left_behind(conn: sa.Connection, uuid: str) -> bool:
    """Tell whether a host that the build has left has not yet said that it is clear."""
    return conn.execute(sa.select(_c.c.host).where(_c.c.instance_uuid == uuid)).first() is not None


def _drive_again(
    context: context_module.RequestContext, instance: Instance, action: Action
) -> Opened:
    if action.target_host is None:
        return Opened(closed=False)
    return Opened(False, action.target_host, _request(context, instance, action.id))


def _request(
    context: context_module.RequestContext, instance: Instance, action_id: int
) -> build.DestroyRequest:
    return build.DestroyRequest(
        instance=instance,
        node=instance.node or "",
        context=context.to_wire(),
        attempt=None,
        action_id=action_id,
    )


def finish(conn: sa.Connection, uuid: str, action_id: int) -> bool:
    """End an open delete: the server is gone and holds nothing. False if it ended before."""
    if not actions.close(conn, action_id, ActionState.DONE):
        return False
    moment = time.time()
    conn.execute(
        sa.update(_i)
        .where(_i.c.uuid == uuid, _i.c.action_id == action_id)
        .values(
            vm_state=VMState.DELETED.value,
            task_state=None,
            power_state=0,
            network_info=[],
            deleted=True,
            action_id=None,
            terminated_at=moment,
            deleted_at=moment,
            updated_at=moment,
        )
    )
    allocations.delete(conn, uuid)
    server_groups.leave(conn, uuid)
    return True


def finish_without_host(conn: sa.Connection, action: Action) -> bool:
    """End a delete whose host is silent; the host is told when it comes back."""
    if not finish(conn, action.instance_uuid, action.id):
        return False
    if action.target_host:
        builds.add_cleanup(
            conn, action.instance_uuid, action.target_host, action.target_node or "", None
        )
    return True


def gone(conn: sa.Connection, host: str, item: build.Gone) -> tuple[Verdict, str]:
    """Take a host's word that everything of a server, up to an attempt, is off it, or is not."""
    if item.failure is None:
        bound = sa.true() if item.attempt is None else _c.c.attempt <= item.attempt
        conn.execute(
            sa.delete(_c).where(_c.c.instance_uuid == item.instance_uuid, _c.c.host == host, bound)
        )
    if item.action_id is None:
        return Verdict.DONE, ""
    action = actions.get(conn, item.action_id)
    if action is None or action.state is not ActionState.RUNNING or action.target_host != host:
        return Verdict.DONE, "the delete has ended"
    actions.put_events(conn, action.id, 0, item.events, new=False)
    if item.failure is None:
        finish(conn, item.instance_uuid, action.id)
        return Verdict.DONE, ""
    return Verdict.DONE, _destroy_failed(conn, action, host, item.failure)


def _destroy_failed(conn: sa.Connection, action: Action, host: str, failure: str) -> str:
    failures = [*action.failures, f"{host}: {failure}"]
    if len(failures) >= MAX_DESTROY_FAILURES:
        # What the hypervisor said may name paths and hosts; administrators read the details.
        fail(conn, action, "its host could not remove it", failures)
        return "given up"
    conn.execute(
        sa.update(_a)
        .where(_a.c.id == action.id, _a.c.state == ActionState.RUNNING.value)
        .values(failures=failures, deadline=now() + 1.0, updated=now())
    )
    return "will be tried again"


def fail(conn: sa.Connection, action: Action, reason: str, details: list[str]) -> None:
    """End a delete in ERROR; a new DELETE tries again. The host keeps the guest and the books.

    :param reason: for the server's owner, without inner text
    :param details: every failure or loss on the way, for administrators
    """
    if not actions.close(conn, action.id, ActionState.ERROR, reason):
        return
    conn.execute(
        sa.update(_i)
        .where(_i.c.uuid == action.instance_uuid, _i.c.action_id == action.id)
        .values(
            vm_state=VMState.ERROR.value,
            task_state=None,
            action_id=None,
            updated_at=time.time(),
        )
    )
    instances.add_fault(
        conn,
        action.instance_uuid,
        InstanceFault(
            code=500,
            message=f"Deleting instance {action.instance_uuid} failed: {reason}",
            details="\n".join(details),
            host=action.target_host,
            created_at=time.time(),
        ),
    )
