# SPDX-License-Identifier: Apache-2.0
"""An instance action: what the API shows as history is also the durable intent (rule by rule in
docs/architecture.md)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from novalite.objects import base
from novalite.objects.states import ActionState, Step

# Why an action is superseded, in words for everybody.
DELETED = "the server was deleted"


@base.register
@dataclass(slots=True)
class ActionEvent:
    """One step of an action with where it ran and how it ended; times in seconds, UTC."""

    VERSION: ClassVar[str] = "1.0"

    event: str
    host: str | None = None
    start: float = 0.0
    finish: float | None = None
    result: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    traceback: str | None = None
    attempt: int = 0


@base.register
@dataclass(slots=True)
class Action:
    """One action on one server.

    ``attempt`` counts the hosts tried, ``failures`` the hosts that really failed, ``drives`` what
    was lost on the way and had to be driven again, ``recasts`` how often the present attempt was
    cast anew. ``deadline`` is on the database's clock.
    """

    VERSION: ClassVar[str] = "1.0"

    id: int
    request_id: str
    instance_uuid: str
    action: str
    project_id: str = ""
    user_id: str = ""
    state: ActionState = ActionState.PENDING
    step: Step = Step.SCHEDULING
    attempt: int = 0
    failures: list[str] = field(default_factory=list)
    drives: int = 0
    recasts: int = 0
    target_host: str | None = None
    target_node: str | None = None
    owner: str | None = None
    token: str | None = None
    deadline: float = 0.0
    reservation_id: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    start: float = 0.0
    finish: float | None = None
    updated: float | None = None
    message: str | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether it still has to be carried out or ended."""
        return self.state in (ActionState.PENDING, ActionState.RUNNING)

    @property
    def ended_by(self) -> str:
        """What superseded the action; words of ours only, since owners read them."""
        return self.message if self.message == DELETED else "something else began"
