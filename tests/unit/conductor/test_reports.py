# SPDX-License-Identifier: Apache-2.0
"""One report: heartbeat and items in one transaction, in which a bad item spoils nothing else."""

import pytest
import sqlalchemy as sa

from novalite import exception
from novalite.conductor.reports import Reports, kept
from novalite.db import compute_nodes, schema, services
from novalite.objects import build
from novalite.objects.instance import InstanceFault
from novalite.objects.states import PowerState, Verdict
from tests.unit.db.books import RESOURCES, picture, step


class Desk:
    """Reports as a compute sends them."""

    def __init__(self, books):
        self.books = books
        self.reports = Reports(books.conf, books.database)

    def take(self, *items, host="h1", epoch=1, counter=1, in_hand=()):
        envelopes = [build.Envelope(10 + n, {}, item) for n, item in enumerate(items)]
        report = build.Report(host, "nova-compute", epoch, counter, list(in_hand), envelopes)
        return self.reports.take(report)

    def service(self, host="h1"):
        return self.books.read(services.find, host, "nova-compute")

    def node(self):
        return self.books.read(compute_nodes.list_all)[0].node


@pytest.fixture
def desk(books):
    books.register("h1")
    return Desk(books)


def begin(action, token="t1", books=None, **values):
    return build.Begin(
        action.id, action.attempt, token, action.instance_uuid, "h1", dict(RESOURCES), **values
    )


def finish(action, token="t1", **values):
    values = {"picture": picture()} | values
    return build.Finish(action.id, action.attempt, token, action.instance_uuid, "h1", **values)


class TestHeartbeat:
    def test_an_empty_report_is_one(self, desk):
        taken = desk.take(counter=4)
        assert taken.answer == build.ReportAnswer()
        assert desk.service().report_count == 4

    def test_an_overtaken_report_is_ignored_with_all_its_items(self, desk, books):
        _, action = books.started()
        desk.take(counter=5)
        taken = desk.take(begin(action, picture=picture()), counter=4)
        assert taken.answer == build.ReportAnswer()
        assert books.action(action.id).step == "started"

    def test_an_older_start_learns_that_it_is_retired(self, desk, books):
        _, action = books.started()
        books.register("h1")
        taken = desk.take(begin(action, picture=picture()), epoch=1, counter=9)
        assert taken.answer == build.ReportAnswer(retired=True)
        assert books.action(action.id).step == "started"

    def test_an_unknown_service_learns_that_it_is_unknown(self, desk):
        assert desk.take(host="h9").answer == build.ReportAnswer(unknown=True)

    def test_without_a_database_nothing_is_taken(self, desk, monkeypatch):
        def gone(_work):
            raise exception.DatabaseUnavailable()

        monkeypatch.setattr(desk.books.database, "transaction", gone)
        with pytest.raises(exception.DatabaseUnavailable):
            desk.take()


class TestInHand:
    def test_what_a_report_names_is_not_past_due_for_two_and_a_half_intervals(self, desk, books):
        _, action = books.begun()
        books.clock.advance(24)
        desk.take(in_hand=[books.in_hand(action)])
        left = books.action(action.id).deadline - books.clock.moment
        assert left == pytest.approx(2.5 * books.conf.report_interval, abs=0.1)

    def test_a_late_report_extends_nothing(self, desk, books):
        _, action = books.begun()
        before = books.action(action.id).deadline
        desk.take(counter=2)
        books.clock.advance(24)
        desk.take(counter=1, in_hand=[books.in_hand(action)])
        assert books.action(action.id).deadline == before


class TestItems:
    def test_each_item_has_its_answer_under_its_key(self, desk, books):
        _, one = books.started(reservation_id="a")
        two_server, two = books.begun(reservation_id="b")
        three_server, _ = books.active(reservation_id="c")
        delete = books.delete(three_server.uuid).request
        taken = desk.take(
            begin(one, picture=picture()),
            finish(two),
            build.Gone(three_server.uuid, "h1", picture(), action_id=delete.action_id),
            build.Progress(one.id, 1, "t1", one.instance_uuid, "networking", events=[step()]),
        )
        answers = {answer.key: answer.verdict for answer in taken.answer.answers}
        assert answers == {
            10: Verdict.GO,
            11: Verdict.DONE,
            12: Verdict.DONE,
            13: Verdict.DONE,
        }
        assert (taken.began, taken.finished) == (True, True)
        assert books.server(two_server.uuid).vm_state == "active"
        assert books.server(three_server.uuid).deleted
        assert books.server(one.instance_uuid).task_state == "networking"

    def test_refusals_and_failures_name_what_waits_now(self, desk, books):
        _, one = books.started(reservation_id="a")
        _, two = books.begun(reservation_id="b")
        taken = desk.take(
            build.Refusal(one.id, 1, "t1", one.instance_uuid, "h1", "full", False, picture()),
            finish(two, fault=InstanceFault(500, "no")),
        )
        assert taken.drive == ["a", "b"]

    def test_the_newest_picture_of_a_report_is_kept(self, desk, books):
        _, one = books.started(reservation_id="a")
        _, two = books.started(reservation_id="b")
        desk.take(
            begin(one, picture=picture(counter=3, vcpus_used=3)),
            begin(two, picture=picture(counter=2, vcpus_used=2)),
            build.Picture(picture(counter=1, vcpus_used=1)),
        )
        assert desk.node().vcpus_used == 3

    def test_a_power_state_of_a_server_at_rest(self, desk, books):
        server, _ = books.active(host="h1")
        moving, _ = books.begun(reservation_id="b", host="h1")
        desk.take(
            build.PowerReport(server.uuid, "h1", PowerState.SHUTDOWN),
            build.PowerReport(moving.uuid, "h1", PowerState.SHUTDOWN),
        )
        assert books.server(server.uuid).power_state is PowerState.SHUTDOWN
        assert books.server(moving.uuid).power_state is PowerState.NOSTATE

    def test_a_power_state_of_a_server_elsewhere_is_ignored(self, desk, books):
        server, _ = books.active(host="h2", power_state=PowerState.RUNNING)
        desk.take(build.PowerReport(server.uuid, "h1", PowerState.SHUTDOWN))
        assert books.server(server.uuid).power_state is not PowerState.SHUTDOWN


