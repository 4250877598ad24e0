# SPDX-License-Identifier: Apache-2.0
"""The sentence for each state of a server, for administrators and for its owner."""

import pytest

from novalite.objects import base, explanation, failure, history, loss
from novalite.objects.action import Action, ActionEvent
from novalite.objects.decision import Decision, FilterCount, Miss
from novalite.objects.facts import Facts
from novalite.objects.history import History
from novalite.objects.instance import InstanceFault
from novalite.objects.reason import Reason
from novalite.objects.service import Service
from novalite.objects.states import ActionState, Step

P, R, D, E, S = ActionState.PENDING, ActionState.RUNNING, "done", "error", "superseded"
USED_UP = "Exceeded maximum number of retries. Exhausted all hosts."
ABORTED = "Build of instance u aborted: Could not clean up failed build, not rescheduling"


def action(name="create", state=R, step=Step.BEGUN, events=(), members=1, **values):
    values = {"start": 90.0, "attempt": 1, "target_host": "h1", "target_node": "h1"} | values
    return History(
        Action(1, "req", "u", name, state=ActionState(state), step=step, **values),
        list(events),
        members,
    )


def event(name, attempt=1, result="Success", host="h1", at=91.0, **details):
    return ActionEvent(name, host, at, at + 1, result, details, attempt=attempt)


def service(host="h1", age=1.0, binary="nova-compute", **values):
    return Service(1, "u", host, binary, age=age, **values)


def facts(*histories, vm_state="building", **values):
    values = {"now": 100.0, "down_time": 60.0, "histories": list(histories)} | values
    return Facts(name="web", vm_state=vm_state, **values)


def told(made, admin=True):
    found = explanation.explain(made, admin=admin)
    return found.sentence, found.more, found.advice


NONE = Decision(
    hosts=2,
    filters=[FilterCount("ComputeFilter", 2, 0, {"host_down": 2})],
    misses=[Miss("h1", "h1", [("ComputeFilter", Reason("host_down"))])],
)
NOWHERE = event(history.SCHEDULE, 1, "Error", "c", decision=base.encode(NONE))


def failed(number=1, host="h1", error="Hypervisor error: boom.", name=history.BUILD):
    return event(name, number, "Error", host, error=error)


class TestAtRest:
    def test_active(self):
        made = facts(
            action(state=D, finish=90.5, drives=1), vm_state="active", host="h1", node="n1"
        )
        text = "; its build took 500 ms, 1 attempt and 1 loss on the way."
        assert told(made) == (f"web is ACTIVE on h1 (node n1){text}", [], [])
        assert told(made, admin=False) == (f"web is ACTIVE{text}", [], [])

    def test_on_a_host_that_was_named(self):
        for violated, words in (
            ([], "the filters, not asked, had agreed."),
            (
                [("ComputeFilter", Reason("host_disabled")), ("IoOpsFilter", Reason("busy"))],
                "filters that were skipped refuse it: ComputeFilter: the host is disabled; "
                "IoOpsFilter: busy.",
            ),
        ):
            made = Decision(hosts=2, survivors=1, host="h1", forced=True, violated=violated)
            chosen = event(history.SCHEDULE, host="c", decision=base.encode(made))
            done = facts(action(state=D, finish=91.0, events=[chosen]), vm_state="active")
            assert told(done)[1] == [f"h1 was named in the request; {words}"]
            assert told(done, admin=False)[1] == []

    def test_on_a_host_that_is_silent(self):
        made = facts(vm_state="active", host="h1", services=[service(age=80.0)])
        sentence, [more], advice = told(made)
        assert sentence == "web is ACTIVE on h1."
        assert more.startswith("h1 last reported 1 min 20 s ago: it counts as down (service_down_t")
        assert advice == ["start novalite-compute on h1, or see in its log why it does not report"]
        assert told(made, admin=False)[1:] == (
            ["Its host does not report; nothing can be done with it meanwhile."],
            ["ask the operators of the cloud"],
        )

    def test_what_may_be_left_on_a_host(self):
        made = facts(vm_state="active", cleanups=["h2", "h1"])
        [more] = told(made)[1]
        assert more.startswith("h1 and h2 may still hold what an earlier attempt left")
        assert told(made, admin=False)[1] == []

    @pytest.mark.parametrize(
        ("state", "words"),
        [
            (D, "."),
            (E, ", after its build had failed."),
            (S, ", while it was being built."),
        ],
    )
    def test_deleted(self, state, words):
        gone = action("delete", D, finish=95.0)
        made = facts(gone, action(state=state), vm_state="deleted", deleted=True)
        assert told(made)[0] == f"web was deleted 5.0 s ago{words}"


