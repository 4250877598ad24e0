# SPDX-License-Identifier: Apache-2.0
"""An action with its steps, read as a story: attempts with their outcome, and moments in order.

Made from what instance_actions and instance_action_events keep; the API's explanations show it.
Everything that is said comes twice, for administrators and for everybody (:class:`Said`). Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from novalite.objects import advice, base, failure, loss
from novalite.objects.action import Action, ActionEvent
from novalite.objects.decision import Decision
from novalite.objects.failure import Failure
from novalite.objects.states import ActionState, Step

SCHEDULE = "conductor_schedule_and_build_instances"
CLAIM = "compute_claim"
BUILD = "compute__do_build_and_run_instance"
DESTROY = "compute_terminate_instance"


class Said(NamedTuple):
    """The same for administrators and for everybody; the second names no host."""

    admin: str
    tenant: str

    def to(self, admin: bool) -> str:
        """Return the words for one of them."""
        return self.admin if admin else self.tenant


def same(text: str) -> Said:
    """Return what may be said to everybody."""
    return Said(text, text)


class Outcome(StrEnum):
    """What became of an attempt."""

    SUCCEEDED = "succeeded"
    UNDER_WAY = "under_way"
    REFUSED = "refused"
    FAILED = "failed"
    LEFT = "left"
    NO_HOST = "no_host"
    WAITING = "waiting"
    SUPERSEDED = "superseded"


@dataclass(slots=True)
class Attempt:
    """One attempt: how its host was chosen, what the host said, what was lost.

    ``error`` is what the host told, for administrators; ``cause`` its kind, for everybody.
    """

    number: int
    outcome: Outcome = Outcome.UNDER_WAY
    host: str | None = None
    node: str | None = None
    chosen: ActionEvent | None = None
    decision: Decision | None = None
    claim: ActionEvent | None = None
    error: str | None = None
    cause: Failure | None = None
    losses: list[ActionEvent] = field(default_factory=list)

    @property
    def alternate(self) -> bool:
        """Tell whether the host was the next one of an earlier decision."""
        return self.chosen is not None and self.decision is None and self.host is not None

    @property
    def stale(self) -> bool:
        """Tell whether a refused claim was for limits older than the node's own picture."""
        if self.claim is None or self.claim.result != "Error":
            return False
        theirs = self.claim.details.get("limits_generation") or [0, 0]
        return bool((self.claim.details.get("generation") or [0, 0]) > theirs)


@dataclass(slots=True)
class History:
    """An action and its steps in the order in which they began.

    ``members`` counts the servers that were asked for in the same request.
    """

    action: Action
    events: list[ActionEvent] = field(default_factory=list)
    members: int = 1

    def attempts(self) -> list[Attempt]:
        """Return the attempts of a build, the first one first."""
        found: dict[int, Attempt] = {}
        for event in self.events:
            if event.attempt > 0:
                attempt = found.setdefault(event.attempt, Attempt(event.attempt))
                _add(attempt, event)
        ordered = [found[number] for number in sorted(found)]
        for attempt in ordered:
            if attempt.outcome is Outcome.UNDER_WAY:
                attempt.outcome = self._outcome(attempt)
        return ordered

    def _outcome(self, attempt: Attempt) -> Outcome:
        action = self.action
        if attempt.number != action.attempt:
            return Outcome.LEFT
        if action.state is ActionState.DONE:
            return Outcome.SUCCEEDED
        if action.state is ActionState.SUPERSEDED:
            return Outcome.SUPERSEDED
        if action.is_open and action.step is not Step.SCHEDULING:
            return Outcome.UNDER_WAY
        return Outcome.LEFT

    def moments(self) -> list["Moment"]:
        """Return what happened, in the order of time."""
        action = self.action
        rows = [Moment(action.start, None, "api", None, 0, same("the request was accepted"))]
        rows.extend(_moment(event) for event in self.events)
        if action.finish is not None:
            rows.append(Moment(action.finish, None, "", None, 0, _end(action)))
        return sorted(rows, key=lambda row: row.at)


class Moment(NamedTuple):
    """One row of a timeline; ``at`` in seconds since the epoch, ``took`` None for no length."""

    at: float
    took: float | None
    process: str
    host: str | None
    attempt: int
    what: Said


def _add(attempt: Attempt, event: ActionEvent) -> None:
    """Take what a step tells of its attempt."""
    if event.event in (SCHEDULE, loss.WAIT):
        _add_choice(attempt, event)
    elif event.event == loss.EVENT:
        attempt.losses.append(event)
        if event.details.get("code") not in (loss.RECAST, loss.BEGUN_AGAIN, loss.LEASE):
            attempt.outcome = Outcome.LEFT
    elif event.event == CLAIM:
        attempt.host, attempt.claim = event.host, event
        if event.result == "Error":
            attempt.outcome = Outcome.REFUSED
            _add_error(attempt, event)
    elif event.event.startswith("compute_"):
        attempt.host = event.host
        if event.result == "Error":
            attempt.outcome = Outcome.FAILED
            _add_error(attempt, event)


