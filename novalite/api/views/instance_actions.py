# SPDX-License-Identifier: Apache-2.0
"""The history of a server as JSON."""

from typing import Any

from novalite.api import times
from novalite.api.views import servers
from novalite.objects.action import Action, ActionEvent

Json = dict[str, Any]


def summary(action: Action, version: int) -> Json:
    """Return an action as in the list."""
    shown: Json = {
        "action": action.action,
        "instance_uuid": action.instance_uuid,
        "request_id": action.request_id,
        "user_id": action.user_id,
        "project_id": action.project_id,
        "start_time": times.micro(action.start),
        "message": action.message,
    }
    if version >= 58:
        shown["updated_at"] = times.micro(action.updated)
    return shown


def event(found: ActionEvent, version: int, project_id: str, *, inside: bool) -> Json:
    """Return one step of an action.

    :param project_id: whose name for the host is shown
    :param inside: show host and traceback, which is for administrators
    """
    shown: Json = {
        "event": found.event,
        "start_time": times.micro(found.start),
        "finish_time": times.micro(found.finish),
        "result": found.result,
    }
    if inside:
        shown["traceback"] = found.traceback
    if version >= 62:
        shown["hostId"] = servers.host_id(project_id, found.host) if found.host else ""
        if inside:
            shown["host"] = found.host or ""
    return shown
