# SPDX-License-Identifier: Apache-2.0
"""Open builds as the conductor drives them: create, take, start, give back, leave, fail."""

import pytest

from novalite.db import attempts, builds
from novalite.objects.instance import InstanceFault
from novalite.objects.states import ActionState, Step
from tests.unit.db import books as books_module
from tests.unit.db.books import RESOURCES, new_server


def deadline(books, action):
    """Return in how many seconds the action is past due."""
    return pytest.approx(books.action(action.id).deadline - books.clock.moment, abs=0.1)


class TestCreate:
    def test_server_and_open_action_point_at_each_other(self, books):
        server = books.create(grace=3.0)
        stored = books.server(server.uuid)
        action = books.action(stored.action_id)
        assert (stored.vm_state, stored.task_state, stored.host) == ("building", "scheduling", None)
        assert (action.action, action.instance_uuid) == ("create", server.uuid)
        assert books.waits(action.id)
        assert (action.reservation_id, action.project_id, action.user_id) == ("r1", "p1", "alice")
        assert deadline(books, action) == 3.0

    def test_servers_of_one_request_are_stored_together(self, books):
        one, two = books.create(new_server(launch_index=0), new_server(launch_index=1))
        assert one.id < two.id
        assert one.action_id < two.action_id


class TestTake:
    def test_takes_every_waiting_build_of_its_reservations(self, books):
        one, two = books.create(new_server("a"), new_server("a"))
        three, other = books.create(new_server("b")), books.create(new_server("c"))
        taken = books.take(["a", "b"], "me", lease=15.0)
        assert [t.action.instance_uuid for t in taken] == [one.uuid, two.uuid, three.uuid]
        assert {(t.action.state, t.action.owner) for t in taken} == {("running", "me")}
        assert deadline(books, taken[0].action) == 15.0
        assert books.waits(other.action_id)

    def test_what_is_taken_is_not_taken_again(self, books):
        books.create()
        assert len(books.take()) == 1
        assert books.take() == []

    def test_a_started_build_is_not_taken(self, books):
        books.started()
        assert books.take() == []

    def test_carries_request_and_user(self, books):
        server = books.create()
        (taken,) = books.take()
        assert taken.spec.instance_uuid == server.uuid
        assert taken.context.request_id == taken.action.request_id
        assert (taken.context.project_id, taken.context.user_id) == ("p1", "alice")

    def test_only_hosts_that_really_failed_are_ignored(self, books):
        _, action = books.begun("h1")
        books.finish(action, fault="disk full", host="h1")
        action = books.restart(action, "h2")
        books.refuse(action, 2, host="h2", stale=True)
        (taken,) = books.take()
        assert taken.spec.ignore_hosts == ["h1"]


class TestStart:
    def test_writes_attempt_and_target(self, books):
        books.create()
        (taken,) = books.take()
        assert books.start(taken, "h1", {"zone": "az1"}, lease=10.0)
        stored = books.action(taken.action.id)
        assert (stored.state, stored.step, stored.attempt) == ("running", "started", 1)
        assert (stored.target_host, stored.owner, stored.token) == ("h1", None, None)
        assert stored.args == {"zone": "az1"}
        assert deadline(books, stored) == 10.0

    def test_shows_the_new_attempt_to_the_caller(self, books):
        books.create()
        (taken,) = books.take()
        action = books.start(taken, "h1", {"zone": "az1"}).action
        assert (action.attempt, action.step) == (1, Step.STARTED)
        assert (action.target_host, action.target_node) == ("h1", "h1")
        assert taken.action.attempt == 0

    def test_a_lost_lease_starts_nothing(self, books):
        server = books.create()
        (late,) = books.take(owner="late")
        assert books.write(
            builds.leave, books.action(server.action_id), guest_may_be_left=False, loss="lease"
        )
        (taken,) = books.take(owner="other")
        assert not books.start(late, "h1")
        assert books.start(taken, "h2")
        assert not books.start(late, "h1")
        assert books.action(server.action_id).target_host == "h2"

    def test_a_deleted_server_is_not_started(self, books):
        server = books.create()
        (taken,) = books.take()
        books.delete(server.uuid)
        assert not books.start(taken, "h1")

    def test_the_recasts_count_anew(self, books):
        _, action = books.started()
        books.execute(
            builds._a.update().where(builds._a.c.id == action.id).values(recasts=3, state="running")
        )
        books.refuse(action)
        assert books.restart(action, "h2").attempt == 2
        assert books.action(action.id).recasts == 0

    def test_runs_twice_after_a_deadlock(self, books):
        books.create()
        (taken,) = books.take()

        def work(conn):
            return builds.start(conn, taken, "h1", "h1", {}, 10.0)

        books.roll_back(work)
        assert books.database.transaction(work)
        assert books.action(taken.action.id).attempt == 1


class TestGiveBackAndRenew:
    def test_waits_without_a_loss(self, books):
        books.create()
        (taken,) = books.take()
        books.write(builds.give_back, taken, 2.0)
        assert books.waits(taken.action.id)
        stored = books.action(taken.action.id)
        assert (stored.drives, stored.owner) == (0, None)
        assert deadline(books, stored) == 2.0

    def test_gives_back_only_what_it_holds(self, books):
        books.create()
        (taken,) = books.take()
        books.start(taken, "h1")
        books.write(builds.give_back, taken, 2.0)
        assert books.action(taken.action.id).step is Step.STARTED

    def test_renews_what_these_owners_hold(self, books):
        one, two = books.create(reservation_id="a"), books.create(reservation_id="b")
        books.take(["a"], "me"), books.take(["b"], "you")
        books.clock.advance(10)
        books.write(builds.renew, ["me"], 15.0)
        assert deadline(books, books.action(one.action_id)) == 15.0
        assert deadline(books, books.action(two.action_id)) == 5.0

    def test_does_not_renew_what_was_started(self, books):
        books.create()
        (taken,) = books.take(owner="me")
        books.start(taken, "h1", lease=10.0)
        books.write(builds.renew, ["me"], 15.0)
        assert deadline(books, taken.action) == 10.0


