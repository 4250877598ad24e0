# SPDX-License-Identifier: Apache-2.0
"""Registration and report_state of a scheduler."""

from types import SimpleNamespace

from novalite import exception
from novalite.objects.build import Registration, ReportAnswer
from novalite.scheduler.heartbeat import Heartbeat


class Conductor:
    """Answers what it was told to, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def register(self, context, **kwargs):
        return self._answer("register", kwargs)

    def report_state(self, context, **kwargs):
        return self._answer("report_state", kwargs)

    def ping(self, context, **kwargs):
        return self._answer("ping", kwargs)

    def _answer(self, name, kwargs):
        self.asked.append((name, kwargs))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def make(*answers, leads=True):
    conductor, failures = Conductor(*answers), []
    conf = SimpleNamespace(host="ctl", report_interval=10)
    return Heartbeat(conf, conductor, failures.append, leads=leads), conductor, failures


def test_registers_then_reports_with_a_growing_counter():
    beat, conductor, failures = make(Registration(epoch=4), ReportAnswer(), ReportAnswer())
    assert beat.spacing() == 0.5
    for _ in range(3):
        beat.beat()
    assert beat.spacing() == 10.0
    (name, first), *reports = conductor.asked
    assert (name, first["host"], first["binary"]) == ("register", "ctl", "nova-scheduler")
    sent = [kwargs["report"] for _, kwargs in reports]
    assert [(report.epoch, report.counter) for report in sent] == [(4, 1), (4, 2)]
    assert failures == []


def test_a_conductor_that_is_not_there_yet_is_asked_again_with_more_patience():
    away = exception.BusUnavailable
    beat, conductor, _ = make(away(), away(), Registration(epoch=1), away(), ReportAnswer())
    for _ in range(5):
        beat.beat()
    assert [kwargs["timeout"] for _, kwargs in conductor.asked] == [0.5, 1.0, 1.5, 10.0, 10.0]
    assert conductor.asked[-1][1]["report"].counter == 2


def test_how_long_conductors_have_answered():
    away, moment = exception.BusUnavailable, [100.0]
    conductor = Conductor(away(), Registration(epoch=1), ReportAnswer(), away(), ReportAnswer())
    conf = SimpleNamespace(host="ctl", report_interval=10)
    beat = Heartbeat(conf, conductor, lambda reason: None, clock=lambda: moment[0])
    seen = []
    for _ in range(5):
        beat.beat()
        moment[0] += 7.0
        seen.append(beat.answered_for())
    assert seen == [0.0, 7.0, 14.0, 0.0, 7.0]


def test_a_newer_start_ends_this_one():
    beat, _, failures = make(Registration(epoch=1), ReportAnswer(retired=True))
    beat.beat()
    beat.beat()
    assert failures == ["another scheduler was started under the host name ctl"]


def test_a_refused_registration_ends_the_process():
    beat, _, failures = make(Registration(refused="no"))
    beat.beat()
    assert failures == ["no"]


def test_a_lost_row_is_made_anew():
    beat, conductor, _ = make(
        Registration(epoch=1), ReportAnswer(unknown=True), Registration(epoch=2), ReportAnswer()
    )
    for _ in range(3):
        beat.beat()
    assert [name for name, _ in conductor.asked] == [
        "register",
        "report_state",
        "register",
        "report_state",
    ]
    assert conductor.asked[-1][1]["report"].epoch == 2


def test_a_worker_that_does_not_lead_only_asks_whether_conductors_answer():
    beat, conductor, failures = make("pong", exception.BusUnavailable(), "pong", leads=False)
    assert beat.spacing() == 0.5
    beat.beat()
    assert beat.spacing() == 10.0
    assert beat.answered_for() > 0.0
    beat.beat()
    assert (beat.spacing(), beat.answered_for()) == (0.5, 0.0)
    beat.beat()
    assert [name for name, _ in conductor.asked] == ["ping"] * 3
    assert failures == []
