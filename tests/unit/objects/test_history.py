# SPDX-License-Identifier: Apache-2.0
"""An action with its steps as attempts and as a timeline."""

import pytest

from novalite.objects import base, history, loss
from novalite.objects.action import Action, ActionEvent
from novalite.objects.decision import Decision, FilterCount
from novalite.objects.history import Attempt, History, Outcome
from novalite.objects.states import ActionState, Step

CHOSEN = Decision(hosts=2, survivors=2, host="h1", node="n1")
NONE = Decision(hosts=2, filters=[FilterCount("RamFilter", 2, 0, {"not_enough_memory": 2})])


def event(name, attempt=1, result="Success", at=1.0, host="h1", details=None, **more):
    finish = at + 0.5 if result else None
    return ActionEvent(name, host, at, finish, result, (details or {}) | more, attempt=attempt)


def scheduled(decision=CHOSEN, attempt=1, host="h1", **values):
    details = {"decision": base.encode(decision)} if decision else {}
    result = "Success" if host else "Error"
    if host:
        details |= {"host": host, "node": host}
    name = values.pop("name", history.SCHEDULE)
    return event(name, attempt, values.pop("result", result), host="c", details=details, **values)


def story(*events, state=ActionState.RUNNING, step=Step.BEGUN, attempt=1, **values):
    action = Action(1, "req-1", "u", "create", state=state, step=step, attempt=attempt, **values)
    return History(action, list(events))


def outcomes(made):
    return [(each.number, each.outcome.value, each.host) for each in made.attempts()]


def test_a_boot_that_goes_well():
    events = [scheduled(), event(history.CLAIM), event(history.BUILD, result=None)]
    assert outcomes(story(*events)) == [(1, "under_way", "h1")]
    made = story(*events, state=ActionState.DONE)
    [attempt] = made.attempts()
    assert (attempt.outcome, attempt.decision, attempt.alternate) == ("succeeded", CHOSEN, False)
    assert attempt.decision == CHOSEN
    assert attempt.claim is events[1]
    assert outcomes(story(*events, state=ActionState.SUPERSEDED)) == [(1, "superseded", "h1")]


def test_failures_refusals_and_the_last_word():
    events = [
        scheduled(),
        event(history.CLAIM, result="Error", error="Insufficient compute resources: x."),
        scheduled(None, 2, "h2"),
        event(history.CLAIM, 2, host="h2"),
        event("compute_spawn", 2, "Error", host="h2", error="Hypervisor error: y"),
        event(history.BUILD, 2, "Error", host="h2", error="Hypervisor error: y"),
        scheduled(NONE, 3, None),
    ]
    made = story(*events, state=ActionState.ERROR, attempt=2)
    assert outcomes(made) == [(1, "refused", "h1"), (2, "failed", "h2"), (3, "no_host", None)]
    first, second, third = made.attempts()
    assert (first.cause.code, second.cause.code) == ("claim_refused", "hypervisor_failed")
    assert second.alternate and not first.alternate and not third.alternate
    assert third.decision == NONE
    assert [each.number for each in history.failed_on(made.attempts())] == [1, 2]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (loss.SILENT, "left"),
        (loss.NOT_BEGUN, "left"),
        (loss.RECAST, "under_way"),
        (loss.BEGUN_AGAIN, "under_way"),
    ],
)
def test_losses_belong_to_their_attempt(code, outcome):
    lost = event(loss.EVENT, code=code, text="h1 ...")
    made = story(scheduled(), lost)
    [attempt] = made.attempts()
    assert (attempt.outcome, attempt.losses) == (outcome, [lost])


def test_a_build_that_waits_and_then_goes_on():
    waits = scheduled(NONE, 1, None, name=loss.WAIT, result=None)
    made = story(waits, state=ActionState.PENDING, step=Step.SCHEDULING, attempt=0)
    assert outcomes(made) == [(1, "waiting", None)]
    assert made.attempts()[0].decision == NONE
    for order in ((waits, scheduled()), (scheduled(), waits)):
        assert outcomes(story(*order)) == [(1, "under_way", "h1")]


def test_an_attempt_without_an_end_was_left():
    made = story(scheduled(), scheduled(attempt=2), attempt=2)
    assert outcomes(made) == [(1, "left", "h1"), (2, "under_way", "h1")]
    pending = story(scheduled(), state=ActionState.PENDING, step=Step.SCHEDULING)
    assert outcomes(pending) == [(1, "left", "h1")]


def test_a_claim_for_older_limits_is_stale_only_if_refused():
    def attempt(result, theirs, own):
        claim = event(history.CLAIM, result=result, limits_generation=theirs, generation=own)
        return Attempt(1, Outcome.REFUSED, claim=claim)

    assert attempt("Error", [1, 3], [1, 4]).stale
    assert not attempt("Error", [1, 4], [1, 4]).stale
    assert not attempt("Success", [1, 3], [1, 4]).stale
    assert not Attempt(1).stale


def test_the_timeline_is_in_order_and_says_it_twice():
    made = story(
        event(history.CLAIM, result="Error", at=3.0, error="Insufficient compute resources: h1"),
        scheduled(at=2.0),
        event(loss.EVENT, at=4.0, code=loss.SILENT, text="host h1 fell silent"),
        scheduled(NONE, 2, None, at=5.0),
        scheduled(None, 3, "h2", at=5.5),
        event("compute_spawn", 3, None, at=6.0),
        event("compute_own_step", 3, at=6.5),
        start=1.0,
        finish=7.0,
        state=ActionState.ERROR,
    )
    rows = made.moments()
    assert [row.at for row in rows] == [1.0, 2.0, 3.0, 4.0, 5.0, 5.5, 6.0, 6.5, 7.0]
    assert [row.process for row in rows[:4]] == ["api", "conductor", "compute", "conductor"]
    assert [row.took for row in rows[:4]] == [None, 0.5, 0.5, None]
    admin = [row.what.admin for row in rows]
    assert admin[1] == "the scheduler chose h1 from 2 hosts; attempt 1 goes there"
    assert admin[2] == (
        "the claim is refused, the host had no room for it any more when it was asked"
    )
    assert admin[3] == "host h1 fell silent"
    assert admin[4] == "no host: all 2 hosts have too little memory left"
    assert admin[5] == "attempt 3 goes to h2, the next of the last choice"
    assert admin[6] == "the guest is made and started (not ended)"
    assert admin[8] == "it ended in ERROR"
    assert not any("h1" in row.what.tenant or "h2" in row.what.tenant for row in rows)


def test_a_choice_without_a_host_names_none():
    made = story(scheduled(None, 1, None, result="Success"))
    [_accepted, choice] = made.moments()
    assert choice.what == history.same("no decision was made")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 ms"),
        (0.0641, "64 ms"),
        (3.21, "3.2 s"),
        (303, "5 min 3 s"),
        (7500, "2 h 5 min"),
        (400000, "4 days"),
    ],
)
def test_lengths_of_time(seconds, text):
    assert history.duration(seconds) == text


def test_the_arithmetic_of_a_claim():
    details = {
        "memory": {"requested": 512, "total": 7823, "used": 512, "limit": 11734.5},
        "disk": {"requested": 1, "total": 49, "used": 0, "limit": None},
        "generation": [1, 2],
    }
    assert history.claim_lines(details) == [
        "memory: 512 MB requested, 11222.5 MB free: limit 11734.5 - used 512 (total 7823)",
        "disk: 1 GB requested, no limit; 0 of 49 GB are promised already",
    ]
