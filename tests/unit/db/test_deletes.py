# SPDX-License-Identifier: Apache-2.0
"""Deletes: the table of rule 12 row by row, what a host reports, and how a delete ends."""

import pytest
import sqlalchemy as sa

from novalite import exception
from novalite.db import attempts, builds, deletes, schema
from novalite.objects.states import PowerState, Verdict
from tests.unit.db.books import RESOURCES, Overtaken, context, new_server, step


def assert_deleted(books, server):
    stored = books.server(server.uuid)
    assert (stored.vm_state, stored.task_state, stored.deleted) == ("deleted", None, True)
    assert stored.action_id is None
    assert stored.power_state is PowerState.NOSTATE
    assert stored.deleted_at > 0
    assert stored.terminated_at > 0
    assert books.held(server.uuid) == {}
    with pytest.raises(exception.InstanceNotFound):
        books.delete(server.uuid)


def of(books, server):
    """Return the server's actions, the latest first."""
    return books.read(deletes.actions.list_for_instance, server.uuid)


class TestWhatTheDeleteFinds:
    def test_pending_it_is_closed_at_once(self, books):
        server = books.create()
        opened = books.delete(server.uuid)
        assert (opened.closed, opened.host, opened.request) == (True, None, None)
        assert_deleted(books, server)
        delete, build = of(books, server)
        assert (delete.action, delete.state) == ("delete", "done")
        assert (build.state, build.message) == ("superseded", "the server was deleted")
        assert books.take() == []

    def test_taken_it_is_closed_at_once(self, books):
        server = books.create()
        (taken,) = books.take()
        assert books.delete(server.uuid).closed
        assert_deleted(books, server)
        assert books.start(taken, "h1") is None

    def test_started_it_is_closed_and_begin_is_superseded(self, books):
        server, action = books.started()
        assert books.delete(server.uuid).closed
        assert_deleted(books, server)
        assert books.begin(action).verdict is Verdict.SUPERSEDED
        assert books.held(server.uuid) == {}

    def test_begun_it_goes_to_the_host(self, books):
        server, action = books.begun(host="h1")
        opened = books.delete(server.uuid)
        assert (opened.closed, opened.host) == (False, "h1")
        request = opened.request
        assert (request.instance.uuid, request.node, request.attempt) == (server.uuid, "h1", None)
        stored = books.server(server.uuid)
        assert (stored.vm_state, stored.task_state) == ("building", "deleting")
        assert stored.action_id == request.action_id
        assert books.held(server.uuid) == {"h1": RESOURCES}
        assert books.action(action.id).state == "superseded"
        assert books.finish(action).verdict is Verdict.SUPERSEDED
        books.gone(server, action_id=request.action_id)
        assert_deleted(books, server)

    def test_begun_while_it_was_opened_it_goes_to_the_host(self, books):
        server, action = books.started(host="h1")
        item = books.begin_item(action)

        def work(conn):
            overtaken = Overtaken(conn, lambda conn: attempts.begin(conn, "h1", 1, item, 25.0, 3))
            return deletes.open_delete(overtaken, context(), server.uuid, lease=10.0)

        opened = books.database.transaction(work)
        assert (opened.closed, opened.host) == (False, "h1")
        assert books.action(opened.request.action_id).target_host == "h1"

    def test_active_it_goes_to_the_host(self, books):
        server, _ = books.active(host="h1")
        opened = books.delete(server.uuid)
        assert (opened.closed, opened.host) == (False, "h1")
        action = books.action(opened.request.action_id)
        assert (action.state, action.step, action.target_host) == ("running", "started", "h1")
        assert action.deadline - books.clock.moment == pytest.approx(10, abs=0.1)
        assert books.held(server.uuid) == {"h1": RESOURCES}
        books.gone(server, action_id=action.id, events=[step("delete", result="Success")])
        assert_deleted(books, server)
        assert [event.event for event in books.events(action.id)] == ["delete"]

    def test_what_a_host_may_still_hold_is_given_back_first(self, books):
        """A port of an attempt that was left must not wait for a host that never comes back."""
        server, action = books.begun(host="h1")
        assert books.write(
            builds.leave, books.action(action.id), guest_may_be_left=True, loss="silent"
        )
        opened = books.delete(server.uuid)
        assert (opened.closed, opened.host, opened.request) == (False, None, None)
        (delete, _build) = of(books, server)
        assert (delete.state, delete.target_host) == ("running", None)
        assert delete.deadline <= books.clock.moment + 0.1
        assert not books.delete(server.uuid).closed
        assert books.write(deletes.finish_without_host, delete)
        assert_deleted(books, server)
        assert books.cleanups(server.uuid) == {"h1": 1}

    def test_in_error_without_a_host_it_is_closed_at_once(self, books):
        server, action = books.begun()
        books.finish(action, fault="no", reschedule=False)
        assert books.delete(server.uuid).closed
        assert_deleted(books, server)

    def test_a_force_delete_is_called_so(self, books):
        server = books.create()
        books.delete(server.uuid, force=True)
        assert of(books, server)[0].action == "forceDelete"

    def test_an_unknown_server(self, books):
        with pytest.raises(exception.InstanceNotFound):
            books.delete("nowhere")

    def test_other_servers_are_left_alone(self, books):
        one, two = books.create(new_server(), new_server())
        books.delete(one.uuid)
        assert books.server(two.uuid).vm_state == "building"
        assert books.waits(two.action_id)


