# SPDX-License-Identifier: Apache-2.0
"""Who owns a server: the attempt of an open build, the attempt that has built it, or nobody.

Read by db/attempts.py and db/failures.py in the transaction in which they act on it.
"""

from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from novalite.db import actions, schema
from novalite.objects.states import Step, TaskState, Verdict

_a = schema.instance_actions
_i = schema.instances

# Everything that the questions below ask of an action and its server.
LOOK = (
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


@dataclass(slots=True)
class Outcome:
    """What a transaction decided: the answer, and what the conductor has to do after commit."""

    verdict: Verdict
    reason: str = ""
    # Reservations whose builds wait for a conductor now.
    drive: list[str] = field(default_factory=list)


def qualified(epoch: int, token: str) -> str:
    """Return a token with the epoch it belongs to, since a newer start of a host is believed."""
    return f"{epoch}:{token}"


def epoch_of(token: str | None) -> int:
    """Return the epoch of a qualified token; 0 for none."""
    return int(token.partition(":")[0]) if token else 0


def is_open(row: Any) -> bool:
    """Tell whether the action is the server's open one."""
    return row.action_id == row.id and row.state in actions.OPEN


def built_here(row: Any, host: str, attempt: int) -> bool:
    """Tell whether this attempt has finished on this host and the server is still its work.

    Whatever else has become of the server since (stopped, in error), the guest is its only one.
    """
    return bool(
        not row.deleted
        and row.task_state != TaskState.DELETING.value
        and row.instance_host == host
        and row.built_action == row.id
        and row.built_attempt == attempt
    )


def is_owner(row: Any, host: str, attempt: int) -> bool:
    """Tell whether the server is this attempt's, finished here or still under way."""
    under_way = is_open(row) and row.step != Step.SCHEDULING.value
    here = row.attempt == attempt and row.target_host == host
    return built_here(row, host, attempt) or (under_way and here)


def why(row: Any, attempt: int) -> str:
    """Say why *attempt* does not own the server."""
    if row.deleted or row.task_state == TaskState.DELETING.value:
        return "the server is deleted"
    if not is_open(row):
        return "the action has ended"
    if row.attempt != attempt or row.step == Step.SCHEDULING.value:
        return f"attempt {attempt} was left"
    return f"host {row.target_host} owns attempt {row.attempt}"
