# SPDX-License-Identifier: Apache-2.0
"""The conductor's half of one attempt: begin, refusal, finish, progress, and what is in hand."""

import pytest
import sqlalchemy as sa

from novalite.db import attempts, builds, deletes, failures, schema
from novalite.objects import loss
from novalite.objects.instance import NetworkInfo
from novalite.objects.states import PowerState, Step, Verdict
from tests.unit.db.books import RESOURCES, Overtaken, context, step

GO, RESUME, DROP = Verdict.GO, Verdict.RESUME, Verdict.DROP
DONE, SUPERSEDED = Verdict.DONE, Verdict.SUPERSEDED


def leave(books, action, loss="lost"):
    """The conductor gives the present attempt up."""
    seen = books.action(action.id)
    assert books.write(builds.leave, seen, guest_may_be_left=seen.step is Step.BEGUN, loss=loss)


class TestBegin:
    def test_the_first_one_is_go_and_writes_host_claim_and_token(self, books):
        server, action = books.started(host="h1")
        outcome = books.begin(action, event=step("build"))
        assert (outcome.verdict, outcome.reason) == (GO, "")
        stored = books.server(server.uuid)
        assert (stored.host, stored.node, stored.task_state) == ("h1", "h1", None)
        assert books.held(server.uuid) == {"h1": RESOURCES}
        begun = books.action(action.id)
        assert (begun.step, begun.token, begun.recasts) == ("begun", "1:t1", 0)
        assert [event.event for event in books.events(action.id)] == ["build"]

    def test_the_zone_of_the_selection_becomes_the_servers(self, books):
        server = books.create()
        (taken,) = books.take()
        action = books.start(taken, "h1", {"zone": "az1"}).action
        books.begin(action)
        assert books.server(server.uuid).availability_zone == "az1"

    def test_the_same_token_again_is_go_and_changes_nothing(self, books):
        server, action = books.begun()
        before = books.action(action.id)
        assert books.begin(action).verdict is GO
        assert books.action(action.id) == before
        assert books.held(server.uuid) == {"h1": RESOURCES}

    def test_a_new_token_is_resume_and_replaces_the_former(self, books):
        server, action = books.begun()
        assert books.begin(action, token="t2", epoch=2).verdict is RESUME
        [kept] = [each for each in books.events(action.id) if each.event == loss.EVENT]
        assert (kept.host, kept.attempt, kept.details["code"]) == ("h1", 1, loss.BEGUN_AGAIN)
        assert books.action(action.id).token == "2:t2"
        assert books.held(server.uuid) == {"h1": RESOURCES}
        assert books.finish(action, token="t1").verdict is SUPERSEDED
        assert books.server(server.uuid).vm_state == "building"
        assert books.finish(action, token="t2", epoch=2).verdict is DONE

    def test_the_same_token_of_another_start_is_another_token(self, books):
        _, action = books.begun()
        assert books.begin(action, token="t1", epoch=2).verdict is RESUME

    def test_drop_after_the_attempt_has_finished_here(self, books):
        server, action = books.active()
        for token in ("t1", "t2"):
            outcome = books.begin(action, token=token)
            assert outcome.verdict is DROP
        assert books.server(server.uuid).vm_state == "active"
        assert books.held(server.uuid) == {"h1": RESOURCES}

    @pytest.mark.parametrize("state", ["stopped", "paused", "error"])
    def test_the_guest_of_a_server_at_rest_is_never_superseded(self, books, state):
        server, action = books.active()
        books.execute(sa.update(schema.instances).values(vm_state=state))
        assert books.begin(action).verdict is DROP
        assert books.begin(action, token="t2").verdict is DROP
        assert books.finish(action, token="t2").verdict is DONE

    def test_superseded_while_the_server_is_being_deleted(self, books):
        server, action = books.begun()
        books.delete(server.uuid)
        outcome = books.begin(action)
        assert (outcome.verdict, outcome.reason) == (SUPERSEDED, "the server is deleted")

    def test_superseded_after_the_server_was_deleted(self, books):
        server, action = books.started()
        books.delete(server.uuid)
        outcome = books.begin(action)
        assert (outcome.verdict, outcome.reason) == (SUPERSEDED, "the server is deleted")
        assert books.held(server.uuid) == {}

    def test_superseded_while_an_active_server_is_being_deleted(self, books):
        server, action = books.active()
        books.delete(server.uuid)
        assert books.begin(action).verdict is SUPERSEDED

    def test_superseded_when_the_action_has_ended(self, books):
        _, action = books.begun()
        books.finish(action, fault="no", reschedule=False)
        outcome = books.begin(action)
        assert (outcome.verdict, outcome.reason) == (SUPERSEDED, "the action has ended")

    def test_superseded_when_the_attempt_was_left(self, books):
        server, action = books.begun()
        leave(books, action)
        outcome = books.begin(action)
        assert (outcome.verdict, outcome.reason) == (SUPERSEDED, "attempt 1 was left")
        books.restart(action, "h2")
        assert books.begin(action).reason == "attempt 1 was left"
        assert (books.server(server.uuid).host, books.held(server.uuid)) == (None, {})

    def test_superseded_when_another_host_has_the_attempt(self, books):
        _, action = books.started(host="h1")
        outcome = books.begin(action, host="h2")
        assert (outcome.verdict, outcome.reason) == (SUPERSEDED, "host h1 owns attempt 1")

    def test_superseded_for_an_action_that_is_unknown(self, books):
        _, action = books.started()
        action.id += 100
        assert books.begin(action).verdict is SUPERSEDED
        assert books.finish(action).verdict is SUPERSEDED
        assert books.refuse(action).verdict is DONE
        assert books.progress(action).verdict is SUPERSEDED

    def test_a_move_to_another_host_takes_the_claim_along(self, books):
        server, action = books.begun("h1")
        leave(books, action)
        books.restart(action, "h2")
        assert books.begin(action, 2, host="h2").verdict is GO
        assert books.held(server.uuid) == {"h2": RESOURCES}
        assert books.cleanups(server.uuid) == {"h1": 1}

    def test_a_delete_that_overtakes_it_wins(self, books):
        server, action = books.started()
        item = books.begin_item(action)

        def work(conn):
            overtaken = Overtaken(
                conn, lambda conn: deletes.open_delete(conn, context(), server.uuid, lease=10.0)
            )
            return attempts.begin(overtaken, "h1", 1, item, 25.0, 3)

        assert books.database.transaction(work).verdict is SUPERSEDED
        assert (books.held(server.uuid), books.events(action.id)) == ({}, [])


