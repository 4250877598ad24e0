# SPDX-License-Identifier: Apache-2.0
"""Why a server is in ERROR, and what would change it; a part of objects/explanation.py. Pure."""

from collections import Counter

from novalite.objects import advice, loss
from novalite.objects import facts as facts_module
from novalite.objects.action import ActionEvent
from novalite.objects.decision import Decision
from novalite.objects.facts import DELETES, Explanation, Facts
from novalite.objects.history import Attempt, History, Outcome, Said, failed_on, same
from novalite.objects.states import ActionState


def explain(facts: Facts, *, admin: bool) -> Explanation:
    """Explain why a server is in ERROR."""
    history = next((h for h in facts.histories if h.action.state is ActionState.ERROR), None)
    message = facts.fault.message if facts.fault else ""
    if history is None:
        text = message.rstrip(".") if message and admin else "no action of it has failed"
        return Explanation(f"{facts.name} is in ERROR: {text}.")
    if history.action.action in DELETES:
        return _delete_failed(facts, history, admin)
    attempts = history.attempts()
    last = attempts[-1] if attempts else None
    failed = list(failed_on(attempts))
    if last is not None and last.outcome is Outcome.NO_HOST:
        found = _no_host(facts, history, last.decision, failed, admin)
    elif failed and message.startswith("Exceeded maximum number of retries"):
        found = _attempts_used_up(facts, failed, admin)
    elif history.action.drives > loss.MAX_DRIVES:
        found = _given_up(facts, history, admin)
    elif failed:
        found = _failed_for_good(facts, failed, admin)
    else:
        text = message.rstrip(".") if message and admin else "its build failed"
        found = Explanation(f"{facts.name} is in ERROR: {text}.")
    return found


def _no_host(
    facts: Facts,
    history: History,
    decision: Decision | None,
    failed: list[Attempt],
    admin: bool,
) -> Explanation:
    if decision is None:
        return Explanation(
            f"{facts.name} is in ERROR: the scheduler could not decide.",
            ["That is a fault of a filter or weigher, not of the hosts."],
            ["read the traceback in the log of novalite-scheduler"]
            if admin
            else [advice.ASK_OPERATORS],
        )
    lost = [a for a in history.attempts() if a.outcome is Outcome.LEFT]
    lead = "no other host can take it" if failed or lost else "no host can take it"
    silent = [a for a in lost if any(e.details.get("code") == loss.SILENT for e in a.losses)]
    if silent:
        hosts = list(dict.fromkeys(str(a.host) for a in silent))
        who = advice.listed(hosts) if admin else advice.times(len(hosts), "host", "hosts")
        lead = f"{who} fell silent in mid build, and {lead}"
    found = Explanation(f"{facts.name} is in ERROR: {lead}: {advice.counted(decision)}.")
    found.more.extend(_lost(attempt, admin) for attempt in lost if attempt not in silent)
    if failed:
        found.more.append(f"Before: {failures(failed).to(admin)}.")
        found.advice.extend(_failure_advice(failed, admin))
    if history.members > 1:
        found.more.append(
            f"{history.members} servers were asked for in one request, all or none; this decision "
            "is that of the first one for which there was no host."
        )
    found.advice.extend(
        line for line in facts_module.advise(decision, admin) if line not in found.advice
    )
    return found


def _lost(attempt: Attempt, admin: bool) -> str:
    texts = [Said(str(e.details.get("text") or "it was lost"), _words(e)) for e in attempt.losses]
    if not texts:
        return f"Attempt {attempt.number} came to nothing."
    lead = f"Attempt {attempt.number}: "
    text = texts[-1].to(admin)
    return (text[:1].upper() + text[1:] if admin else lead + text).rstrip(".") + "."


def _words(event: ActionEvent) -> str:
    return loss.words(str(event.details.get("code")))


def failures(failed: list[Attempt]) -> Said:
    """Say where and why attempts failed; hosts that told the same stand together."""
    hosts: dict[str, list[str]] = {}
    for attempt in failed:
        hosts.setdefault((attempt.error or "").rstrip("."), []).append(str(attempt.host))
    admin = "; ".join(f"on {advice.listed(names)}: {error}" for error, names in hosts.items())
    kinds = Counter(a.cause.words for a in failed if a.cause is not None)
    parts = [f"{advice.times(count, 'host', 'hosts')} {words}" for words, count in kinds.items()]
    return Said(admin, advice.listed(parts))


def _failure_advice(failed: list[Attempt], admin: bool) -> list[str]:
    if not admin:
        return [advice.ASK_OPERATORS]
    hosts: dict[str, list[str]] = {}
    for attempt in failed:
        if attempt.cause is not None and attempt.host:
            found = hosts.setdefault(attempt.cause.advice, [])
            if attempt.host not in found:
                found.append(attempt.host)
    return [text.format(host=advice.listed(names)) for text, names in hosts.items()]


def _attempts_used_up(facts: Facts, failed: list[Attempt], admin: bool) -> Explanation:
    causes = {attempt.cause for attempt in failed}
    why = ""
    if len(causes) == 1 and (cause := failed[0].cause) is not None:
        why = f": each {cause.words}"
    tried = advice.times(len(failed), "host was", "hosts were")
    option = f" ([scheduler] max_attempts = {len(failed)})" if admin else ""
    found = Explanation(
        f"{facts.name} is in ERROR: {tried} tried, as many as are allowed{option}{why}."
    )
    if admin or not why:
        text = failures(failed).to(admin)
        found.more.append(f"{text[:1].upper()}{text[1:]}.")
    found.advice = _failure_advice(failed, admin)
    if admin:
        found.advice.append(
            "[scheduler] max_attempts lets a build try more hosts; it does not mend the cause"
        )
    return found


def _failed_for_good(facts: Facts, failed: list[Attempt], admin: bool) -> Explanation:
    """The fault was not worth another host, or another host must not be tried."""
    last = failed[-1]
    where = str(last.host) if admin else "its host"
    words = last.cause.words if last.cause else "failed"
    sentence = f"{facts.name} is in ERROR: {where} {words}, and no other host was tried."
    found = Explanation(sentence, advice=_failure_advice(failed[-1:], admin))
    if facts.fault is not None and "Could not clean up" in facts.fault.message:
        found.more.append(
            f"{last.host if admin else 'The host'} could not remove the failed guest either; while "
            "it may be there, the build goes nowhere else."
        )
    if admin:
        found.more.append(f"The host said: {(last.error or '').rstrip('.')}.")
    return found


def _given_up(facts: Facts, history: History, admin: bool) -> Explanation:
    action = history.action
    found = Explanation(
        f"{facts.name} is in ERROR: its build was given up after {action.drives} losses on the way "
        "(restarted processes, lost messages, refused claims)."
    )
    kinds = Counter(_words(e) for a in history.attempts() for e in a.losses)
    found.more.extend(f"{advice.times(n, 'time', 'times')}: {words}." for words, n in kinds.items())
    found.advice = (
        ["see in the logs of these hosts, and of the bus, why messages or processes get lost"]
        if admin
        else ["create it anew", advice.ASK_OPERATORS]
    )
    return found


def _delete_failed(facts: Facts, history: History, admin: bool) -> Explanation:
    action = history.action
    said = same("its host could not remove it")
    if action.message:
        said = Said(f"{action.target_host} could not remove it: {action.message}", said.tenant)
    found = Explanation(f"{facts.name} is in ERROR: {said.to(admin).rstrip('.')}.")
    if admin:
        found.more.extend(action.failures)
    found.advice = ["delete it again when that is mended"] if admin else ["delete it again"]
    return found
