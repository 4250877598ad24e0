# SPDX-License-Identifier: Apache-2.0
"""What goes into which report, what is repeated, and what comes of an answer."""

import logging
import threading

import pytest

from novalite import context, exception
from novalite.compute import reporter as reporter_module
from novalite.compute import waiting
from novalite.compute.fence import Fence
from novalite.compute.reporter import LINGER, Reporter
from novalite.objects import build
from novalite.objects.action import ActionEvent
from novalite.objects.compute_node import ComputeNode
from novalite.objects.states import PowerState, Verdict
from tests.unit.compute.doubles import Clock, Conductor

CONTEXT = context.service_context().to_wire()


class Desk:
    """A reporter with a conductor that answers DONE to everything."""

    def __init__(self, conf):
        self.clock = Clock()
        self.conductor = Conductor()
        self.conductor.epoch = 7
        self.conductor._verdict = lambda item: Verdict.DONE
        self.fence = Fence(50.0, lambda: None, self.clock)
        self.fence.start(self.clock())
        self.named = []
        self.events = []
        self.reporter = Reporter(
            conf,
            self.conductor,
            self.fence,
            lambda: list(self.named),
            on_retired=lambda: self.events.append("retired"),
            on_unknown=lambda: self.events.append("unknown"),
        )
        self.reporter.begin_epoch(7)
        self.answers = []

    def ask(self, *items):
        return self.reporter.ask(*[(CONTEXT, item, self.answers.append) for item in items])

    def tell(self, item):
        self.reporter.tell(CONTEXT, item)

    def send(self, seconds=0.001):
        self.clock.advance(seconds)
        self.reporter.send()

    def carried(self):
        """Return the items of the last report that arrived."""
        return [envelope.item for envelope in self.conductor.reports[-1].items]


@pytest.fixture
def desk(make_conf):
    return Desk(make_conf())


def begin(number, **fields):
    picture = ComputeNode(host="host1", hypervisor_hostname="node1")
    return build.Begin(number, 1, f"t{number}", f"uuid{number}", "node1", {}, picture, **fields)


def finish(number, **fields):
    picture = ComputeNode(host="host1", hypervisor_hostname="node1")
    return build.Finish(number, 1, f"t{number}", f"uuid{number}", "node1", picture, **fields)


def progress(number, state, *events):
    return build.Progress(number, 1, f"t{number}", f"uuid{number}", state, events=list(events))


def picture(used):
    node = ComputeNode(host="host1", hypervisor_hostname="node1", memory_mb_used=used)
    return build.Picture(node)


def test_what_gathers_goes_together_with_epoch_counter_and_names(desk):
    desk.named.append(build.InHand(1, 1))
    desk.ask(begin(1), begin(2))
    desk.tell(picture(1))
    desk.send()
    desk.send()
    first, second = desk.conductor.reports
    assert (first.host, first.binary, first.epoch, first.counter) == (
        "host1",
        "nova-compute",
        7,
        1,
    )
    assert len(first.items) == 3 and first.in_hand == [build.InHand(1, 1)]
    assert second.counter == 2 and second.items == []
    assert [answer.verdict for answer in desk.answers] == [Verdict.DONE, Verdict.DONE]


def test_a_report_is_bounded_and_the_rest_follows_in_order(desk, monkeypatch):
    monkeypatch.setattr(desk.reporter, "_limit", 3)
    monkeypatch.setattr(reporter_module, "BATCH", 3)
    desk.ask(*[begin(n) for n in range(7)])
    for _ in range(3):
        desk.send()
    carried = [[e.item.action_id for e in report.items] for report in desk.conductor.reports]
    assert carried == [[0, 1, 2], [3, 4, 5], [6]]


@pytest.mark.parametrize("fault", ["lost", "reply", "error"])
def test_a_failed_report_is_repeated_with_the_same_items_in_order(desk, fault):
    desk.tell(progress(3, "spawning"))
    desk.ask(finish(1), begin(2))
    desk.conductor.faults.append(fault)
    real = desk.conductor.report_state

    def meanwhile(*args, **kwargs):
        desk.conductor.report_state = real
        desk.ask(begin(4))
        return real(*args, **kwargs)

    desk.conductor.report_state = meanwhile
    desk.send()
    assert desk.answers == []
    desk.conductor.reports.clear()
    for _ in range(4):
        desk.send(1.0)
    order = [(type(item).__name__, item.action_id) for item in desk.conductor.items()]
    assert order == [("Progress", 3), ("Finish", 1), ("Begin", 2), ("Begin", 4)]
    assert len(desk.answers) == 3


