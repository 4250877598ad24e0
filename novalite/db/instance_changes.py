# SPDX-License-Identifier: Apache-2.0
"""What users change of a server's row without a host: metadata, tags, lock.

Called by the API. The row is written first, so that of two changes at one time the later one sees
what the former has made, on every database.
"""

import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from novalite import context as context_module
from novalite import exception
from novalite.db import actions, instance_queries, schema
from novalite.objects.action import ActionEvent
from novalite.objects.states import ActionState

_t = schema.instances

_HOLD = (
    sa.update(_t)
    .where(_t.c.uuid == sa.bindparam("uuid_"), ~_t.c.deleted)
    .values(updated_at=_t.c.updated_at)
)
_METADATA = sa.select(_t.c.metadata).where(_t.c.uuid == sa.bindparam("uuid_"))
_TAGS = sa.select(_t.c.tags).where(_t.c.uuid == sa.bindparam("uuid_"))

# Looks at the held row and raises if the change may not be made.
Check = Callable[[Any], None]


def _hold(conn: sa.Connection, uuid: str, check: Check | None = None) -> Any:
    """Return the row, which nobody else changes before this transaction ends."""
    if not conn.execute(_HOLD, {"uuid_": uuid}).rowcount:
        raise exception.InstanceNotFound(instance_id=uuid)
    row = instance_queries.get_row(conn, uuid)
    if check is not None:
        check(row)
    return row


def change_metadata(
    conn: sa.Connection,
    uuid: str,
    change: Callable[[dict[str, str]], dict[str, str]],
    check: Check,
) -> dict[str, str]:
    """Put what *change* makes of the metadata in its place, and return it.

    :param check: raises if the server is not in a state for it
    :raises exception.InstanceNotFound: it is gone
    """
    _hold(conn, uuid, check)
    metadata = change(dict(conn.execute(_METADATA, {"uuid_": uuid}).scalar_one()))
    instance_queries.update(conn, uuid, {"metadata": metadata})
    return metadata


def change_tags(
    conn: sa.Connection, uuid: str, change: Callable[[set[str]], set[str]], check: Check
) -> set[str]:
    """Put what *change* makes of the tags in their place, and return the former ones.

    :param check: raises if the server is not in a state for it
    :raises exception.InstanceNotFound: it is gone
    """
    _hold(conn, uuid, check)
    former = set(conn.execute(_TAGS, {"uuid_": uuid}).scalar_one())
    tags = change(set(former))
    if tags != former:
        instance_queries.update(conn, uuid, {"tags": sorted(tags)})
    return former


def lock(
    conn: sa.Connection,
    context: context_module.RequestContext,
    uuid: str,
    *,
    owner: bool,
    reason: str | None,
    host: str,
) -> None:
    """Lock a server; an owner's second lock changes nothing.

    :param owner: the caller locks it as its owner, not as an administrator
    :param reason: None keeps the reason of a former lock
    :param host: where the request was served, for the history
    :raises exception.InstanceNotFound: it is gone
    """
    row = _hold(conn, uuid)
    if row.locked and owner:
        return
    values: dict[str, Any] = {"locked": True, "locked_by": "owner" if owner else "admin"}
    if reason is not None:
        values["locked_reason"] = reason
    instance_queries.update(conn, uuid, values)
    _record(conn, context, uuid, "lock", host)


def unlock(
    conn: sa.Connection, context: context_module.RequestContext, uuid: str, *, host: str
) -> None:
    """Unlock a server and forget the reason of its lock.

    :raises exception.InstanceNotFound: it is gone
    """
    _hold(conn, uuid)
    values = {"locked": False, "locked_by": None, "locked_reason": None}
    instance_queries.update(conn, uuid, values)
    _record(conn, context, uuid, "unlock", host)


def _record(
    conn: sa.Connection,
    context: context_module.RequestContext,
    uuid: str,
    action: str,
    host: str,
) -> None:
    """Write an action into the history that is done as soon as it is written."""
    key = actions.add(
        conn, context, instance_uuid=uuid, action=action, state=ActionState.DONE, lease=0.0
    )
    moment = time.time()
    event = ActionEvent(f"api_{action}", host, start=moment, finish=moment, result="Success")
    actions.put_events(conn, key, 0, [event], new=True)