class TestUnderWay:
    def test_a_build_in_hand(self):
        made = facts(action(), task_state="spawning", services=[service()])
        sentence, more, advice = told(made)
        assert sentence == "web is being built, since 10.0 s: attempt 1, h1 builds it (spawning)."
        assert (
            more == ["h1 last reported 1.0 s ago: it counts as up (service_down_time = 60 s)."]
            and advice == []
        )
        assert "a host builds it (spawning)" in told(made, admin=False)[0]

    def test_a_build_that_has_not_begun_on_a_host_that_is_silent(self):
        made = facts(action(step=Step.STARTED, drives=2), services=[service(age=99.0)])
        sentence, more, advice = told(made)
        assert sentence.endswith("attempt 1, h1 was told to build it and has not begun yet.")
        assert "A conductor moves the build once it has itself watched the silence." in more
        assert more[-1] == "2 losses on the way so far; more than 8 would end it."
        assert advice == ["start novalite-compute on h1, or see in its log why it does not report"]
        assert "h1" not in str(told(made, admin=False))

    def test_a_host_without_a_service(self):
        assert "There is no service nova-compute on h1 any more." in told(facts(action()))[1]
        made = facts(action(), services=[service(age=None)])
        assert "h1 has never reported." in told(made)[1]
        made = facts(action(), services=[service(forced_down=True)])
        assert "and is forced down: it counts as down" in told(made)[1][0]

    def test_nobody_has_taken_it(self):
        made = facts(
            action(state=P, step=Step.SCHEDULING, attempt=0),
            services=[service(age=33.0, binary="nova-conductor")],
        )
        sentence, more, advice = told(made)
        assert sentence == "web waits to be taken by a conductor, since 10.0 s."
        assert more[0] == "The last report of a conductor was 33.0 s ago."
        assert advice == ["see whether the message bus and novalite-conductor run"]
        assert told(made, admin=False)[2] == []

    def test_a_conductor_has_it(self):
        made = facts(action(step=Step.SCHEDULING, attempt=0))
        assert told(made)[0].endswith("a conductor has it and asks the scheduler for a host.")

    def test_it_waits_for_hosts_or_for_a_scheduler(self):
        waits = {"state": P, "step": Step.SCHEDULING, "attempt": 0}
        event_ = event(loss.WAIT, 1, None, "c", decision=base.encode(NONE))
        sentence, more, advice = told(facts(action(events=[event_], **waits)))
        assert sentence == "web waits for a host, since 10.0 s: all 2 hosts are down."
        assert more == ["It is tried again every 2 s, because a host may be back soon."]
        assert advice[0].startswith("on h1: start novalite-compute")
        made = facts(action(events=[event(loss.WAIT, 1, None, "c")], **waits))
        assert told(made)[0] == "web waits for a scheduler, since 10.0 s: none answers."
        assert told(made, admin=False)[2] == ["ask the operators of the cloud"]

    def test_between_two_attempts(self):
        made = facts(action(state=P, step=Step.SCHEDULING, events=[failed()]))
        sentence, more, _advice = told(made)
        assert sentence.endswith("attempt 1 came to nothing, the next one waits for a conductor.")
        assert more == ["Before: on h1: Hypervisor error: boom."]
        assert told(made, admin=False)[1] == ["Before: 1 host could not start the guest."]

    def test_being_deleted(self):
        made = facts(
            action("delete", failures=["h1: busy"]),
            vm_state="active",
            services=[service(age=99.0)],
        )
        sentence, more, _advice = told(made)
        assert sentence == "web is being deleted, since 10.0 s."
        assert more[0] == "h1 was told to remove it."
        assert more[2:] == [
            "It failed 1 time: h1: busy",
            "When the host stays silent, everything is freed without it.",
        ]
        assert told(made, admin=False)[1] == ["Its host was told to remove it."]
        [more] = told(facts(action("delete", target_host=None)))[1]
        assert more.startswith("A conductor gives back what it holds")

    def test_any_other_action(self):
        made = facts(action("reboot"), vm_state="active")
        assert told(made)[0] == "web is ACTIVE; reboot is open for 10.0 s."


def error(*args, fault="", **values):
    made = facts(*args, vm_state="error", **values)
    made.fault = InstanceFault(500, fault) if fault else None
    return made


