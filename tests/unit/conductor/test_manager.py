# SPDX-License-Identifier: Apache-2.0
"""The conductor's endpoints, its heartbeat, its look at the bus, and the thread of the flows."""

import queue
from types import SimpleNamespace

import pytest

from novalite import exception
from novalite.conductor.manager import ConductorManager, Flows
from novalite.db import compute_nodes, services
from novalite.objects import build
from novalite.objects.states import Verdict
from tests.unit.db.books import RESOURCES, picture


class FakeBus:
    """Hands out clients that are not used here."""

    def __init__(self, conf):
        self.conf = conf

    def client(self, target, service):
        return None


class FakeConductor:
    """Answers a ping, unless the bus is away."""

    def __init__(self):
        self.error = None

    def ping(self, context, *, timeout):
        if self.error is not None:
            raise self.error
        return "pong"


class Office:
    """A manager on the books."""

    def __init__(self, books):
        self.books = books
        self.failed = []
        self.manager = ConductorManager(
            books.conf, FakeBus(books.conf), books.database, self.failed.append
        )
        self.driven = []
        self.manager._flows = self
        self.conductor = self.manager._conductor = FakeConductor()

    def start(self):
        """Flows: nothing runs by itself here."""

    def drive(self, reservation_ids):
        self.driven += reservation_ids

    def me(self):
        return self.books.read(services.find, self.books.conf.host, "nova-conductor")


@pytest.fixture
def office(books):
    return Office(books)


class TestRegistration:
    def test_a_compute_learns_epoch_and_what_to_keep(self, office, books):
        server, _ = books.active(host="h1", reservation_id="a")
        begun, _ = books.begun(host="h1", reservation_id="b")
        answer = office.manager.register("h1", "nova-compute", "id1")
        assert (answer.epoch, answer.refused, answer.disabled) == (1, None, False)
        assert [one.instance.uuid for one in answer.kept] == [server.uuid]
        assert answer.open == [begun.uuid]
        assert office.manager.register("h1", "nova-compute", "id1").epoch == 2

    def test_other_services_keep_nothing(self, office, books):
        books.active(host="h1")
        answer = office.manager.register("h1", "nova-scheduler", "")
        assert (answer.epoch, answer.kept) == (1, [])
        assert books.read(services.find, "h1", "nova-scheduler").topic == "scheduler"

    def test_a_disabled_service_learns_it(self, office, books):
        service = books.register("h1")
        books.write(services.update, service.id, disabled=True)
        assert office.manager.register("h1", "nova-compute", "").disabled

    def test_another_identity_is_refused_and_changes_nothing(self, office, books):
        office.manager.register("h1", "nova-compute", "id1")
        answer = office.manager.register("h1", "nova-compute", "id2")
        assert (answer.epoch, answer.kept) == (0, [])
        assert "host h1 is known with node identity id1" in answer.refused
        assert books.read(services.find, "h1", "nova-compute").epoch == 1

    def test_a_node_of_another_host_is_refused(self, office, books):
        office.manager.register("h1", "nova-compute", "id1", ["h1", "n1"])
        books.write(compute_nodes.save, picture("h1", "n1"))
        answer = office.manager.register("h2", "nova-compute", "id2", ["h2", "n1"])
        assert "node n1 belongs to host h1, not to h2" in answer.refused
        assert books.read(services.find, "h2", "nova-compute") is None
        assert office.manager.register("h1", "nova-compute", "id1", ["h1", "n1"]).epoch == 2


class TestReports:
    def test_what_waits_after_a_report_is_driven(self, office, books):
        books.register("h1")
        _, action = books.started(host="h1", reservation_id="r7")
        refusal = build.Refusal(
            action.id, 1, "t1", action.instance_uuid, "h1", "full", False, picture()
        )
        report = build.Report("h1", "nova-compute", 1, 1, [], [build.Envelope(5, {}, refusal)])
        answer = office.manager.take_report(report)
        assert [(one.key, one.verdict) for one in answer.answers] == [(5, Verdict.DONE)]
        assert office.driven == ["r7"]

    def test_after_a_begin_nothing_is_driven(self, office, books):
        books.register("h1")
        _, action = books.started(host="h1")
        begin = build.Begin(
            action.id, 1, "t1", action.instance_uuid, "h1", dict(RESOURCES), picture()
        )
        report = build.Report("h1", "nova-compute", 1, 1, [], [build.Envelope(5, {}, begin)])
        assert office.manager.take_report(report).answers[0].verdict is Verdict.GO
        assert office.driven == []

    def test_wake_ups_are_driven(self, office):
        office.manager.run_reservations(["a", "b"])
        assert office.driven == ["a", "b"]


