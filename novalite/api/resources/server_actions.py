# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/action: the verbs. The table ACTIONS is all of them."""

import re
from collections.abc import Callable
from typing import Any

import falcon

from novalite import exception
from novalite.api import http, microversion, operations, validation
from novalite.api.parts import Parts, Resource
from novalite.api.resources import servers
from novalite.api.schemas import servers as schemas

# What no terminal and no XML document takes; a console's text may hold anything.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f]")


def console_output(parts: Parts, req: http.Request, resp: falcon.Response, row: Any) -> None:
    """os-getConsoleOutput: the last lines the guest wrote."""
    parts.policy.check(req.state.context, "os-console-output", row.project_id)
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
    parts.policy.check(req.state.context, "os-deferred-delete:force", row.project_id)
    operations.delete_server(parts, req.state.context, row.uuid, force=True)
    http.send_nothing(resp, 202)


Action = Callable[[Parts, http.Request, falcon.Response, Any], None]
ACTIONS: dict[str, tuple[microversion.Ranges, Action]] = {
    "os-getConsoleOutput": (schemas.CONSOLE_OUTPUT, console_output),
    "forceDelete": (schemas.FORCE_DELETE, force_delete),
}


class ServerActionResource(Resource):
    """/servers/{server_id}/action"""

    @validation.body(schemas.ACTION)
    def on_post(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Do what the one key of the body names."""
        name = next(iter(req.state.body))
        if name not in ACTIONS:
            raise exception.InvalidInput(f"There is no such action: {name[:64]}")
        ranges, action = ACTIONS[name]
        ranges.at(req.state.version).check(req.state.body)
        row = servers.find(self.parts, req, server_id)
        action(self.parts, req, resp, row)
