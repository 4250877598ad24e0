# SPDX-License-Identifier: Apache-2.0
"""The flow of a build from "waits for a host" to "cast to a compute"."""

import uuid

import pytest

from novalite import exception
from novalite.conductor.leases import Leases
from novalite.conductor.tasks import build_instances
from novalite.db import builds, server_groups
from novalite.objects import loss, selection
from novalite.objects.decision import Decision
from novalite.objects.request_spec import InstanceGroup, Limits, Selection
from novalite.objects.server_group import ANTI_AFFINITY, ServerGroup
from novalite.objects.states import Step
from tests.unit.conductor.doubles import FakeCompute, FakeScheduler
from tests.unit.db.books import new_server


class Flow:
    """The flow on the books, with a scheduler that answers what it is told to."""

    def __init__(self, books):
        self.books = books
        self.scheduler, self.compute = FakeScheduler(), FakeCompute()
        self.leases = Leases(books.database, "c1", 15.0)
        self.task = build_instances.BuildInstances(
            books.conf, books.database, self.scheduler, self.compute, self.leases
        )

    def will_choose(self, *hosts):
        """Each server of every request gets the first host and the others as alternates."""
        self.scheduler.answers.append(lambda requests: [chosen(r, hosts) for r in requests])

    def will_find_none(self, **values):
        values = {
            "error": selection.NO_VALID_HOST,
            "reason": "There are not enough hosts.",
        } | values
        self.scheduler.answers.append(
            lambda requests: [selection.SelectAnswer(r.key, **values) for r in requests]
        )

    def run(self, *reservations):
        self.compute.builds.clear()
        self.task.execute(list(reservations) or ["r1"])
        return [(host, r.instance.uuid, r.attempt) for host, r in self.compute.builds]


def chosen(request, hosts):
    rows = [Selection(host, host, Limits(memory_mb=100.0), f"zone-{host}") for host in hosts]
    decision = Decision(hosts=len(hosts), survivors=len(hosts), host=hosts[0])
    count = len(request.specs)
    return selection.SelectAnswer(request.key, [list(rows)] * count, [decision] * count)


@pytest.fixture
def flow(books):
    return Flow(books)


