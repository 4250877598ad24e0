# SPDX-License-Identifier: Apache-2.0
"""The moves of the control plane in the model: flows of conductors, recovery, the user's delete."""

from tests.model.state import ALL, HOSTS, MOST_RECASTS, NOWHERE, Flow, Message, Moves, State


def moves(found: Moves) -> None:
    """Add every move that a conductor or the API can make."""
    for index, flow in enumerate(found.here.flows):
        if flow is None:
            _take(found, index)
        elif flow.step == "taken":
            _select(found, index, flow)
        elif flow.step == "selected":
            _start(found, index, flow)
        else:
            _cast(found, index, flow)
    _crash(found)
    _recover_action(found)
    for host in HOSTS:
        _recover_cleanup(found, host)
        _watch(found, host)
    _delete(found)
    _drive_delete(found)


def _set_flow(state: State, index: int, flow: Flow | None) -> None:
    flows = list(state.flows)
    flows[index] = flow
    state.flows = tuple(flows)


def _take(found: Moves, index: int) -> None:
    """Take the action. That another conductor still holds it is a lease that ran out early."""
    here = found.here
    if not here.open or here.started:
        return
    held = any(flow for other, flow in enumerate(here.flows) if other != index)
    state = found.fault("slow") if held else found.fresh()
    if state is None:
        return
    if state.drive(found.wording):
        _set_flow(state, index, Flow("taken", state.attempt))
    found.add(f"conductor {index} takes", "fault" if held else "progress", state)


def _select(found: Moves, index: int, flow: Flow) -> None:
    """Select any host that is up; none ends the build."""
    here = found.here
    eligible = [host for host in HOSTS if not here.hosts[host].silent]
    if len(eligible) == len(HOSTS) and not here.bus and here.attempt == 0 and _alike(here):
        eligible = eligible[:1]  # the other one leads to a mirror image
    for host in eligible:
        state = found.fresh()
        _set_flow(state, index, Flow("selected", flow.attempt, host))
        found.add(f"conductor {index} selects host {host}", "progress", state)
    if not eligible:
        state = found.fresh()
        _set_flow(state, index, None)
        if state.open and state.attempt == flow.attempt and not state.started:
            state.fail(found.wording)
        found.add("NoValidHost", "progress", state)


def _alike(state: State) -> bool:
    one, two = state.hosts
    return all(
        getattr(one, name) == getattr(two, name)
        for name in ("process", "cut_off", "fenced", "epoch", "silent")
    )


def _start(found: Moves, index: int, flow: Flow) -> None:
    """Write attempt and target, if the action is still where it was taken (rule 12)."""
    state = found.fresh()
    unchanged = not state.started and state.attempt == flow.attempt
    if state.open and (unchanged or not found.wording.start_checks_attempt):
        if state.begun and found.wording.leaving_cleans:
            state.hosts[state.target].cleanup = state.attempt
        state.attempt += 1
        state.target, state.started = flow.host, True
        state.begun, state.token, state.recasts = False, 0, 0
        _set_flow(state, index, Flow("started", state.attempt, flow.host))
    else:
        _set_flow(state, index, None)
    found.add(f"conductor {index} starts an attempt on host {flow.host}", "progress", state)


def _cast(found: Moves, index: int, flow: Flow) -> None:
    state = found.fresh()
    state.send(Message("build", flow.host, attempt=flow.attempt))
    _set_flow(state, index, None)
    label = f"conductor {index} casts build of attempt {flow.attempt} to host {flow.host}"
    found.add(label, "progress", state)


def _crash(found: Moves) -> None:
    """A new conductor starts its watch over hosts anew (rule 8)."""
    state = found.fault("conductor_crash")
    if state:
        state.flows = (None,) * len(state.flows)
        for host in state.hosts:
            host.silent = False
        found.add("conductors are killed and start again", "fault", state)


def _recover_action(found: Moves) -> None:
    """What recovery does with an attempt that is past due (rules 2, 4, 5, 8)."""
    here = found.here
    if not here.open or not here.started:
        return
    if here.hosts[here.target].silent:
        state = found.fresh()
        if state.drive(found.wording):
            state.leave(found.wording)
        found.add(f"recovery: host {here.target} is silent, attempt is left", "progress", state)
    else:
        _recast(found)


