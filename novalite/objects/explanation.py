# SPDX-License-Identifier: Apache-2.0
"""What a server does and why, in one sentence, with what would change it.

The API reads the facts and calls :func:`explain`. Administrators are told hosts and numbers,
everybody else counts and kinds: what a tenant is told names no host, address, path or size of a
host. Pure: no clock, no option, no table.
"""

from novalite.objects import advice, loss, trouble, verdict
from novalite.objects import facts as facts_module
from novalite.objects.action import Action
from novalite.objects.decision import where
from novalite.objects.facts import CONDUCTOR, CREATE, DELETES, Explanation, Facts
from novalite.objects.history import Attempt, History, Outcome, duration, failed_on
from novalite.objects.states import ActionState, Step, VMState


def explain(facts: Facts, *, admin: bool) -> Explanation:
    """Explain the present state of a server to an administrator or to its owner."""
    opened = facts.open()
    if facts.deleted:
        found = _deleted(facts)
    elif opened is not None and opened.action.action != CREATE:
        found = _other_action(facts, opened, admin)
    elif opened is not None:
        found = _building(facts, opened, admin)
    elif facts.vm_state == VMState.ERROR:
        found = trouble.explain(facts, admin=admin)
    else:
        found = _at_rest(facts, admin)
    if admin and facts.cleanups:
        hosts = advice.listed(sorted(facts.cleanups))
        found.more.append(
            f"{hosts} may still hold what an earlier attempt left; it is removed as soon as the "
            "host reports."
        )
    return found


def action_summary(history: History, facts: Facts) -> str:
    """Return how one action went, in a few words."""
    action = history.action
    took = duration((action.finish or facts.now) - action.start)
    if action.state is ActionState.DONE and action.action == CREATE:
        return f"done in {took} at attempt {action.attempt}"
    if action.state is ActionState.DONE:
        return f"done in {took}"
    if action.state is ActionState.SUPERSEDED:
        return f"ended after {took}: {action.ended_by}"
    if action.state is ActionState.ERROR:
        return f"failed after {took}"
    return f"open for {took}"


# -- at rest


def _deleted(facts: Facts) -> Explanation:
    gone = facts.find(*DELETES)
    when = ""
    if gone is not None and gone.action.finish is not None:
        when = f" {duration(facts.now - gone.action.finish)} ago"
    before = {
        ActionState.SUPERSEDED: "while it was being built",
        ActionState.ERROR: "after its build had failed",
    }
    create = facts.find(CREATE)
    words = before.get(create.action.state, "") if create else ""
    return Explanation(f"{facts.name} was deleted{when}{', ' + words if words else ''}.")


def _at_rest(facts: Facts, admin: bool) -> Explanation:
    place = f" on {where(facts.host, facts.node)}" if admin and facts.host else ""
    sentence = f"{facts.name} is {facts.status}{place}"
    create = facts.find(CREATE)
    if create is not None and create.action.state is ActionState.DONE:
        sentence += f"; its build took {_how_built(create)}"
    found = Explanation(sentence + ".")
    if admin and create is not None:
        found.more.extend(_overcommitted(create))
        found.more.extend(_forced(create))
    service = facts.service(facts.host)
    if service is not None and not service.is_up(facts.down_time):
        heard = facts_module.heard(facts, facts.host)
        found.more.append(
            f"{heard} Its guest may run on; nothing can be done with it meanwhile."
            if admin
            else "Its host does not report; nothing can be done with it meanwhile."
        )
        found.advice = [facts_module.bring_back(facts.host, admin)]
    return found


def _overcommitted(create: History) -> list[str]:
    """Say why it could be placed although something was promised that is not there."""
    chosen = [attempt for attempt in create.attempts() if attempt.decision is not None]
    if not chosen or chosen[-1].decision is None:
        return []
    made = chosen[-1].decision
    place = where(made.host, made.node)
    return [f"When {place} was chosen: {text}." for text in verdict.negative(made.room)]


def _forced(create: History) -> list[str]:
    """Say what the filters had against a host that the request named."""
    chosen = [attempt.decision for attempt in create.attempts() if attempt.decision is not None]
    if not chosen or not chosen[-1].forced:
        return []
    made = chosen[-1]
    if not made.violated:
        return [f"{made.host} was named in the request; the filters, not asked, had agreed."]
    said = "; ".join(f"{name}: {reason.text()}" for name, reason in made.violated)
    return [f"{made.host} was named in the request; filters that were skipped refuse it: {said}."]