class TestBoot:
    def test_takes_selects_starts_and_casts(self, flow, books):
        server = books.create()
        flow.will_choose("h1", "h2", "h3")
        assert flow.run() == [("h1", server.uuid, 1)]
        action = books.action(server.action_id)
        assert (action.step, action.attempt, action.target_host) == ("started", 1, "h1")
        assert action.deadline - books.clock.moment == pytest.approx(10, abs=0.1)
        assert [one["host"] for one in action.args["alternates"]] == ["h2", "h3"]
        assert action.args["zone"] == "zone-h1"

    def test_the_cast_carries_everything_the_compute_needs(self, flow, books):
        server = books.create()
        flow.will_choose("h1")
        flow.run()
        ((_, request),) = flow.compute.builds
        assert (request.action_id, request.node) == (server.action_id, "h1")
        assert (request.spec.instance_uuid, request.limits) == (
            server.uuid,
            Limits(memory_mb=100.0),
        )
        assert request.instance.action_id == server.action_id
        assert request.context["request_id"] == books.action(server.action_id).request_id
        assert request.context["project_id"] == "p1"

    def test_the_decision_is_in_the_history(self, flow, books):
        server = books.create()
        flow.will_choose("h1")
        flow.run()
        (event,) = books.events(server.action_id)
        assert event.event == "conductor_schedule_and_build_instances"
        assert (event.result, event.attempt, event.details["host"]) == ("Success", 1, "h1")
        assert event.details["decision"]["survivors"] == 1
        assert event.details["limits"]["memory_mb"] == 100.0

    def test_the_scheduler_learns_who_asks(self, flow, books):
        server = books.create()
        flow.will_choose("h1")
        flow.run()
        ((request,),) = flow.scheduler.calls
        assert [spec.instance_uuid for spec in request.specs] == [server.uuid]
        assert request.unused == []
        assert request.context["user_id"] == "alice"

    def test_members_of_a_group_are_told_to_the_scheduler_and_noted(self, flow, books):
        group = ServerGroup(str(uuid.uuid4()), "p1", "alice", "g", ANTI_AFFINITY, {})
        books.write(server_groups.create, group)
        server, spec = new_server()
        spec.scheduler_hints = {"group": group.uuid}
        books.create((server, spec))
        books.write(server_groups.join, group.uuid, "p1", [server.uuid])
        flow.will_choose("h1", "h2")
        flow.run()
        ((request,),) = flow.scheduler.calls
        assert request.specs[0].instance_group == InstanceGroup(group.uuid, ANTI_AFFINITY)
        assert books.action(server.action_id).args["group"] == group.uuid

    def test_many_reservations_are_one_call_and_one_cast_a_host(self, flow, books):
        one, two = books.create(new_server("a"), new_server("a"))
        three = books.create(reservation_id="b")
        flow.will_choose("h1")
        assert len(flow.run("a", "b")) == 3
        ((first, second),) = flow.scheduler.calls
        assert [spec.instance_uuid for spec in first.specs] == [one.uuid, two.uuid]
        assert [spec.instance_uuid for spec in second.specs] == [three.uuid]

    def test_what_nobody_waits_for_asks_nobody(self, flow, books):
        books.started()
        assert flow.run("r1", "unknown") == []
        assert flow.scheduler.calls == []

    def test_a_cast_that_the_bus_refuses_leaves_the_build_started(self, flow, books):
        server = books.create()
        flow.will_choose("h1")
        flow.compute.down = 1
        assert flow.run() == []
        assert books.action(server.action_id).step is Step.STARTED

    def test_a_repeated_transaction_starts_once_and_casts_once(self, flow, books, monkeypatch):
        server = books.create()
        flow.will_choose("h1")
        books.repeat_transactions(monkeypatch)
        assert flow.run() == [("h1", server.uuid, 1)]
        assert books.action(server.action_id).attempt == 1
        assert len(books.events(server.action_id)) == 1


class TestNoHost:
    def test_ends_in_error_with_the_reason(self, flow, books):
        server = books.create()
        flow.will_find_none(decisions=[Decision(hosts=4)])
        assert flow.run() == []
        stored = books.server(server.uuid)
        assert (stored.vm_state, stored.task_state, stored.host) == ("error", None, None)
        fault = books.fault(server.uuid)
        assert fault.message == "No valid host was found. There are not enough hosts."
        assert fault.details == Decision(hosts=4).text()
        (event,) = books.events(server.action_id)
        assert (event.result, event.details["decision"]["hosts"]) == ("Error", 4)

    def test_all_servers_of_a_reservation_share_the_answer(self, flow, books):
        one, two = books.create(new_server("a"), new_server("a"))
        three = books.create(reservation_id="b")
        flow.scheduler.answers.append(
            lambda requests: [
                selection.SelectAnswer(
                    requests[0].key, error=selection.NO_VALID_HOST, reason="None fits."
                ),
                chosen(requests[1], ["h1"]),
            ]
        )
        assert flow.run("a", "b") == [("h1", three.uuid, 1)]
        assert {books.server(s.uuid).vm_state for s in (one, two)} == {"error"}

    def test_after_failures_it_tells_of_them(self, flow, books):
        server, action = books.begun(host="h1")
        books.finish(action, fault="disk full")
        flow.will_find_none()
        flow.run()
        fault = books.fault(server.uuid)
        assert fault.message == (
            "No valid host was found. There are not enough hosts. The candidate hosts were used "
            "up: the build failed on 1 of them."
        )
        assert fault.details == "h1: disk full"

    def test_a_scheduler_that_cannot_decide_ends_it_too(self, flow, books):
        server = books.create()
        flow.will_find_none(
            error=selection.FAILED,
            reason="a filter is broken",
            only_compute_filter=True,
            recently_seen=True,
        )
        flow.run()
        assert books.server(server.uuid).vm_state == "error"