class TestRefuse:
    def test_counts_a_failure_and_a_loss_and_waits(self, books):
        _, action = books.started()
        outcome = books.refuse(action, event=step("claim", result="Error"))
        assert (outcome.verdict, outcome.drive) == (DONE, ["r1"])
        assert books.waits(action.id)
        stored = books.action(action.id)
        assert (stored.failures, stored.drives) == (["h1"], 1)
        reason = "Free memory 0.00 MB < requested 64 MB"
        assert stored.args["tried"] == [f"h1: {reason}"]
        assert stored.args["losses"] == [f"attempt 1: h1 refused the claim: {reason}"]
        assert [event.event for event in books.events(action.id)] == ["claim"]

    def test_of_a_stale_picture_is_a_loss_and_no_failure(self, books):
        _, action = books.started(host="h1")
        books.refuse(action, stale=True)
        stored = books.action(action.id)
        assert (stored.failures, stored.drives) == ([], 1)

    def test_of_a_stale_picture_asks_the_scheduler_again(self, books):
        books.create()
        (taken,) = books.take()
        action = books.start(taken, "h1", {"alternates": [1, 2]}).action
        books.refuse(action, stale=True)
        assert books.action(action.id).args["alternates"] == []

    def test_of_a_stale_picture_twice_by_one_host_is_a_failure(self, books):
        _, action = books.started(host="h1")
        books.refuse(action, stale=True)
        books.restart(action, "h1", args=books.action(action.id).args)
        books.refuse(action, 2, stale=True)
        stored = books.action(action.id)
        assert (stored.failures, stored.drives) == (["h1"], 2)

    def test_is_not_believed_once_another_token_has_begun(self, books):
        _, action = books.begun(token="t1")
        outcome = books.refuse(action, token="t2")
        assert outcome.reason == "another handling has begun this attempt"
        assert books.action(action.id).step is Step.BEGUN

    def test_is_not_believed_from_an_older_start(self, books):
        _, action = books.begun(token="t1", epoch=2)
        books.refuse(action, token="t0", epoch=1)
        assert books.action(action.id).step is Step.BEGUN

    def test_is_believed_from_the_token_that_has_begun(self, books):
        server, action = books.begun(token="t1")
        books.refuse(action, token="t1")
        assert books.waits(action.id)
        assert (books.server(server.uuid).host, books.held(server.uuid)) == (None, {})

    def test_is_believed_from_a_newer_start_and_its_host_is_cleaned(self, books):
        server, action = books.begun(token="t1", epoch=1)
        books.refuse(action, token="t2", epoch=2)
        assert books.waits(action.id)
        assert (books.server(server.uuid).host, books.held(server.uuid)) == (None, {})
        assert books.cleanups(server.uuid) == {"h1": 1}

    def test_a_guest_that_would_not_go_is_remembered(self, books):
        server, action = books.started()
        books.refuse(action, guest_left=True)
        assert books.cleanups(server.uuid) == {"h1": 1}

    @pytest.mark.parametrize("ending", ["left", "deleted", "done", "other host"])
    def test_late_it_changes_nothing(self, books, ending):
        server, action = books.begun()
        host = "h1"
        if ending == "left":
            leave(books, action)
        elif ending == "deleted":
            books.delete(server.uuid)
        elif ending == "done":
            books.finish(action)
        else:
            host = "h2"
        before = books.action(action.id)
        assert books.refuse(action, host=host).verdict is DONE
        assert books.action(action.id) == before

    def test_twice_it_counts_once(self, books):
        _, action = books.started()
        books.refuse(action)
        assert books.refuse(action).drive == []
        assert (books.action(action.id).failures, books.action(action.id).drives) == (["h1"], 1)


