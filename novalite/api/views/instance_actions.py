# SPDX-License-Identifier: Apache-2.0
"""The history of a server as JSON."""

from typing import Any

from novalite.api import times
from novalite.objects.action import Action, ActionEvent

Json = dict[str, Any]


def summary(action: Action) -> Json:
    """Return an action as in the list."""
    return {
        "action": action.action,
        "instance_uuid": action.instance_uuid,
        "request_id": action.request_id,
        "user_id": action.user_id,
        "project_id": action.project_id,
        "start_time": times.micro(action.start),
        "message": action.message,
    }


def event(found: ActionEvent, *, traceback: bool) -> Json:
    """Return one step of an action; the traceback is for administrators."""
    shown: Json = {
        "event": found.event,
        "start_time": times.micro(found.start),
        "finish_time": times.micro(found.finish),
        "result": found.result,
    }
    if traceback:
        shown["traceback"] = found.traceback
    return shown