def test_an_item_that_fails_waits_while_the_others_go_on(desk):
    desk.conductor.item_errors["Begin"] = 1
    desk.ask(begin(1), finish(2))
    desk.send()
    assert [answer.verdict for answer in desk.answers] == [Verdict.DONE]
    desk.ask(finish(3))
    desk.send(0.01)
    assert [item.action_id for item in desk.carried()] == [3], "back-off"
    desk.send(1.0)
    assert [item.action_id for item in desk.carried()] == [1]
    assert len(desk.answers) == 3


def test_an_item_without_an_answer_is_asked_again(desk):
    desk.conductor._answer = lambda report: build.ReportAnswer()
    desk.ask(begin(1))
    desk.send()
    del desk.conductor._answer
    desk.send(1.0)
    assert len(desk.answers) == 1


def test_what_the_conductor_cannot_bear_is_found_and_the_rest_gets_through(desk):
    def report_state(context, *, report, timeout):
        if any(e.item.action_id == 5 for e in report.items):
            raise RuntimeError("cannot be stored")
        return Conductor.report_state(desk.conductor, context, report=report, timeout=timeout)

    desk.reporter._conductor = type("C", (), {"report_state": staticmethod(report_state)})()
    desk.ask(*[begin(n) for n in range(10)])
    for _ in range(60):
        desk.send(1.0)
    assert len(desk.answers) == 9
    # Heartbeats come through all the time in spite of it.
    assert not desk.fence.is_closed()


def test_losing_and_finding_the_conductor_is_one_line_each(desk, caplog):
    caplog.set_level(logging.INFO)
    desk.conductor.faults.extend(["lost"] * 5)
    for _ in range(7):
        desk.send(1.0)
    lines = [(r.levelname, r.getMessage()) for r in caplog.records]
    assert lines == [
        ("WARNING", "The conductor does not answer (BusUnavailable); reports are repeated"),
        ("INFO", "The conductor answers again after 5 failed reports"),
    ]
    assert all(record.exc_info is None for record in caplog.records)


def test_calls_are_bounded_by_the_report_interval(desk):
    timeouts = []

    def report_state(context, *, report, timeout):
        timeouts.append(timeout)
        return build.ReportAnswer()

    desk.conductor.report_state = report_state
    desk.send()
    assert timeouts == [10.0]


def test_progress_that_waits_is_one_item_and_the_finish_takes_it_along(desk):
    started = ActionEvent("compute_spawn", start=1.0)
    ended = ActionEvent("compute_spawn", start=1.0, finish=2.0)
    network = ActionEvent("compute_network", start=0.5, finish=1.0)
    desk.tell(progress(1, "networking", network))
    desk.tell(progress(1, "spawning", started))
    desk.tell(progress(2, "networking"))
    desk.ask(finish(1, events=[ended]))
    desk.send()
    assert [type(item).__name__ for item in desk.carried()] == ["Progress", "Finish"]
    assert desk.carried()[0].action_id == 2
    assert {e.event: e.finish for e in desk.carried()[1].events} == {
        "compute_network": 1.0,
        "compute_spawn": 2.0,
    }


def test_joined_progress_keeps_the_latest_of_everything(desk):
    first = progress(1, "networking", ActionEvent("a", start=1.0))
    first.network_info = []
    desk.tell(first)
    desk.tell(progress(1, "spawning", ActionEvent("b", start=2.0)))
    desk.tell(progress(1, None))
    desk.send()
    [item] = desk.carried()
    assert (item.task_state, item.network_info) == ("spawning", [])
    assert [event.event for event in item.events] == ["a", "b"]


def test_of_pictures_and_power_states_the_newest_goes(desk):
    desk.tell(picture(1))
    desk.tell(build.PowerReport("uuid1", "node1", PowerState.RUNNING))
    desk.tell(picture(2))
    desk.tell(build.PowerReport("uuid1", "node1", PowerState.SHUTDOWN))
    desk.send()
    assert desk.carried()[0].picture.memory_mb_used == 2
    assert desk.carried()[1].power_state is PowerState.SHUTDOWN
    assert len(desk.carried()) == 2


def test_a_newer_tell_wins_over_one_that_a_lost_report_carried(desk):
    desk.tell(picture(1))
    desk.conductor.faults.append("lost")
    desk.conductor.report_state, real = (
        lambda *a, **k: (desk.tell(picture(2)), real(*a, **k))[1],
        desk.conductor.report_state,
    )
    desk.send()
    desk.conductor.report_state = real
    desk.send(1.0)
    assert [item.picture.memory_mb_used for item in desk.carried()] == [2]


