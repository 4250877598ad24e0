# SPDX-License-Identifier: Apache-2.0
"""The bus in the model: what happens when a message is lost, delivered, or delivered twice."""

from collections.abc import Callable
from typing import Any

from tests.model.state import (
    ALL,
    ANSWERS,
    BEGIN,
    FAILED,
    GO,
    HELD,
    IN_SPAWN,
    MOST_FAILURES,
    SPAWNED,
    TO_HOST,
    Message,
    Moves,
    State,
    Work,
)

# More handlings of one build on one host than this add nothing new.
_MOST_IN_HAND = 2
Deliver = Callable[[Moves, State, Message, str], None]


def moves(found: Moves) -> None:
    """Add every move of a message that is in flight."""
    for message in sorted(set(found.here.bus)):
        lost = found.fault("loss")
        if lost:
            _take_off(lost, message)
            found.add(f"LOST {message.kind}", "fault", lost)
        if message.kind in TO_HOST and not found.here.hosts[message.host].reachable:
            continue
        once = found.fresh()
        _take_off(once, message)
        _DELIVER[message.kind](found, once, message, "progress")
        twice = found.fault("duplicate") if message.kind not in ANSWERS else None
        if twice:
            _DELIVER[message.kind](found, twice, message, "fault")


def _take_off(state: State, message: Message) -> None:
    rest = list(state.bus)
    rest.remove(message)
    state.bus = tuple(rest)


def _build(found: Moves, state: State, message: Message, kind: str) -> None:
    """At the compute: claim and make a token, unless the attempt is in hand already."""
    wording, attempt = found.wording, message.attempt
    host, label = state.hosts[message.host], f"build of attempt {message.attempt}"
    if any(work.attempt == attempt for work in host.hand):
        found.add(f"{label}: in hand already", kind, state)
        return
    bad = None
    if not wording.start_over_after_go and host.guest and host.guest.attempt != attempt:
        bad = state.destroy(message.host, "starting over before begin")
    host.sequence += 1
    token = host.epoch * 10 + (host.sequence if wording.random_token else attempt)
    if state.may("refusal"):
        _refuse(found, State(state.key()), message, token, bad)
    if wording.newer_cancels:
        if any(work.attempt > attempt for work in host.hand):
            found.add(f"{label}: older than what is in hand", kind, state, bad)
            return
        host.hand = tuple(
            work._replace(up_to=attempt - 1) for work in host.hand if work.stage in IN_SPAWN
        )
    host.hand = tuple(sorted((*host.hand, Work(attempt, token, BEGIN))))
    if len(host.hand) <= _MOST_IN_HAND:
        found.add(f"{label}: claimed, token {token}", kind, state, bad)


def _refuse(found: Moves, state: State, message: Message, token: int, bad: str | None) -> None:
    state.spend("refusal")
    host, attempt = state.hosts[message.host], message.attempt
    leftover = host.guest is not None and host.guest.attempt == attempt
    active_here = state.server == "ACTIVE" and state.server_host == message.host
    if found.wording.refusal_after_removal and leftover and not active_here:
        host.guest = None
    values: dict[str, Any] = {"epoch": host.epoch, "attempt": attempt, "token": token}
    state.send(Message("refusal", message.host, **values))
    found.add(f"build of attempt {attempt}: claim refused", "fault", state, bad)


def _superseded(state: State) -> str:
    """Why an attempt is not the owner: deleted, ended, or left for another one."""
    if state.server == "DELETED" or state.delete:
        return "SUPERSEDED (deleted)"
    return "SUPERSEDED (ended)" if state.server == "ERROR" else "SUPERSEDED (left)"


def _answer(found: Moves, state: State, message: Message, kind: str, answer: str | None) -> None:
    host = state.hosts[message.host]
    listens = host.up and not (host.fenced and found.wording.stale_answers_dropped)
    if answer and listens and host.work(message.token):
        values: dict[str, Any] = {"token": message.token, "answer": answer}
        state.send(Message(f"{message.kind}_answer", message.host, **values))
    label = f"{message.kind} of attempt {message.attempt} at host {message.host}: {answer}"
    found.add(label, kind, state)


def _is_old(found: Moves, state: State, message: Message) -> bool:
    return found.wording.epochs and message.epoch < state.hosts[message.host].known_epoch


def _begin(found: Moves, state: State, message: Message, kind: str) -> None:
    """At the conductor (rule 1)."""
    waits = state.open and state.started and not state.begun
    mine = waits and message.attempt == state.attempt and not _is_old(found, state, message)
    if mine and state.may("refusal"):
        _misplaced(found, State(state.key()), message)
    answer = None if _is_old(found, state, message) else _begin_verdict(found, state, message)
    _answer(found, state, message, kind, answer)


def _misplaced(found: Moves, state: State, message: Message) -> None:
    """The policy of the server's group forbids the host: the attempt is left with the answer."""
    state.spend("refusal")
    state.leave(found.wording)
    state.failures += 1
    if state.failures >= MOST_FAILURES:
        state.fail(found.wording)
    _answer(found, state, message, "fault", "SUPERSEDED (left)")


def _begin_verdict(found: Moves, state: State, message: Message) -> str:
    wording = found.wording
    if not state.open:
        own = state.server == "ACTIVE" and state.server_host == message.host and not state.delete
        finished_here = own and message.attempt == state.built_attempt
        return "DROP" if finished_here and wording.finished_is_dropped else _superseded(state)
    if message.attempt != state.attempt or not state.started:
        return "SUPERSEDED (left)"
    if not state.begun:
        others = 0 if wording.leaving_frees else state.allocations
        state.begun, state.token = True, message.token
        state.server_host, state.allocations = message.host, others | 1 << message.host
        return "GO"
    if message.token == state.token:
        return "GO"
    newer = message.token > state.token
    if newer if wording.newest_token else message.token // 10 > state.token // 10:
        state.token = message.token
        return "GO"
    return "DROP"