class TestFinish:
    def network(self):
        return NetworkInfo("port", "net", "private", "fa:16:3e:00:00:01")

    def test_makes_the_server_active(self, books):
        server, action = books.begun()
        outcome = books.finish(
            action,
            power_state=PowerState.RUNNING,
            launched_at=7.0,
            root_device_name="/dev/vda",
            network_info=[self.network()],
            events=[step("build", finish=12.0, result="Success")],
        )
        assert (outcome.verdict, outcome.drive) == (DONE, [])
        stored = books.server(server.uuid)
        assert (stored.vm_state, stored.task_state, stored.power_state) == ("active", None, 1)
        assert (stored.host, stored.action_id, stored.launched_at) == ("h1", None, 7.0)
        assert (stored.root_device_name, stored.network_info) == ("/dev/vda", [self.network()])
        assert books.action(action.id).state == "done"
        assert books.held(server.uuid) == {"h1": RESOURCES}
        assert [event.result for event in books.events(action.id)] == ["Success"]

    def test_twice_it_is_done_twice(self, books):
        server, action = books.begun()
        assert books.finish(action).verdict is DONE
        before = books.server(server.uuid)
        outcome = books.finish(action)
        assert (outcome.verdict, outcome.reason) == (DONE, "this token has finished already")
        assert books.server(server.uuid) == before

    def test_is_done_for_any_token_once_the_attempt_has_finished_here(self, books):
        _, action = books.active(token="t1")
        outcome = books.finish(action, token="t2")
        assert (outcome.verdict, outcome.reason) == (DONE, "this attempt has finished already")

    def test_is_done_for_the_token_that_finished_even_while_it_is_deleted(self, books):
        server, action = books.active()
        books.delete(server.uuid)
        outcome = books.finish(action)
        assert (outcome.verdict, outcome.reason) == (DONE, "finished, and then deleted")

    @pytest.mark.parametrize("ending", ["left", "next attempt", "deleted", "failed"])
    def test_is_superseded_for_what_owns_nothing(self, books, ending):
        server, action = books.begun()
        if ending == "deleted":
            books.delete(server.uuid)
        elif ending == "failed":
            books.finish(action, fault="no", reschedule=False)
        else:
            leave(books, action)
        if ending == "next attempt":
            books.restart(action, "h2")
        before = books.server(server.uuid)
        assert books.finish(action).verdict is SUPERSEDED
        assert books.server(server.uuid) == before

    def test_is_superseded_before_any_begin(self, books):
        server, action = books.started()
        assert books.finish(action).verdict is SUPERSEDED
        assert books.server(server.uuid).vm_state == "building"

    def test_is_superseded_for_another_host(self, books):
        _, action = books.begun(host="h1")
        outcome = books.finish(action, host="h2")
        assert (outcome.verdict, outcome.reason) == (SUPERSEDED, "host h1 owns attempt 1")


