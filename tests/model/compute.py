# SPDX-License-Identifier: Apache-2.0
"""The moves of the compute hosts in the model: work in hand, fence, crash, registration."""

from typing import Any

from tests.model.state import (
    ANSWERS,
    BEGIN,
    FAILED,
    GO,
    HELD,
    HOSTS,
    IN_SPAWN,
    MARKED,
    SPAWNED,
    SPAWNING,
    Guest,
    Host,
    Message,
    Moves,
    State,
    Work,
)


def moves(found: Moves) -> None:
    """Add every move that a compute host can make."""
    for index in HOSTS:
        host = found.here.hosts[index]
        if host.up:
            for work in host.hand:
                _work(found, index, work)
            _fence(found, index)
            _crash(found, index)
        if host.process == "down":
            _restart(found, index)
        if host.process == "starting" and not host.cut_off:
            _register(found, index)
        _partition(found, index)


def _work(found: Moves, index: int, work: Work) -> None:
    if work.stage in IN_SPAWN:
        _spawn_ends(found, index, work)
    elif work.stage == GO:
        _spawn_begins(found, index, work)
    else:
        _ask(found, index, work)


def _ask(found: Moves, index: int, work: Work) -> None:
    """Send begin or finish, and send it again until it is answered (rule 1)."""
    host = found.here.hosts[index]
    kind = "begin" if work.stage == BEGIN else "finish"
    if (
        host.cut_off
        or host.fenced
        or found.here.under_way(f"{kind}_answer", index, token=work.token)
    ):
        return
    values: dict[str, Any] = {
        "epoch": host.epoch,
        "attempt": work.attempt,
        "token": work.token,
    }
    if found.here.under_way(kind, index, **values):
        return
    state = found.fresh()
    state.send(Message(kind, index, good=work.stage != FAILED, **values))
    what = "reports a failure of" if work.stage == FAILED else f"asks {kind} of"
    found.add(f"host {index} {what} attempt {work.attempt}", "progress", state)


def _fences(found: Moves, host: Host) -> bool:
    return host.fenced and found.wording.fencing


def _spawn_begins(found: Moves, index: int, work: Work) -> None:
    """After GO everything of the instance goes and the attempt starts from its beginning."""
    host = found.here.hosts[index]
    busy = any(other.stage in IN_SPAWN for other in host.hand)
    if busy or _fences(found, host):
        return
    state = found.fresh()
    bad = state.destroy(index, "starting over") if host.guest else None
    state.hosts[index].put(work.token, stage=SPAWNING)
    found.add(f"host {index} starts to spawn attempt {work.attempt}", "progress", state, bad)
    if state.may("spawn_fails"):
        failed = State(state.key())
        failed.spend("spawn_fails")
        failed.hosts[index].put(work.token, stage=FAILED)
        if not found.wording.failure_after_removal:
            failed.hosts[index].guest = Guest(work.attempt, True, False)
        found.add(f"host {index} fails to spawn attempt {work.attempt}", "fault", failed, bad)


def _spawn_ends(found: Moves, index: int, work: Work) -> None:
    """Resume the guest, unless a fence or a cancel fell since GO (rule 9)."""
    before = found.here.hosts[index]
    state = found.fresh()
    host = state.hosts[index]
    halted = bool(work.up_to) or work.stage == MARKED or _fences(found, before)
    if halted and (found.wording.late_resume or host.guest):
        host.guest = None
        if work.up_to:
            host.drop(work.token)
            state.send(Message("gone", index, epoch=host.epoch, up_to=work.up_to))
        else:
            host.ask_again(work.token, found.wording)
        label = f"host {index}: spawn of attempt {work.attempt} was halted, guest removed"
    else:
        host.guest = Guest(work.attempt, True, False)
        if not halted:
            host.put(work.token, stage=SPAWNED)
        label = f"host {index} has spawned attempt {work.attempt}"
    found.add(label, "progress", state)


def _forget_answers(state: State, index: int) -> None:
    state.bus = tuple(m for m in state.bus if not (m.kind in ANSWERS and m.host == index))


def _fence(found: Moves, index: int) -> None:
    """A host that is cut off fences itself before anybody may call it silent (rule 9)."""
    before, wording = found.here.hosts[index], found.wording
    if not before.cut_off or before.fenced or not wording.fencing:
        return
    state = found.fresh()
    host = state.hosts[index]
    host.fenced = True
    if wording.stale_answers_dropped:
        _forget_answers(state, index)
    bad = None
    for work in before.hand:
        bad = _fence_work(state, index, work, found) or bad
    guest = host.guest
    if guest and not guest.acknowledged and wording.fence_reads_domains:
        host.guest = guest._replace(running=False)
    found.add(f"host {index} fences itself", "progress", state, bad)


def _fence_work(state: State, index: int, work: Work, found: Moves) -> str | None:
    host, wording = state.hosts[index], found.wording
    if work.stage in (BEGIN, GO):
        host.ask_again(work.token, wording)
    if work.stage == SPAWNING and wording.late_resume:
        host.put(work.token, stage=MARKED)
    if work.stage != SPAWNED or not host.guest or host.guest.attempt != work.attempt:
        return None
    if wording.fence == "pause":
        host.guest = Guest(work.attempt, False, False)
        host.put(work.token, stage=HELD)
    if wording.fence == "destroy":
        bad = state.destroy(index, "fence, finish unanswered")
        host.ask_again(work.token, wording)
        return bad
    return None


def _crash(found: Moves, index: int) -> None:
    """The process is killed; what the hypervisor was told to start may come up all the same."""
    before = found.here.hosts[index]
    state = found.fault("crash")
    if state is None:
        return
    host = state.hosts[index]
    host.hand, host.process, host.fenced = (), "down", False
    _forget_answers(state, index)
    found.add(f"compute {index} is killed", "fault", state)
    spawning = next((work for work in before.hand if work.stage in IN_SPAWN), None)
    if spawning:
        late = State(state.key())
        late.hosts[index].guest = Guest(spawning.attempt, spawning.stage == SPAWNING, False)
        found.add(f"compute {index} is killed, its guest comes up", "fault", late)


def _restart(found: Moves, index: int) -> None:
    state = found.fresh()
    host = state.hosts[index]
    host.process, host.sequence = "starting", 0
    host.epoch += 1
    found.add(f"compute {index} starts again", "repair", state)


def _register(found: Moves, index: int) -> None:
    """Before any work a compute learns what is ACTIVE here; the rest goes (rule 3)."""
    wording = found.wording
    state = found.fresh()
    host = state.hosts[index]
    host.process, host.known_epoch = "up", host.epoch
    if wording.move_checks_counter:
        host.silent = False
    guest, bad = host.guest, None
    if guest and state.is_guest_of_server(index):
        host.guest = Guest(guest.attempt, wording.registration_resumes or guest.running, True)
    elif guest and wording.registration != "none":
        own = state.open and state.attempt == guest.attempt and state.target == index
        if not (own and wording.registration == "ask"):
            bad = state.destroy(index, "registration")
    found.add(f"compute {index} registers epoch {host.epoch}", "progress", state, bad)


def _partition(found: Moves, index: int) -> None:
    host = found.here.hosts[index]
    cut = found.fault("partition") if host.reachable else None
    if cut:
        cut.hosts[index].cut_off = True
        found.add(f"host {index} is cut off", "fault", cut)
    if host.cut_off:
        state = found.fresh()
        state.hosts[index].cut_off = False
        if not found.wording.report_lifts_fence:
            state.hosts[index].fenced = False
        found.add(f"host {index} is connected again", "repair", state)
