# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/action: the verbs. The table ACTIONS is all of them."""

import re
from collections.abc import Callable
from typing import Any

import falcon

from novalite import exception
from novalite.api import http, microversion, operations, server_state, validation
from novalite.api.parts import Parts, Resource
from novalite.api.resources import servers
from novalite.api.schemas import servers as schemas
from novalite.db import instance_changes

# What no terminal and no XML document takes; a console's text may hold anything.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f]")


def console_output(parts: Parts, req: http.Request, resp: falcon.Response, row: Any) -> None:
    """os-getConsoleOutput: the last lines the guest wrote."""
    length = req.state.body["os-getConsoleOutput"].get("length")
    lines = None if length is None or int(length) < 0 else int(length)
    if not row.host or row.vm_state == "building":
        raise exception.InstanceNotReady(instance_id=row.uuid)
    output = parts.computes.get_console_output(
        req.state.context,
        host=row.host,
        instance_uuid=row.uuid,
        tail_length=lines,
        timeout=float(parts.conf.rpc_response_timeout),
    )
    http.send(resp, {"output": _UNPRINTABLE.sub("", output)})


def force_delete(parts: Parts, req: http.Request, resp: falcon.Response, row: Any) -> None:
    """forceDelete: delete now, whatever else is going on."""
    server_state.check_unlocked(req.state.context, row)
    operations.delete_server(parts, req.state.context, row.uuid, force=True)
    http.send_nothing(resp, 202)


def lock(parts: Parts, req: http.Request, resp: falcon.Response, row: Any) -> None:
    """lock: let nobody but administrators change the server."""
    context = req.state.context
    asked = req.state.body["lock"] if req.state.version >= 73 else None
    owner, host = server_state.is_owner(context, row), str(parts.conf.host)
    reason = (asked or {}).get("locked_reason")
    parts.database.transaction(
        lambda conn: instance_changes.lock(
            conn, context, row.uuid, owner=owner, reason=reason, host=host
        )
    )
    http.send_nothing(resp, 202)


def unlock(parts: Parts, req: http.Request, resp: falcon.Response, row: Any) -> None:
    """unlock: what an administrator has locked, its owner does not unlock."""
    context = req.state.context
    expected = "owner" if server_state.is_owner(context, row) else "admin"
    if row.locked_by and row.locked_by != expected:
        parts.policy.check(context, "os-lock-server:unlock:unlock_override", row.project_id)
    host = str(parts.conf.host)
    parts.database.transaction(
        lambda conn: instance_changes.unlock(conn, context, row.uuid, host=host)
    )
    http.send_nothing(resp, 202)


Action = Callable[[Parts, http.Request, falcon.Response, Any], None]
# The key of the body -> its schema, the rule that is asked before the schema, what to do.
ACTIONS: dict[str, tuple[microversion.Ranges, str, Action]] = {
    "os-getConsoleOutput": (schemas.CONSOLE_OUTPUT, "os-console-output", console_output),
    "forceDelete": (schemas.FORCE_DELETE, "os-deferred-delete:force", force_delete),
    "lock": (schemas.LOCK, "os-lock-server:lock", lock),
    "unlock": (schemas.UNLOCK, "os-lock-server:unlock", unlock),
}


class ServerActionResource(Resource):
    """/servers/{server_id}/action"""

    @validation.body(schemas.ACTION)
    def on_post(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Do what the one key of the body names."""
        name = next(iter(req.state.body))
        if name not in ACTIONS:
            raise exception.InvalidInput(f"There is no such action: {name[:64]}")
        ranges, rule, action = ACTIONS[name]
        row = servers.find(self.parts, req, server_id, rule)
        ranges.at(req.state.version).check(req.state.body)
        action(self.parts, req, resp, row)