class TestFinishFailed:
    def test_waits_for_another_host(self, books):
        server, action = books.begun()
        outcome = books.finish(action, fault="disk full", events=[step("build", result="Error")])
        assert (outcome.verdict, outcome.drive) == (DONE, ["r1"])
        assert books.waits(action.id)
        stored = books.action(action.id)
        assert (stored.failures, stored.drives) == (["h1"], 0)
        assert stored.args["tried"] == ["h1: disk full"]
        assert (books.server(server.uuid).host, books.held(server.uuid)) == (None, {})
        assert books.cleanups(server.uuid) == {}

    def test_keeps_the_alternates(self, books):
        books.create()
        (taken,) = books.take()
        action = books.start(taken, "h1", {"alternates": ["h2"]}).action
        books.begin(action)
        books.finish(action, fault="no")
        assert books.action(action.id).args["alternates"] == ["h2"]

    def test_ends_after_max_attempts_with_every_reason(self, books):
        server, action = books.started(host="h1")
        for number, host in enumerate(("h1", "h2", "h3"), start=1):
            if number > 1:
                action = books.restart(action, host, args=books.action(action.id).args)
            books.begin(action, number, host=host)
            outcome = books.finish(action, number, host=host, fault=f"disk {number}")
        assert outcome.reason.startswith("Exceeded maximum number of retries. Exhausted all hosts")
        stored = books.server(server.uuid)
        assert (stored.vm_state, stored.host, stored.action_id) == ("error", None, None)
        assert books.held(server.uuid) == {}
        fault = books.fault(server.uuid)
        assert fault.message == (
            "Exceeded maximum number of retries. Exhausted all hosts available for retrying build "
            f"failures for instance {server.uuid}."
        )
        assert fault.details == "h1: disk 1\nh2: disk 2\nh3: disk 3"
        assert books.action(action.id).state == "error"

    def test_without_reschedule_the_reasons_of_former_attempts_are_kept(self, books):
        server, action = books.begun()
        books.finish(action, fault="no CPU")
        second = books.restart(action, "h2", args=books.action(action.id).args)
        books.begin(second, 2, host="h2")
        books.finish(second, 2, host="h2", fault="image is broken", reschedule=False)
        assert books.fault(server.uuid).details == "h1: no CPU\nh2: image is broken"
        assert books.action(action.id).failures == ["h1"]

    def test_without_reschedule_ends_at_once(self, books):
        server, action = books.begun()
        outcome = books.finish(action, fault="image is broken", reschedule=False)
        assert (outcome.verdict, outcome.drive) == (DONE, [])
        stored = books.server(server.uuid)
        assert (stored.vm_state, stored.host, books.held(server.uuid)) == ("error", None, {})
        assert books.fault(server.uuid).message == "image is broken"
        assert books.fault(server.uuid).created_at > 0
        assert books.cleanups(server.uuid) == {}

    @pytest.mark.parametrize("reschedule", [True, False])
    def test_a_guest_that_would_not_go_is_remembered(self, books, reschedule):
        server, action = books.begun()
        books.finish(action, fault="no", reschedule=reschedule, guest_left=True)
        assert books.cleanups(server.uuid) == {"h1": 1}

    def test_late_it_still_tells_of_a_guest_that_would_not_go(self, books):
        server, action = books.begun()
        leave(books, action)
        books.gone(server, attempt=1)
        books.restart(action, "h2")
        assert books.finish(action, fault="no", guest_left=True).verdict is DONE
        assert books.cleanups(server.uuid) == {"h1": 1}
        assert books.action(action.id).failures == []

    def test_twice_it_counts_once(self, books):
        _, action = books.begun()
        books.finish(action, fault="no")
        books.finish(action, fault="no")
        assert books.action(action.id).failures == ["h1"]

    def test_an_older_token_is_not_believed(self, books):
        _, action = books.begun(token="t1")
        books.begin(action, token="t2", epoch=2)
        books.finish(action, token="t1", epoch=1, fault="no")
        assert books.action(action.id).step is Step.BEGUN

    def test_is_believed_before_any_begin(self, books):
        server, action = books.started()
        outcome = books.finish(action, fault="no memory for the claim")
        assert outcome.drive == ["r1"]
        assert books.action(action.id).failures == ["h1"]
        assert books.cleanups(server.uuid) == {}

    @pytest.mark.parametrize("reschedule", [True, False])
    def test_is_believed_from_a_newer_start_and_its_host_is_cleaned(self, books, reschedule):
        server, action = books.begun(token="t1", epoch=1)
        books.finish(action, token="t2", epoch=2, fault="no", reschedule=reschedule)
        assert books.action(action.id).state == ("pending" if reschedule else "error")
        assert (books.server(server.uuid).host, books.held(server.uuid)) == (None, {})
        assert books.cleanups(server.uuid) == {"h1": 1}

    @pytest.mark.parametrize("finished", [True, False])
    def test_the_guest_of_another_handling_is_not_cleaned_away(self, books, finished):
        server, action = books.begun(token="t1")
        books.begin(action, token="t2")
        if finished:
            books.finish(action, token="t2")
        books.finish(action, token="t1", fault="no", guest_left=True)
        assert books.cleanups(server.uuid) == {}

    def test_of_an_unknown_action_leaves_nothing_to_clean(self, books):
        server, action = books.begun()
        action.id += 100
        books.finish(action, fault="no", guest_left=True)
        assert books.cleanups(server.uuid) == {}