class TestError:
    def test_no_host(self):
        made = error(action(state=E, events=[NOWHERE], members=3, attempt=0))
        sentence, [more], advice = told(made)
        assert sentence == "web is in ERROR: no host can take it: all 2 hosts are down."
        assert more.startswith("3 servers were asked for in one request, all or none;")
        assert advice[0].startswith("on h1: start novalite-compute")
        assert told(made, admin=False)[2] == [
            "try again later; the operators of the cloud have to bring hosts back"
        ]

    def test_no_other_host_after_failures_and_silence(self):
        silent = event(loss.EVENT, 2, code=loss.SILENT, text="attempt 2: host h2 fell silent")
        lost = event(history.SCHEDULE, 2, host="c")
        lost.details = {"host": "h2", "node": "h2"}
        nowhere = event(history.SCHEDULE, 3, "Error", "c", decision=base.encode(NONE))
        made = error(action(state=E, events=[failed(), lost, silent, nowhere], attempt=2))
        sentence, more, advice = told(made)
        assert sentence == (
            "web is in ERROR: h2 fell silent in mid build, and no other host can take it: all 2 "
            "hosts are down."
        )
        assert more == ["Before: on h1: Hypervisor error: boom."]
        assert advice[0] == failure.HYPERVISOR.advice.format(host="h1")
        assert told(made, admin=False)[0].startswith("web is in ERROR: 1 host fell silent in mid")

    def test_a_scheduler_that_cannot_decide(self):
        event_ = event(history.SCHEDULE, 1, "Error", "c")
        made = error(action(state=E, events=[event_], attempt=0))
        assert told(made)[0] == "web is in ERROR: the scheduler could not decide."

    def test_attempts_are_used_up(self):
        events = [failed(1, "h1"), failed(2, "h2"), failed(3, "h3", "Hypervisor error: other")]
        made = error(action(state=E, events=events, attempt=3), fault=USED_UP)
        sentence, [more], advice = told(made)
        assert sentence == (
            "web is in ERROR: 3 hosts were tried, as many as are allowed ([scheduler] max_attempts "
            "= 3): each could not start the guest."
        )
        assert more == "On h1 and h2: Hypervisor error: boom; on h3: Hypervisor error: other."
        assert len(advice) == 2 and "max_attempts" in advice[1]
        events[2] = failed(3, "h3", "Insufficient compute resources: x", history.CLAIM)
        made = error(action(state=E, events=events, attempt=3), fault=USED_UP)
        sentence, [more], advice = told(made, admin=False)
        assert sentence == "web is in ERROR: 3 hosts were tried, as many as are allowed."
        assert more == (
            "2 hosts could not start the guest and 1 host had no room for it any more when it was "
            "asked."
        )

    def test_a_guest_that_could_not_be_removed(self):
        made = error(action(state=E, events=[failed()]), fault=ABORTED)
        sentence, more, _advice = told(made)
        assert (
            sentence
            == "web is in ERROR: h1 could not start the guest, and no other host was tried."
        )
        assert more[0].startswith("h1 could not remove the failed guest either;")
        assert more[1] == "The host said: Hypervisor error: boom."
        assert told(made, admin=False)[1][0].startswith("The host could not remove")

    def test_a_delete_that_failed(self):
        made = error(action("delete", E, message="busy.", failures=["h1: busy."]))
        assert told(made) == (
            "web is in ERROR: h1 could not remove it: busy.",
            ["h1: busy."],
            ["delete it again when that is mended"],
        )
        assert told(made, admin=False)[0] == "web is in ERROR: its host could not remove it."

    def test_an_error_without_a_story(self):
        assert told(error())[0] == "web is in ERROR: no action of it has failed."
        assert told(error(fault="set by hand."))[0] == "web is in ERROR: set by hand."
        assert told(error(action(state=E), fault="odd"))[0] == "web is in ERROR: odd."
        assert told(error(action(state=E), fault="odd"), admin=False)[0] == (
            "web is in ERROR: its build failed."
        )


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (action(state=D, finish=90.1, attempt=2), "done in 100 ms at attempt 2"),
        (action("delete", D, finish=91.0), "done in 1.0 s"),
        (action(state=S, finish=92.0, message="the server was deleted"),
         "ended after 2.0 s: the server was deleted"),
        (action(state=E, finish=93.0), "failed after 3.0 s"),
        (action(), "open for 10.0 s"),
    ],
)  # fmt: skip
def test_an_action_in_a_few_words(made, text):
    assert explanation.action_summary(made, facts()) == text