class TestBadItems:
    """A value that the database refuses, or that cannot even be written."""

    def broken(self, action, how):
        resources = {"VCPU": None} if how == "refused" else {"VCPU": object()}
        return build.Begin(
            action.id, 1, "t1", action.instance_uuid, "h1", resources, picture(counter=7)
        )

    @pytest.mark.parametrize("how", ["refused", "unwritable"])
    @pytest.mark.parametrize("first", [True, False])
    def test_one_does_not_take_the_others_with_it(self, desk, books, how, first):
        _, bad = books.started(reservation_id="a")
        server, good = books.begun(reservation_id="b")
        items = [self.broken(bad, how), finish(good)]
        taken = desk.take(*(items if first else items[::-1]), in_hand=[books.in_hand(good)])
        answers = {answer.key: answer for answer in taken.answer.answers}
        wrong, right = answers[10 if first else 11], answers[11 if first else 10]
        assert (wrong.verdict, bool(wrong.error)) == (None, True)
        assert (right.verdict, right.error) == (Verdict.DONE, None)
        assert books.server(server.uuid).vm_state == "active"
        assert desk.service().report_count == 1

    def test_nothing_of_it_stays(self, desk, books):
        server, bad = books.started()
        desk.take(self.broken(bad, "refused"))
        assert books.action(bad.id).step == "started"
        assert (books.server(server.uuid).host, books.held(server.uuid)) == (None, {})

    def test_the_next_report_is_taken_as_usual(self, desk, books):
        _, bad = books.started()
        desk.take(self.broken(bad, "refused"))
        taken = desk.take(begin(bad, picture=picture()), counter=2)
        assert taken.answer.answers[0].verdict is Verdict.GO

    def test_a_bad_picture_does_not_take_the_items_with_it(self, desk, books):
        server, action = books.begun()
        taken = desk.take(finish(action, picture=picture(vcpus=None)))
        assert taken.answer.answers[0].verdict is Verdict.DONE
        assert books.server(server.uuid).vm_state == "active"
        assert desk.service().report_count == 1

    def test_a_picture_of_another_hosts_node_does_not_silence_the_host(self, desk, books):
        books.register("h2")
        books.write(compute_nodes.save, picture("h2", "shared"))
        server, action = books.begun()
        stray = build.Picture(picture("h1", "shared", counter=9))
        taken = desk.take(stray, finish(action))
        assert taken.answer.answers[1].verdict is Verdict.DONE
        assert desk.service().report_count == 1
        assert books.read(compute_nodes.uuids_of, "h1").keys() == {"h1"}
        assert books.read(compute_nodes.uuids_of, "h2").keys() == {"shared"}


class TestKept:
    def test_servers_at_rest_with_their_attempt_and_open_builds(self, desk, books):
        active, _ = books.active(host="h1", reservation_id="a")
        elsewhere, _ = books.active(host="h2", reservation_id="b")
        started, _ = books.started(host="h1", reservation_id="c")
        begun, _ = books.begun(host="h1", reservation_id="d")
        answer = books.read(kept, "h1")
        assert [(one.instance.uuid, one.attempt) for one in answer.kept] == [(active.uuid, 1)]
        assert answer.open == [started.uuid, begun.uuid]

    def test_a_server_that_is_being_deleted_stays_until_the_host_is_told(self, desk, books):
        active, _ = books.active(host="h1", reservation_id="a")
        begun, _ = books.begun(host="h1", reservation_id="b")
        books.delete(active.uuid), books.delete(begun.uuid)
        answer = books.read(kept, "h1")
        assert [one.instance.uuid for one in answer.kept] == [active.uuid]
        assert answer.open == []

    def test_neither_deleted_servers_nor_those_without_a_host(self, desk, books):
        gone, _ = books.active(host="h1", reservation_id="a")
        books.gone(gone, action_id=books.delete(gone.uuid).request.action_id)
        failed, action = books.begun(host="h1", reservation_id="b")
        books.finish(action, fault="no", reschedule=False)
        answer = books.read(kept, "h1")
        assert (answer.kept, answer.open) == ([], [])

    def test_a_server_whose_delete_failed_stays_with_its_guest(self, desk, books):
        server, _ = books.active(host="h1")
        action_id = books.delete(server.uuid).request.action_id
        for _ in range(3):
            books.gone(server, action_id=action_id, failure="busy")
        assert [one.instance.uuid for one in books.read(kept, "h1").kept] == [server.uuid]

    def test_names_the_nodes(self, desk, books):
        books.write(compute_nodes.save, picture("h1", "n1"))
        rows = books.rows(sa.select(schema.compute_nodes.c.uuid))
        assert books.read(kept, "h1").node_uuids == {"n1": rows[0].uuid}