class TestTheBoundOfDrives:
    def test_the_ninth_loss_ends_the_build_and_tells_each(self, books):
        server, action = books.started(host="h1")
        for number in range(1, 9):
            leave(books, action, f"loss {number}")
            action = books.restart(action, "h1", args=books.action(action.id).args)
        assert failures.exhausted(books.action(action.id), 3) is None
        outcome = books.refuse(action, 9, stale=True)
        assert outcome.drive == []
        assert books.server(server.uuid).vm_state == "error"
        fault = books.fault(server.uuid)
        assert fault.message == (
            f"Build of instance {server.uuid} was given up after 9 losses on the way (restarted "
            "processes, lost messages, refused claims)."
        )
        told = fault.details.splitlines()
        assert told[:8] == [f"loss {number}" for number in range(1, 9)]
        assert told[8].startswith("attempt 9: h1 refused the claim: Free memory")

    def test_failures_are_told_before_losses(self, books):
        _, action = books.started()
        action.failures, action.drives = ["h1", "h2", "h3"], 9
        assert failures.exhausted(action, 3).message.startswith("Exceeded maximum")


class TestProgress:
    def test_shows_the_task_state_and_the_ports(self, books):
        server, action = books.begun()
        network = NetworkInfo("port", "net", "private", "fa:16:3e:00:00:01")
        outcome = books.progress(
            action, task_state="spawning", network_info=[network], events=[step("network")]
        )
        assert outcome.verdict is DONE
        stored = books.server(server.uuid)
        assert (stored.task_state, stored.network_info) == ("spawning", [network])
        assert [event.event for event in books.events(action.id)] == ["network"]

    def test_an_event_gets_its_end(self, books):
        _, action = books.begun()
        books.progress(action, events=[step("network")])
        books.progress(action, events=[step("network", finish=11.0, result="Success")])
        (event,) = books.events(action.id)
        assert (event.finish, event.result, event.attempt) == (11.0, "Success", 1)

    @pytest.mark.parametrize(
        "change", [{"token": "t2"}, {"epoch": 2}, {"attempt": 2}, {"host": "h2"}]
    )
    def test_only_of_the_handling_that_has_begun(self, books, change):
        server, action = books.begun()
        assert books.progress(action, task_state="spawning", **change).verdict is SUPERSEDED
        assert books.server(server.uuid).task_state is None

    def test_not_over_a_delete(self, books):
        server, action = books.begun()
        books.delete(server.uuid)
        assert books.progress(action, task_state="spawning").verdict is SUPERSEDED
        assert books.server(server.uuid).task_state == "deleting"


class TestTouch:
    def left(self, books, action):
        return books.action(action.id).deadline - books.clock.moment

    def test_extends_what_is_named(self, books):
        _, named = books.begun(reservation_id="a")
        _, other = books.begun(reservation_id="b")
        books.clock.advance(20)
        books.write(attempts.touch, "h1", [books.in_hand(named)], 25.0)
        assert self.left(books, named) == pytest.approx(25, abs=0.1)
        assert self.left(books, other) == pytest.approx(5, abs=0.1)

    @pytest.mark.parametrize("change", ["attempt", "host", "ended"])
    def test_nothing_else(self, books, change):
        _, action = books.begun()
        if change == "ended":
            books.finish(action)
        books.clock.advance(20)
        host = "h2" if change == "host" else "h1"
        hand = books.in_hand(action, attempt=2 if change == "attempt" else 1)
        books.write(attempts.touch, host, [hand], 25.0)
        assert self.left(books, action) == pytest.approx(5, abs=0.1)