def test_too_many_tells_drop_the_oldest(desk, monkeypatch):
    monkeypatch.setattr(waiting, "MAX_TELLS", 3)
    for number in range(5):
        desk.tell(build.PowerReport(f"uuid{number}", "node1", PowerState.RUNNING))
    desk.send()
    assert [item.instance_uuid for item in desk.carried()] == ["uuid2", "uuid3", "uuid4"]


def test_an_ask_must_not_be_told(desk):
    with pytest.raises(TypeError, match="Begin must be asked"):
        desk.tell(begin(1))


def test_a_withdrawn_item_is_neither_sent_nor_answered(desk):
    [ticket, _] = desk.ask(begin(1), begin(2))
    desk.reporter.withdraw(ticket)
    desk.send()
    assert [item.action_id for item in desk.carried()] == [2]
    [ticket] = desk.ask(begin(3))
    desk.conductor.in_flight = lambda report: desk.reporter.withdraw(ticket)
    desk.send()
    assert len(desk.answers) == 1


def test_only_what_no_report_carried_can_be_withdrawn_as_unsent(desk):
    [ticket] = desk.ask(finish(1))
    desk.conductor.faults.append("lost")
    desk.send()
    assert not desk.reporter.withdraw_unsent(ticket)
    [ticket] = desk.ask(finish(2))
    assert desk.reporter.withdraw_unsent(ticket)


def test_a_retired_process_reports_no_more(desk):
    desk.conductor.retired = True
    desk.ask(begin(1))
    desk.send()
    assert desk.events == ["retired"] and desk.answers == []
    assert not desk.reporter._wait()


def test_an_unknown_service_registers_and_its_items_go_out_then(desk):
    desk.conductor.unknown = True
    desk.ask(begin(1))
    desk.send()
    assert desk.events == ["unknown"] and desk.answers == []
    desk.conductor.unknown = False
    desk.send()
    assert len(desk.answers) == 1


def test_who_takes_an_answer_badly_does_not_stop_the_reporter(desk):
    def fail(answer):
        raise RuntimeError("no")

    desk.reporter.ask((CONTEXT, begin(1), fail))
    desk.ask(begin(2))
    desk.send()
    assert len(desk.answers) == 1


def test_a_broken_surrounding_is_survived(desk):
    def fail():
        raise RuntimeError("no")

    desk.reporter._in_hand = fail
    desk.send()
    desk.reporter._in_hand = list
    desk.ask(begin(1))
    desk.send(1.0)
    assert len(desk.answers) == 1


def test_the_moment_of_the_next_report(desk):
    reporter, clock = desk.reporter, desk.clock
    desk.send()
    assert reporter._next_at() == clock() + 10.0, "a heartbeat"
    desk.tell(picture(1))
    assert reporter._next_at() == pytest.approx(clock() + LINGER), "a tell waits for company"
    desk.ask(begin(1))
    assert reporter._next_at() <= clock(), "somebody waits"
    desk.conductor.faults.append("lost")
    desk.send()
    assert clock() < reporter._next_at() <= clock() + reporter_module.FIRST_BACKOFF
    desk.fence.acknowledge(clock())


def test_its_thread_sends_at_once_and_one_report_at_a_time(make_conf):
    desk = Desk(make_conf())
    fence = Fence(50.0, lambda: None)
    fence.start(fence.clock())
    desk.reporter._fence, desk.reporter._clock = fence, fence.clock
    at_work, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def in_flight(report):
        at_work.set()
        assert go_on.wait(10.0)

    desk.conductor.in_flight = in_flight
    desk.reporter.start()
    assert at_work.wait(10.0), "the first report goes at once"
    for number in range(5):
        desk.reporter.ask((CONTEXT, begin(number), lambda answer: done.set()))
    go_on.set()
    assert done.wait(10.0)
    assert len(desk.conductor.reports) == 2
    assert len(desk.conductor.reports[1].items) == 5
    desk.reporter.stop()
    assert not desk.reporter._thread.is_alive()


def test_a_lost_answer_is_bus_unavailable_for_the_double_too():
    conductor = Conductor()
    conductor.faults.append("lost")
    with pytest.raises(exception.BusUnavailable):
        conductor.report_state(None, report=None, timeout=1.0)


def test_a_crowd_gathers_for_the_next_report(desk):
    reporter, clock = desk.reporter, desk.clock
    desk.ask(begin(1))
    desk.send()
    desk.ask(begin(2), begin(3))
    assert reporter._next_at() <= clock(), "the last report had one item"
    desk.send()
    desk.ask(begin(4))
    assert reporter._next_at() == pytest.approx(clock() + reporter_module.SPACING)