class TestFail:
    def fault(self):
        return InstanceFault(500, "No valid host was found. None.", created_at=5.0)

    def test_ends_in_error_with_the_fault_and_holds_nothing(self, books):
        server = books.create()
        (taken,) = books.take()
        event = books_module.step("select", result="Error")
        assert books.write(builds.fail_taken, taken, self.fault(), event)
        stored = books.server(server.uuid)
        assert (stored.vm_state, stored.task_state, stored.action_id) == ("error", None, None)
        assert (stored.host, books.held(server.uuid)) == (None, {})
        assert books.fault(server.uuid).message == "No valid host was found. None."
        action = books.action(taken.action.id)
        assert (action.state, action.message) == (ActionState.ERROR, "Error")
        assert [event.result for event in books.events(action.id)] == ["Error"]

    def test_a_lost_lease_fails_nothing(self, books):
        server = books.create()
        (taken,) = books.take()
        books.start(taken, "h1")
        assert not books.write(builds.fail_taken, taken, self.fault(), None)
        assert books.server(server.uuid).vm_state == "building"
        assert books.fault(server.uuid) is None

    def test_a_closed_build_does_not_fail(self, books):
        server, action = books.active()
        assert not books.write(builds.fail, action, self.fault())
        assert books.server(server.uuid).vm_state == "active"


class TestLeave:
    def test_begun_work_leaves_no_host_no_allocations_and_a_clean_up(self, books):
        server, action = books.begun()
        assert books.held(server.uuid) == {"h1": RESOURCES}
        action = books.action(action.id)
        assert books.write(builds.leave, action, guest_may_be_left=True, loss="h1 fell silent")
        stored = books.server(server.uuid)
        assert (stored.host, stored.node, books.held(server.uuid)) == (None, None, {})
        assert books.cleanups(server.uuid) == {"h1": 1}
        assert books.waits(action.id)
        left = books.action(action.id)
        assert (left.token, left.drives, left.args["losses"]) == (None, 1, ["h1 fell silent"])

    def test_work_that_has_not_begun_leaves_nothing_to_clean_up(self, books):
        server, action = books.started()
        assert books.write(builds.leave, action, guest_may_be_left=False, loss="no begin")
        assert books.cleanups(server.uuid) == {}

    def test_a_failure_counts_apart_from_losses(self, books):
        _, action = books.begun()
        action = books.action(action.id)
        books.write(builds.leave, action, guest_may_be_left=False, loss=None, failure="h1")
        left = books.action(action.id)
        assert (left.drives, left.failures) == (0, ["h1"])

    @pytest.mark.parametrize("change", ["begun meanwhile", "left meanwhile", "ended meanwhile"])
    def test_only_the_attempt_that_was_seen_is_left(self, books, change):
        server, action = books.started()
        seen = books.action(action.id)
        books.begin(action)
        if change == "left meanwhile":
            books.finish(action, fault="no")
            books.restart(action, "h2")
        if change == "ended meanwhile":
            books.finish(action)
        before = books.action(action.id)
        assert not books.write(builds.leave, seen, guest_may_be_left=True, loss="late")
        assert books.action(action.id) == before
        assert books.cleanups(server.uuid) == {}

    def test_what_was_renewed_meanwhile_is_not_left(self, books):
        _, action = books.begun()
        seen = books.action(action.id)
        books.clock.advance(30)
        books.write(attempts.touch, "h1", [books.in_hand(action)], 25.0)
        assert not books.write(
            builds.leave, seen, guest_may_be_left=True, loss="late", unless_renewed=True
        )
        assert books.action(action.id).step is Step.BEGUN

    def test_a_take_that_follows_a_leave_is_not_stolen(self, books):
        """Two conductors find the same expired lease; the second comes after a new take."""
        server = books.create()
        books.take(owner="dead")
        one, two = books.action(server.action_id), books.action(server.action_id)
        assert books.write(
            builds.leave, one, guest_may_be_left=False, loss="lease", unless_renewed=True
        )
        books.take(owner="alive")
        assert not books.write(
            builds.leave, two, guest_may_be_left=False, loss="lease", unless_renewed=True
        )
        action = books.action(server.action_id)
        assert (action.owner, action.drives) == ("alive", 1)


class TestCleanups:
    @pytest.mark.parametrize(
        ("first", "second", "kept"), [(1, 3, 3), (3, 1, 3), (None, 2, None), (2, None, None)]
    )
    def test_the_widest_bound_stays(self, books, first, second, kept):
        server = books.create()
        books.write(builds.add_cleanup, server.uuid, "h1", "h1", first)
        books.write(builds.add_cleanup, server.uuid, "h1", "h1", second)
        assert books.cleanups(server.uuid) == {"h1": kept}

    def test_each_host_has_its_own(self, books):
        server = books.create()
        books.write(builds.add_cleanup, server.uuid, "h1", "h1", 1)
        books.write(builds.add_cleanup, server.uuid, "h2", "h2", 2)
        assert books.cleanups(server.uuid) == {"h1": 1, "h2": 2}