def _refusal(found: Moves, state: State, message: Message, kind: str) -> None:
    """At the conductor: believed while not begun, or from a newer start of the host (rule 1)."""
    current = state.open and message.attempt == state.attempt and state.started
    if current and not _is_old(found, state, message):
        newer_start = message.token // 10 > state.token // 10
        if not state.begun or newer_start or not found.wording.refusal_checked:
            state.leave(found.wording)
    found.add(f"refusal of attempt {message.attempt} arrives", kind, state)


def _finish(found: Moves, state: State, message: Message, kind: str) -> None:
    """At the conductor (rule 1)."""
    answer = None if _is_old(found, state, message) else _finish_verdict(found, state, message)
    _answer(found, state, message, kind, answer)


def _finish_verdict(found: Moves, state: State, message: Message) -> str:
    owner = state.begun and message.attempt == state.attempt and message.token == state.token
    if state.open and owner:
        if message.good:
            state.server, state.open, state.built_attempt = "ACTIVE", False, message.attempt
        else:
            _failed(found, state)
        return "DONE"
    if not message.good:
        return "DONE"
    again = message.token == state.token and message.attempt == state.built_attempt
    return "DONE" if again else _superseded(state)


def _failed(found: Moves, state: State) -> None:
    before = [host.cleanup for host in state.hosts]
    state.leave(found.wording)
    if found.wording.failure_after_removal:  # the guest is gone, so nothing is to be cleaned
        for host, cleanup in zip(state.hosts, before, strict=True):
            host.cleanup = cleanup
    state.failures += 1
    if state.failures >= MOST_FAILURES:
        state.fail(found.wording)


def _begin_answer(found: Moves, state: State, message: Message, kind: str) -> None:
    """At the compute."""
    host = state.hosts[message.host]
    work, bad = host.work(message.token), None
    if work and work.stage == BEGIN:
        if message.answer == "GO":
            host.put(work.token, stage=GO)
        else:
            bad = _obey(found, state, message, work)
    found.add(f"host {message.host} hears {message.answer} to begin", kind, state, bad)


def _finish_answer(found: Moves, state: State, message: Message, kind: str) -> None:
    """At the compute: DONE marks the guest as acknowledged, and resumes it after a fence."""
    host = state.hosts[message.host]
    work, bad = host.work(message.token), None
    if work and work.stage != BEGIN:
        bad = _obey(found, state, message, work)
        own = host.guest is not None and host.guest.attempt == work.attempt
        if message.answer == "DONE" and host.guest and own:
            if work.stage in (SPAWNED, HELD):
                host.guest = host.guest._replace(running=True, acknowledged=True)
            if work.stage == FAILED:
                host.guest = None
    found.add(f"host {message.host} hears {message.answer} to finish", kind, state, bad)


def _obey(found: Moves, state: State, message: Message, work: Work) -> str | None:
    """Drop the work; on SUPERSEDED its guest goes, and no other."""
    host, wording = state.hosts[message.host], found.wording
    host.drop(work.token)
    if not message.answer.startswith("SUPERSEDED") or not host.guest:
        return None
    if wording.own_guest_only and host.guest.attempt != work.attempt:
        return None
    if message.answer.endswith("(ended)") and not wording.ended_destroys:
        return None
    asked = message.kind.removesuffix("_answer")
    return state.destroy(message.host, f"{asked} of attempt {work.attempt} answered SUPERSEDED")


def _destroy(found: Moves, state: State, message: Message, kind: str) -> None:
    """At the compute: a spawn in progress is marked and waited for; then the guest goes."""
    host, waits, bad = state.hosts[message.host], False, None
    for work in host.hand:
        if work.attempt > message.up_to:
            continue
        if work.stage not in IN_SPAWN:
            host.drop(work.token)
        elif found.wording.delete_cancels:
            host.put(work.token, up_to=message.up_to)
            waits = True
    if host.guest and host.guest.attempt <= message.up_to and not waits:
        if state.delete == "open" and state.may("destroy_fails"):
            _destroy_fails(found, State(state.key()), message)
        bad = state.destroy(message.host, "cleanup")
    if not waits:
        state.send(Message("gone", message.host, epoch=host.epoch, up_to=message.up_to))
    found.add(f"destroy up to {message.up_to} at host {message.host}", kind, state, bad)


def _destroy_fails(found: Moves, state: State, message: Message) -> None:
    state.spend("destroy_fails")
    state.destroy_failures += 1
    if state.destroy_failures >= 3:
        state.delete, state.server = "failed", "ERROR"
    found.add(f"destroy fails at host {message.host}", "fault", state)


def _gone(found: Moves, state: State, message: Message, kind: str) -> None:
    """At the conductor."""
    host = state.hosts[message.host]
    old = found.wording.gone_checks_epoch and message.epoch < host.known_epoch
    if not old:
        if host.cleanup and host.cleanup <= message.up_to:
            host.cleanup = 0
        for_delete = state.delete == "open" and state.server_host == message.host
        if for_delete and message.up_to == ALL:
            state.delete_done()
    found.add(f"gone up to {message.up_to} from host {message.host}", kind, state)


_DELIVER: dict[str, Deliver] = {
    "build": _build,
    "begin": _begin,
    "refusal": _refusal,
    "finish": _finish,
    "begin_answer": _begin_answer,
    "finish_answer": _finish_answer,
    "destroy": _destroy,
    "gone": _gone,
}