def _add_choice(attempt: Attempt, event: ActionEvent) -> None:
    waited = event.event == loss.WAIT
    if waited and attempt.chosen is not None:
        return
    attempt.chosen, attempt.decision = event, _decision(event)
    attempt.host, attempt.node = event.details.get("host"), event.details.get("node")
    if waited:
        attempt.outcome = Outcome.WAITING
    else:
        failed = event.result == "Error"
        attempt.outcome = Outcome.NO_HOST if failed else Outcome.UNDER_WAY


def _add_error(attempt: Attempt, event: ActionEvent) -> None:
    attempt.error = str(event.details.get("error") or "no reason was told")
    attempt.cause = failure.of(attempt.error)


def _decision(event: ActionEvent) -> Decision | None:
    wire = event.details.get("decision")
    found = base.decode(wire) if wire else None
    return found if isinstance(found, Decision) else None


# -- the words of a timeline

_STEPS = {
    BUILD: "the host was told GO and builds; as a whole",
    "compute_network": "ports are made and bound",
    "compute_block_device_mapping": "volumes are made and attached",
    "compute_spawn": "the guest is made and started",
    DESTROY: "the guest, its ports and its claim are removed",
}


def _moment(event: ActionEvent) -> Moment:
    took = None if event.finish is None else max(0.0, event.finish - event.start)
    process = event.event.partition("_")[0]
    if event.event == loss.EVENT:
        took = None
    return Moment(event.start, took, process, event.host, event.attempt, _said(event))


def _said(event: ActionEvent) -> Said:
    if event.event == loss.EVENT:
        words = loss.words(str(event.details.get("code")))
        return Said(str(event.details.get("text") or words), words)
    if event.event == loss.WAIT:
        return _waited(event)
    if event.event == SCHEDULE:
        return _scheduled(event)
    if event.event == CLAIM:
        said = same("the claim stands")
    else:
        said = same(_STEPS.get(event.event, "a step of the host"))
        if event.event not in _STEPS:
            said = Said(event.event, said.tenant)
    if event.result == "Error":
        # The error itself stands with the attempt.
        kind = failure.of(str(event.details.get("error") or ""))
        lead = "the claim is refused" if event.event == CLAIM else f"{said.tenant}: failed"
        return same(lead if event.event == BUILD else f"{lead}, the host {kind.words}")
    return said if event.result else same(f"{said.tenant} (not ended)")


def _waited(event: ActionEvent) -> Said:
    decision = _decision(event)
    if decision is None:
        return same("no scheduler answered; it is asked again every 2 s (the last time)")
    return same(f"{advice.counted(decision)}; tried again every 2 s (the last time)")


def _scheduled(event: ActionEvent) -> Said:
    decision = _decision(event)
    host = event.details.get("host")
    if event.result == "Error" or not host:
        return same(f"no host: {advice.counted(decision)}" if decision else "no decision was made")
    if decision is None:
        return Said(
            f"attempt {event.attempt} goes to {host}, the next of the last choice",
            f"attempt {event.attempt} goes to the next host of the last choice",
        )
    hosts = advice.times(decision.hosts, "host", "hosts")
    return Said(
        f"the scheduler chose {host} from {hosts}; attempt {event.attempt} goes there",
        f"the scheduler chose one of {hosts} for attempt {event.attempt}",
    )


def _end(action: Action) -> Said:
    if action.state is ActionState.SUPERSEDED:
        return same(f"it was ended: {action.ended_by}")
    if action.state is ActionState.ERROR:
        return same("it ended in ERROR")
    return same("it is done")


def duration(seconds: float) -> str:
    """Return a length of time as a reader wants it: ``64 ms``, ``3.2 s``, ``5 min 3 s``."""
    seconds = max(0.0, seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} days"


def failed_on(attempts: list[Attempt]) -> Iterator[Attempt]:
    """Yield the attempts whose host told a failure or a refusal."""
    for attempt in attempts:
        if attempt.outcome in (Outcome.FAILED, Outcome.REFUSED):
            yield attempt


def claim_lines(details: dict[str, Any]) -> list[str]:
    """Return the arithmetic of a claim, a line for each resource."""
    lines = []
    for name, unit in (("memory", "MB"), ("disk", "GB"), ("vcpu", "VCPU")):
        sums = details.get(name)
        if not isinstance(sums, dict):
            continue
        requested, used, limit = sums.get("requested"), sums.get("used"), sums.get("limit")
        total = sums.get("total")
        if limit is None:
            room = f"no limit; {_amount(used)} of {_amount(total)} {unit} are promised already"
        else:
            room = (
                f"{_amount(limit - used)} {unit} free: limit {_amount(limit)} - used "
                f"{_amount(used)} (total {_amount(total)})"
            )
        lines.append(f"{name}: {_amount(requested)} {unit} requested, {room}")
    return lines


def _amount(value: Any) -> str:
    return f"{float(value):.2f}".rstrip("0").rstrip(".") if value is not None else "?"