class TestSecondDelete:
    def test_while_one_is_open_it_drives_it_again(self, books):
        server, _ = books.active(host="h1")
        first = books.delete(server.uuid)
        second = books.delete(server.uuid)
        assert (second.closed, second.host) == (False, "h1")
        assert second.request.action_id == first.request.action_id
        assert second.request.attempt is None
        assert len(of(books, server)) == 2


class TestGone:
    def test_twice_it_ends_once(self, books):
        server, _ = books.active()
        request = books.delete(server.uuid).request
        books.gone(server, action_id=request.action_id)
        before = books.server(server.uuid)
        books.gone(server, action_id=request.action_id)
        assert books.server(server.uuid) == before

    def test_of_another_host_it_ends_nothing(self, books):
        server, _ = books.active(host="h1")
        request = books.delete(server.uuid).request
        books.gone(server, host="h2", action_id=request.action_id)
        assert books.server(server.uuid).task_state == "deleting"

    def test_of_a_clean_up_it_ends_no_delete(self, books):
        server, _ = books.active()
        books.delete(server.uuid)
        books.gone(server, attempt=1)
        assert books.server(server.uuid).task_state == "deleting"

    @pytest.mark.parametrize(
        ("remembered", "reported", "stays"),
        [(2, 2, False), (2, 3, False), (2, None, False), (2, 1, True), (None, 5, True)]
        + [(None, None, False)],
    )
    def test_a_clean_up_ends_when_all_it_names_is_gone(self, books, remembered, reported, stays):
        server = books.create()
        books.write(deletes.builds.add_cleanup, server.uuid, "h1", "h1", remembered)
        books.write(deletes.builds.add_cleanup, server.uuid, "h2", "h2", 1)
        books.gone(server, host="h1", attempt=reported)
        assert ("h1" in books.cleanups(server.uuid)) is stays
        assert "h2" in books.cleanups(server.uuid)

    def test_a_clean_up_that_failed_stays(self, books):
        server = books.create()
        books.write(deletes.builds.add_cleanup, server.uuid, "h1", "h1", 1)
        books.gone(server, attempt=1, failure="busy")
        assert books.cleanups(server.uuid) == {"h1": 1}


class TestDestroyFails:
    def test_three_answers_end_in_error_and_a_new_delete_works(self, books):
        server, _ = books.active(host="h1")
        action_id = books.delete(server.uuid).request.action_id
        for number in (1, 2):
            _, reason = books.gone(server, action_id=action_id, failure=f"busy {number}")
            assert reason == "will be tried again"
            action = books.action(action_id)
            assert (action.state, len(action.failures), action.drives) == ("running", number, 0)
            assert action.deadline - books.clock.moment == pytest.approx(1, abs=0.1)
        _, reason = books.gone(server, action_id=action_id, failure="busy 3")
        assert reason == "given up"
        stored = books.server(server.uuid)
        assert (stored.vm_state, stored.task_state, stored.action_id) == ("error", None, None)
        assert (stored.host, books.held(server.uuid)) == ("h1", {"h1": RESOURCES})
        fault = books.fault(server.uuid)
        assert (
            fault.message == f"Deleting instance {server.uuid} failed: its host could not remove it"
        )
        assert "busy" not in books.action(action_id).message
        assert fault.host == "h1"
        assert fault.details == "h1: busy 1\nh1: busy 2\nh1: busy 3"
        assert books.action(action_id).state == "error"

        opened = books.delete(server.uuid)
        assert (opened.closed, opened.host) == (False, "h1")
        assert opened.request.action_id != action_id
        books.gone(server, action_id=opened.request.action_id)
        assert_deleted(books, server)

    def test_of_one_server_it_counts_for_no_other(self, books):
        one, _ = books.active(host="h1", reservation_id="a")
        two, _ = books.active(host="h1", reservation_id="b")
        action_id = books.delete(one.uuid).request.action_id
        other = books.action(books.delete(two.uuid).request.action_id)
        for _ in range(3):
            books.gone(one, action_id=action_id, failure="busy")
        assert books.action(other.id) == other
        assert books.server(two.uuid).task_state == "deleting"

    def test_a_late_answer_of_the_delete_that_failed_ends_nothing(self, books):
        server, _ = books.active()
        action_id = books.delete(server.uuid).request.action_id
        for _ in range(3):
            books.gone(server, action_id=action_id, failure="busy")
        books.gone(server, action_id=action_id)
        assert books.server(server.uuid).vm_state == "error"


class TestWithoutTheHost:
    def test_the_server_is_free_and_the_host_is_told_later(self, books):
        server, _ = books.active(host="h1")
        action = books.action(books.delete(server.uuid).request.action_id)
        assert books.write(deletes.finish_without_host, action)
        assert_deleted(books, server)
        assert books.cleanups(server.uuid) == {"h1": None}
        assert [row.node for row in books.rows(sa.select(schema.cleanups))] == ["h1"]

    def test_after_its_end_it_changes_nothing(self, books):
        server, _ = books.active(host="h1")
        action = books.action(books.delete(server.uuid).request.action_id)
        books.gone(server, action_id=action.id)
        assert not books.write(deletes.finish_without_host, action)
        assert books.cleanups(server.uuid) == {}


def test_a_failed_delete_ends_once(books):
    server, _ = books.active()
    action = books.action(books.delete(server.uuid).request.action_id)
    books.gone(server, action_id=action.id)
    books.write(deletes.fail, action, "too late", [])
    assert books.server(server.uuid).vm_state == "deleted"
    assert books.fault(server.uuid) is None