class TestOwnHeartbeat:
    def test_counts_up(self, office):
        office.manager.init_host()
        for count in (1, 2):
            office.manager._report_state()
            assert office.me().report_count == count

    def test_a_second_one_of_the_same_name_retires_the_first(self, office, books):
        office.manager.init_host()
        books.register(books.conf.host, binary="nova-conductor")
        office.manager._report_state()
        assert office.failed == [
            f"another conductor was started under the host name {books.conf.host}"
        ]

    def test_a_record_that_was_deleted_is_made_again(self, office, books):
        office.manager.init_host()
        books.write(services.delete, office.me())
        office.manager._report_state()
        assert (office.me().epoch, office.failed) == (1, [])
        office.manager._report_state()
        assert office.me().report_count == 1


class TestWatch:
    def silent(self, office):
        """Tell whether h1 would be silent if service_down_time were over."""
        watched = office.manager._watch._hosts
        return sorted(watched)

    @pytest.mark.parametrize("error", [exception.BusUnavailable(), exception.DatabaseUnavailable()])
    def test_without_bus_or_database_all_watches_start_anew(self, office, books, error):
        books.register("h1")
        office.manager._watch_hosts()
        assert self.silent(office) == ["h1"]
        office.conductor.error = error
        office.manager._watch_hosts()
        assert self.silent(office) == []
        office.conductor.error = None
        office.manager._watch_hosts()
        assert self.silent(office) == ["h1"]


class TestFlows:
    @pytest.fixture
    def rounds(self):
        """The rounds of a thread whose every round waits for a word: go on, or raise this."""
        return Rounds()

    def test_what_arrives_meanwhile_goes_into_the_next_round_once(self, rounds):
        rounds.flows.drive(["a"])
        assert rounds.next() == ["a"]
        rounds.flows.drive(["b", "c"])
        rounds.flows.drive(["b"])
        rounds.go()
        assert rounds.next() == ["b", "c"]
        rounds.go()
        rounds.end()

    @pytest.mark.parametrize("error", [exception.DatabaseUnavailable(), RuntimeError("broken")])
    def test_an_error_ends_the_round_and_not_the_thread(self, rounds, error):
        rounds.flows.drive(["a"])
        assert rounds.next() == ["a"]
        rounds.go(error)
        rounds.flows.drive(["b"])
        assert rounds.next() == ["b"]
        rounds.go()
        rounds.end()

    def test_a_stop_lets_the_running_round_end(self, rounds):
        rounds.flows.drive(["a"])
        rounds.next()
        rounds.flows._queue.put(None)
        rounds.go()
        rounds.end()

    def test_started_twice_it_runs_once(self, rounds):
        thread = rounds.flows._thread
        rounds.flows.start()
        assert rounds.flows._thread is thread
        rounds.end()


class Rounds:
    def __init__(self):
        self._begun, self._words = queue.Queue(), queue.Queue()
        self.flows = Flows(self._round)
        self.flows.start()

    def _round(self, names):
        self._begun.put(names)
        word = self._words.get(timeout=30)
        if word is not None:
            raise word

    def next(self):
        return self._begun.get(timeout=30)

    def go(self, error=None):
        self._words.put(error)

    def end(self):
        self.flows.stop(30)
        assert not self.flows._thread.is_alive()


def test_reload_takes_over_lease_and_silence(office, books):
    books.conf.set_override("service_down_time", 33)
    books.conf.set_override("task_lease", 44.0, "conductor")
    office.manager.reload()
    assert office.manager._watch.service_down_time == 33.0
    assert office.manager._leases.lease == 44.0


def test_reload_renews_what_is_held(office, books, monkeypatch):
    books.conf.set_override("task_lease", 44.0, "conductor")
    renewed = []
    monkeypatch.setattr(
        office.manager._leases, "renew", lambda: renewed.append(office.manager._leases.lease)
    )
    office.manager.reload()
    assert renewed == [44.0]


def test_the_spacing_of_the_tasks_follows_the_options(office, books):
    books.conf.set_override("report_interval", 7)
    books.conf.set_override("task_renew_interval", 3.5, "conductor")
    books.conf.set_override("recovery_interval", 1.5, "conductor")
    delays = {task.name: task._delay() for task in office.manager.periodic_tasks()}
    assert delays["report_state"] == 7.0
    assert delays["renew_leases"] == 3.5
    assert delays["recovery"] == 1.5


def test_a_worker_that_does_not_lead_keeps_no_record(books):
    failed = []
    worker = ConductorManager(
        books.conf, FakeBus(books.conf), books.database, failed.append, leads=False
    )
    worker._flows = SimpleNamespace(start=lambda: None)
    worker.init_host()
    worker._report_state()
    assert books.read(services.find, books.conf.host, "nova-conductor") is None
    assert failed == []