def _how_built(history: History) -> str:
    action = history.action
    took = duration((action.finish or action.start) - action.start)
    attempts = advice.times(action.attempt, "attempt", "attempts")
    lost = (
        f" and {advice.times(action.drives, 'loss', 'losses')} on the way" if action.drives else ""
    )
    return f"{took}, {attempts}{lost}"


# -- under way


def _other_action(facts: Facts, history: History, admin: bool) -> Explanation:
    action = history.action
    since = duration(facts.now - action.start)
    if action.action not in DELETES:
        return Explanation(f"{facts.name} is {facts.status}; {action.action} is open for {since}.")
    found = Explanation(f"{facts.name} is being deleted, since {since}.")
    if action.target_host is None:
        found.more.append("A conductor gives back what it holds; no host has to do anything.")
        return found
    if not admin:
        found.more.append("Its host was told to remove it.")
        return found
    found.more.append(f"{action.target_host} was told to remove it.")
    found.more.append(facts_module.heard(facts, action.target_host))
    if action.failures:
        last = action.failures[-1]
        found.more.append(
            f"It failed {advice.times(len(action.failures), 'time', 'times')}: {last}"
        )
    service = facts.service(action.target_host)
    if service is None or not service.is_up(facts.down_time):
        found.more.append("When the host stays silent, everything is freed without it.")
    return found


def _building(facts: Facts, history: History, admin: bool) -> Explanation:
    action, attempts = history.action, history.attempts()
    since = duration(facts.now - action.start)
    if action.step is Step.SCHEDULING and action.state is ActionState.PENDING:
        found = _waiting(facts, attempts, since, admin)
    elif action.step is Step.SCHEDULING:
        found = Explanation(
            f"{facts.name} is being built, since {since}: a conductor has it and asks the "
            "scheduler for a host."
        )
    else:
        found = _on_host(facts, action, since, admin)
    failed = list(failed_on(attempts))
    if failed:
        found.more.append(f"Before: {trouble.failures(failed).to(admin)}.")
    if action.drives:
        found.more.append(_losses(action))
    return found


def _on_host(facts: Facts, action: Action, since: str, admin: bool) -> Explanation:
    told = admin and action.target_host is not None
    place = where(action.target_host, action.target_node) if told else "a host"
    begun = action.step is Step.BEGUN
    doing = facts.task_state or "before its first step"
    what = f"{place} builds it ({doing})" if begun else f"{place} was told to build it"
    ended = "" if begun else " and has not begun yet"
    found = Explanation(
        f"{facts.name} is being built, since {since}: attempt {action.attempt}, {what}{ended}."
    )
    service = facts.service(action.target_host)
    if service is not None and not service.is_up(facts.down_time):
        found.advice = [facts_module.bring_back(action.target_host, admin)]
        if not admin:
            found.more.append("The host does not report; the build moves to another one soon.")
    if told:
        found.more.append(facts_module.heard(facts, action.target_host))
        if found.advice:
            found.more.append("A conductor moves the build once it has itself watched the silence.")
    return found


def _waiting(facts: Facts, attempts: list[Attempt], since: str, admin: bool) -> Explanation:
    name = facts.name
    last = attempts[-1] if attempts else None
    if last is not None and last.outcome is Outcome.WAITING and last.decision is not None:
        return Explanation(
            f"{name} waits for a host, since {since}: {advice.counted(last.decision)}.",
            ["It is tried again every 2 s, because a host may be back soon."],
            facts_module.advise(last.decision, admin),
        )
    if last is not None and last.outcome is Outcome.WAITING:
        return Explanation(
            f"{name} waits for a scheduler, since {since}: none answers.",
            ["It is kept, and goes on by itself as soon as one does."],
            ["see whether novalite-scheduler runs and reaches the bus"]
            if admin
            else [advice.ASK_OPERATORS],
        )
    if last is not None:
        return Explanation(
            f"{name} is being built, since {since}: attempt {last.number} came to nothing, the "
            "next one waits for a conductor."
        )
    found = Explanation(
        f"{name} waits to be taken by a conductor, since {since}.",
        ["It is kept, and goes on by itself as soon as a conductor and the bus are there."],
    )
    if admin:
        found.more.insert(0, _conductors(facts))
        found.advice = ["see whether the message bus and novalite-conductor run"]
    return found


def _conductors(facts: Facts) -> str:
    ages = [s.age for s in facts.services if s.binary == CONDUCTOR and s.age is not None]
    if not ages:
        return "No conductor has ever reported."
    return f"The last report of a conductor was {duration(min(ages))} ago."


def _losses(action: Action) -> str:
    lost = advice.times(action.drives, "loss", "losses")
    return f"{lost} on the way so far; more than {loss.MAX_DRIVES} would end it."