def _recast(found: Moves) -> None:
    here, wording = found.here, found.wording
    host = here.hosts[here.target]
    early = _verdict_is_early(found)
    if not early and not host.reachable and wording.waiting_is_free:
        return  # nothing to do but wait for silence
    state = found.fault("slow") if early else found.fresh()
    if state is None:
        return
    done = "too many drives"
    if state.drive(wording):
        stays = state.begun and wording.begun_stays
        if wording.recasts and (state.recasts < MOST_RECASTS or stays):
            state.recasts += 0 if stays else 1
            state.send(Message("build", here.target, attempt=state.attempt))
            done = "recast"
        else:
            state.leave(wording)
            done = "next attempt"
    label = f"recovery: {done} (attempt {here.attempt}, host {here.target})"
    found.add(label, "fault" if early else "progress", state)


def _verdict_is_early(found: Moves) -> bool:
    """Tell whether "past due" would be a mistake now: something of the attempt is under way, or
    the host's reports could not have told (rule 2)."""
    here, target = found.here, found.here.target
    host = here.hosts[target]
    in_hand = host.up and any(work.attempt == here.attempt for work in host.hand)
    registered = host.known_epoch == host.epoch or not found.wording.verdict_on_this_start
    return (
        any(flow and flow.step == "started" for flow in here.flows)
        or here.under_way("build", target, attempt=here.attempt)
        or in_hand
        or here.under_way("begin", target)
        or here.under_way("refusal", target)
        or (here.begun and not (host.reachable and registered))
    )


def _recover_cleanup(found: Moves, index: int) -> None:
    """Cast destroy to a host in cleanup_hosts that is up (rule 6)."""
    host = found.here.hosts[index]
    if not host.cleanup or not found.wording.cleanup_driven or not host.reachable:
        return
    if _destroy_is_under_way(found.here, index):
        return
    state = found.fresh()
    up_to = host.cleanup if found.wording.cleanup_bounded else ALL
    state.send(Message("destroy", index, up_to=up_to))
    found.add(f"recovery: cleanup is cast to host {index}", "progress", state)


def _destroy_is_under_way(state: State, index: int, **values: int) -> bool:
    host = state.hosts[index]
    return (
        state.under_way("destroy", index, **values)
        or state.under_way("gone", index)
        or any(work.up_to for work in host.hand)
    )


def _watch(found: Moves, index: int) -> None:
    """Conclude that a host is silent, or see that it reports again (rule 8)."""
    host, wording = found.here.hosts[index], found.wording
    fenced_by_now = (
        not host.up or host.fenced or not wording.fencing or not wording.silence_after_fence
    )
    if not host.reachable and not host.silent and fenced_by_now:
        state = found.fresh()
        state.hosts[index].silent = True
        found.add(f"conductor has measured the silence of host {index}", "progress", state)
    if host.reachable and (host.silent or host.fenced):
        state = found.fresh()
        state.hosts[index].silent = state.hosts[index].fenced = False
        found.add(f"host {index} reports again", "progress", state)


def _delete(found: Moves) -> None:
    """The user's DELETE ends the open action in the same transaction."""
    if found.here.delete or found.here.server == "DELETED":
        return
    state = found.fault("delete")
    if state is None:
        return
    state.delete = "open"
    has_host = state.server == "ACTIVE" or state.begun
    was = "build" if state.open else state.server
    state.open = False
    if not has_host or state.server_host == NOWHERE:
        state.delete_done()
    found.add(f"API: delete ({was})", "fault", state)


def _drive_delete(found: Moves) -> None:
    here, wording = found.here, found.wording
    if here.delete != "open":
        return
    index = here.server_host
    host = here.hosts[index]
    if host.silent:
        state = found.fresh()
        state.hosts[index].cleanup = ALL
        state.delete_done()
        found.add("delete: the host is down, all is given back", "progress", state)
        return
    if _destroy_is_under_way(here, index, up_to=ALL):
        return
    if not host.reachable and wording.waiting_is_free:
        return
    state = found.fresh()
    if not wording.answers_count:
        state.destroy_failures += 1
    if state.destroy_failures >= (3 if wording.answers_count else 4):
        state.delete, state.server = "failed", "ERROR"
    else:
        state.send(Message("destroy", index, up_to=ALL))
    found.add(f"delete: cast to host {index}", "progress", state)