class TestWaiting:
    def assert_waits(self, books, server):
        assert books.waits(server.action_id)
        action = books.action(server.action_id)
        assert (action.drives, action.owner) == (0, None)
        assert action.deadline - books.clock.moment == pytest.approx(2, abs=0.1)
        assert books.server(server.uuid).vm_state == "building"
        # However often it was tried: one step, of the attempt that has not come.
        (event,) = books.events(server.action_id)
        assert (event.event, event.attempt, event.result) == (loss.WAIT, 1, None)

    def test_while_every_host_is_away_for_a_short_time(self, flow, books):
        server = books.create()
        flow.will_find_none(only_compute_filter=True, recently_seen=True)
        assert flow.run() == []
        self.assert_waits(books, server)
        flow.will_choose("h1")
        assert flow.run() == [("h1", server.uuid, 1)]

    @pytest.mark.parametrize("known", [{"only_compute_filter": True}, {"recently_seen": True}])
    def test_not_for_hosts_that_are_long_gone_or_too_small(self, flow, books, known):
        server = books.create()
        flow.will_find_none(**known)
        flow.run()
        assert books.server(server.uuid).vm_state == "error"

    def test_for_a_scheduler_that_has_just_started(self, flow, books):
        server = books.create()
        flow.will_find_none(settling=True)
        flow.run()
        self.assert_waits(books, server)

    def test_while_no_scheduler_answers(self, flow, books):
        one, two = books.create(new_server("a"), new_server("b"))
        for _ in range(10):
            flow.scheduler.answers.append(exception.BusUnavailable())
            assert flow.run("a", "b") == []
            self.assert_waits(books, one)
            self.assert_waits(books, two)


class TestReschedule:
    def start(self, flow, books, *hosts):
        server = books.create()
        flow.will_choose(*hosts)
        flow.run()
        return server, books.action(server.action_id)

    def test_a_failed_build_goes_to_the_next_alternate(self, flow, books):
        server, action = self.start(flow, books, "h1", "h2", "h3")
        books.begin(action)
        books.finish(action, fault="no")
        assert flow.run() == [("h2", server.uuid, 2)]
        assert len(flow.scheduler.calls) == 1
        action = books.action(action.id)
        assert [one["host"] for one in action.args["alternates"]] == ["h3"]
        assert action.args["zone"] == "zone-h2"
        assert action.args["tried"] == ["h1: no"]
        assert [event.attempt for event in books.events(action.id)] == [1, 2]

    def test_an_alternate_that_has_failed_meanwhile_is_left_out(self, flow, books):
        server, action = self.start(flow, books, "h1", "h2", "h3")
        books.begin(action)
        books.finish(action, fault="no")
        books.execute(
            builds._a.update().where(builds._a.c.id == action.id).values(failures=["h1", "h2"])
        )
        assert flow.run() == [("h3", server.uuid, 2)]

    def test_without_alternates_the_scheduler_is_asked_again(self, flow, books):
        server, action = self.start(flow, books, "h1")
        books.refuse(action)
        flow.will_choose("h2")
        assert flow.run() == [("h2", server.uuid, 2)]
        (request,) = flow.scheduler.calls[1]
        assert request.unused == [server.uuid]
        assert request.specs[0].ignore_hosts == ["h1"]

    def test_a_stale_picture_asks_the_scheduler_again_with_the_host_in(self, flow, books):
        server, action = self.start(flow, books, "h1", "h2")
        books.refuse(action, stale=True)
        flow.will_choose("h1")
        assert flow.run() == [("h1", server.uuid, 2)]
        assert flow.scheduler.calls[1][0].specs[0].ignore_hosts == []

    def test_only_the_members_that_are_left_are_selected_again(self, flow, books):
        one, two = books.create(new_server(), new_server())
        flow.will_choose("h1")
        flow.run()
        books.refuse(books.action(two.action_id))
        flow.will_choose("h2")
        assert flow.run() == [("h2", two.uuid, 2)]
        assert [spec.instance_uuid for spec in flow.scheduler.calls[1][0].specs] == [two.uuid]
        assert books.action(one.action_id).attempt == 1

    def test_alternates_and_selections_go_together_in_one_round(self, flow, books):
        first, action = self.start(flow, books, "h1", "h2")
        books.refuse(action)
        second = books.create(reservation_id="other")
        flow.will_choose("h3")
        assert sorted(flow.run("r1", "other")) == sorted(
            [("h2", first.uuid, 2), ("h3", second.uuid, 1)]
        )
        (request,) = flow.scheduler.calls[1]
        assert [spec.instance_uuid for spec in request.specs] == [second.uuid]


