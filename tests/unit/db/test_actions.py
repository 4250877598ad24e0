# SPDX-License-Identifier: Apache-2.0
"""Actions and their events: what the history shows, and that nothing ends twice."""

from novalite.db import actions
from novalite.objects.states import ActionState, Step
from tests.unit.db.books import context, step


def add(books, server="server", request_id="req-1", state=ActionState.RUNNING, **values):
    values = {"instance_uuid": server, "action": "create", "state": state, "lease": 5.0} | values
    return books.write(actions.add, context(request_id=request_id), **values)


class TestAction:
    def test_open_it_has_no_end(self, books):
        action = books.action(add(books, step=Step.STARTED, target_host="h1", args={"a": 1}))
        assert (action.state, action.step, action.finish) == ("running", "started", None)
        assert (action.target_host, action.args, action.request_id) == ("h1", {"a": 1}, "req-1")
        assert (action.attempt, action.failures, action.drives) == (0, [], 0)

    def test_closed_from_the_start_it_has_an_end(self, books):
        action = books.action(add(books, state=ActionState.DONE, message="reset"))
        assert action.finish == action.start
        assert action.message == "reset"

    def test_it_ends_once(self, books):
        action_id = add(books)
        assert books.write(actions.close, action_id, ActionState.ERROR, "Error")
        assert not books.write(actions.close, action_id, ActionState.DONE)
        action = books.action(action_id)
        assert (action.state, action.message, action.owner) == ("error", "Error", None)
        assert action.finish >= action.start

    def test_an_unknown_one(self, books):
        assert books.action(99) is None
        assert not books.write(actions.close, 99, ActionState.DONE)


class TestHistory:
    def test_the_latest_first_and_only_of_this_server(self, books):
        first, _, third = add(books), add(books, "other"), add(books, request_id="req-3")
        found = books.read(actions.list_for_instance, "server")
        assert [action.id for action in found] == [third, first]

    def test_by_request_of_this_server(self, books):
        first = add(books)
        add(books, "other")
        add(books, request_id="req-2")
        again = add(books)
        assert books.read(actions.by_request_id, "server", "req-1").id == again != first
        assert books.read(actions.by_request_id, "server", "req-9") is None


class TestEvents:
    def put(self, books, action_id, *events, attempt=1, new=False):
        books.write(actions.put_events, action_id, attempt, list(events), new=new)

    def test_in_the_order_in_which_they_began(self, books):
        action_id = add(books)
        late, early = step("late"), step("early")
        late.start, early.start = 20.0, 10.0
        self.put(books, action_id, late, early, new=True)
        assert [event.event for event in books.events(action_id)] == ["early", "late"]

    def test_one_is_kept_with_all_it_tells(self, books):
        action_id = add(books)
        event = step("claim", finish=11.0, result="Error", details={"need": 3}, traceback="trace")
        self.put(books, action_id, event, attempt=2)
        (kept,) = books.events(action_id)
        event.attempt = 2
        assert kept == event

    def test_its_end_replaces_its_begin_and_nothing_else(self, books):
        one, two = add(books), add(books)
        for action_id in (one, two):
            self.put(books, action_id, step("claim"), step("spawn"), new=True)
        self.put(books, one, step("spawn"), attempt=2)
        self.put(books, one, step("spawn", result="Success"))
        found = [(event.event, event.attempt, event.result) for event in books.events(one)]
        assert sorted(found, key=str) == [
            ("claim", 1, None),
            ("spawn", 1, "Success"),
            ("spawn", 2, None),
        ]
        assert [event.result for event in books.events(two)] == [None, None]

    def test_none_is_no_statement(self, books):
        action_id = add(books)
        self.put(books, action_id)
        assert books.events(action_id) == []
