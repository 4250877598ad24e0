# SPDX-License-Identifier: Apache-2.0
"""The explanation of a server as JSON, for its owner or with hosts and numbers.

Assembles; the words and sums are those of novalite/objects.
"""

from typing import Any

from novalite.api import times
from novalite.objects import advice, explanation, history, loss, verdict
from novalite.objects.action import ActionEvent
from novalite.objects.decision import Decision
from novalite.objects.facts import Facts
from novalite.objects.history import Attempt, History, Moment

Json = dict[str, Any]

# Faults with these words name no host; all others are told to administrators only.
_FOR_ALL = ("No valid host was found.", "Exceeded maximum number of retries.", "Build of instance ")


def show(facts: Facts, uuid: str, *, admin: bool, more: bool) -> Json:
    """Return the body.

    :param admin: with hosts and numbers
    :param more: there are older actions than these
    """
    found = explanation.explain(facts, admin=admin)
    server: Json = {
        "id": uuid,
        "name": facts.name,
        "status": facts.status,
        "task_state": facts.task_state,
    }
    if admin:
        server |= {"host": facts.host, "node": facts.node}
    body: Json = {
        "server": server,
        "host_details": admin,
        "summary": found.sentence,
        "more": found.more,
        "advice": found.advice,
        "fault": _fault(facts, admin),
        "actions": [_action(each, facts, admin) for each in facts.histories],
        "older_actions": more,
    }
    return {"explanation": body}


def _fault(facts: Facts, admin: bool) -> Json | None:
    fault = facts.fault
    if fault is None or facts.status not in ("ERROR", "DELETED"):
        return None
    told = admin or fault.message.startswith(_FOR_ALL)
    shown: Json = {
        "code": fault.code,
        "created": times.zulu(fault.created_at),
        "message": fault.message if told else "The host could not do what was asked.",
    }
    if admin:
        shown |= {"details": fault.details, "host": fault.host}
    return shown


def _action(found: History, facts: Facts, admin: bool) -> Json:
    action = found.action
    shown: Json = {
        "action": action.action,
        "request_id": action.request_id,
        "state": action.state.value,
        "summary": explanation.action_summary(found, facts),
        "start_time": times.micro(action.start),
        "finish_time": times.micro(action.finish),
        "took_ms": _ms(None if action.finish is None else action.finish - action.start),
        "losses": action.drives,
        "servers_in_request": found.members,
        "timeline": [_moment(row, action.start, admin) for row in found.moments()],
        "attempts": [_attempt(each, admin) for each in found.attempts()],
    }
    if admin:
        shown |= {
            "step": action.step.value,
            "failures": action.failures,
            "recasts": action.recasts,
            "target_host": action.target_host,
            "target_node": action.target_node,
            "owner": action.owner,
        }
    return shown


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


def _moment(row: Moment, start: float, admin: bool) -> Json:
    shown: Json = {
        "at_ms": _ms(row.at - start),
        "took_ms": _ms(row.took),
        "process": row.process,
        "attempt": row.attempt,
        "what": row.what.to(admin),
    }
    if admin:
        shown["host"] = row.host
    return shown


def _attempt(attempt: Attempt, admin: bool) -> Json:
    cause = attempt.cause
    shown: Json = {
        "attempt": attempt.number,
        "outcome": attempt.outcome.value,
        "cause": None if cause is None else cause.code,
        "cause_text": None if cause is None else f"the host {cause.words}",
        "alternate": attempt.alternate,
        "decision": None if attempt.decision is None else _decision(attempt.decision, admin),
        "losses": [_loss(event, admin) for event in attempt.losses],
    }
    if admin:
        shown |= {
            "host": attempt.host,
            "node": attempt.node,
            "error": attempt.error,
            "stale_picture": attempt.stale,
            "claim": None if attempt.claim is None else _claim(attempt.claim),
        }
    return shown


def _decision(decision: Decision, admin: bool) -> Json:
    if not admin:
        return decision.tenant_view() | {"text": f"{advice.counted(decision)}."}
    shown = decision.admin_view() | {"text": decision.text()}
    shown["resources"] = verdict.resources(decision.room)
    shown["more"] = verdict.negative(decision.room)
    for miss, row in zip(decision.misses, shown["misses"], strict=True):
        row["more"] = verdict.negative(reason for _name, reason in miss.reasons)
    return shown


def _claim(event: ActionEvent) -> Json:
    return event.details | {"text": history.claim_lines(event.details)}


def _loss(event: ActionEvent, admin: bool) -> Json:
    code = str(event.details.get("code"))
    known = code if code in loss.WORDS else "other"
    shown: Json = {"code": known, "text": loss.words(code)}
    if admin:
        shown["text"] = event.details.get("text") or shown["text"]
    return shown