class TestLostLease:
    def lose(self, flow, books, server, then=None):
        """While the scheduler thinks, recovery takes the build away."""

        def answer(requests):
            seen = books.action(server.action_id)
            books.write(builds.leave, seen, guest_may_be_left=False, loss="lease")
            if then is not None:
                then()
            return [chosen(request, ["h1"]) for request in requests]

        flow.scheduler.answers.append(answer)

    def test_starts_nothing(self, flow, books):
        server = books.create()
        self.lose(flow, books, server)
        assert flow.run() == []
        assert books.waits(server.action_id)

    def test_does_not_disturb_the_one_who_has_it_now(self, flow, books):
        server = books.create()
        self.lose(flow, books, server, lambda: books.start(books.take()[0], "h2"))
        assert flow.run() == []
        action = books.action(server.action_id)
        assert (action.attempt, action.target_host) == (1, "h2")
        assert books.events(action.id) == []

    def test_does_not_fail_what_it_has_lost(self, flow, books):
        server = books.create()

        def answer(requests):
            books.write(
                builds.leave, books.action(server.action_id), guest_may_be_left=False, loss="lease"
            )
            return [
                selection.SelectAnswer(r.key, error=selection.NO_VALID_HOST, reason="None.")
                for r in requests
            ]

        flow.scheduler.answers.append(answer)
        flow.run()
        assert books.waits(server.action_id)

    def test_a_delete_in_the_meantime_ends_it_quietly(self, flow, books):
        server = books.create()

        def answer(requests):
            books.delete(server.uuid)
            return [chosen(request, ["h1"]) for request in requests]

        flow.scheduler.answers.append(answer)
        assert flow.run() == []
        assert books.server(server.uuid).deleted

    def test_the_other_members_are_started(self, flow, books):
        one, two = books.create(new_server(), new_server())
        self.lose(flow, books, one)
        assert flow.run() == [("h1", two.uuid, 1)]

    def test_is_renewed_while_it_is_in_work_and_no_longer(self, flow, books):
        server = books.create()

        def answer(requests):
            books.clock.advance(14)
            flow.leases.renew()
            left = books.action(server.action_id).deadline - books.clock.moment
            assert left == pytest.approx(15, abs=0.1)
            raise exception.BusUnavailable()

        flow.scheduler.answers.append(answer)
        flow.run()
        books.clock.advance(1)
        flow.leases.renew()
        left = books.action(server.action_id).deadline - books.clock.moment
        assert left == pytest.approx(1, abs=0.1)

    def test_after_an_error_nothing_is_renewed_any_more(self, flow, books):
        server = books.create()
        flow.scheduler.answers.append(RuntimeError("broken"))
        with pytest.raises(RuntimeError):
            flow.run()
        books.clock.advance(10)
        flow.leases.renew()
        left = books.action(server.action_id).deadline - books.clock.moment
        assert left == pytest.approx(5, abs=0.1)
