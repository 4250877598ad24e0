# SPDX-License-Identifier: Apache-2.0
"""More calls than a conductor can answer, and askers that have gone: the living are answered.

V15: answers to a process that was killed starve nobody. V18: a late answer is given to nobody else.
The conductor is slow because its database is locked.
"""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager

import kombu
import pytest

from novalite import context as context_module
from novalite.intake import TASKS_PER_THREAD
from tests.functional import callers, faults
from tests.functional.callers import Caller
from tests.functional.cloud import Cloud
from tests.functional.tap import Tap
from tests.functional.waiting import eventually

pytestmark = pytest.mark.bus

Make = Callable[..., Cloud]
THREADS, PREFETCH = 8, 16
# Seconds until a missing reply queue means that who asked has gone.
PATIENCE = 3
CONFIG = {
    "DEFAULT": {"debug": True, "default_log_levels": "amqp=WARNING"},
    "oslo_messaging_rabbit": {"kombu_missing_consumer_retry_timeout": PATIENCE},
}
STARTED = r"Receive incoming message with id \w+ and method: report_state"
THROWN = r"WARNING oslo_messaging.*reply_\w+ doesn't exist, drop reply"


@contextmanager
def throw_away(cloud: Cloud, count: int, timeout: float) -> Iterator[subprocess.Popen[str]]:
    """Let another process call; yield it when all its calls are out."""
    line = [sys.executable, "-m", callers.__name__, cloud.transport_url, str(count), str(timeout)]
    with Tap(cloud.transport_url, "conductor") as tap:
        process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        try:
            eventually(
                lambda: sum(callers.HOST.encode() in sent.body for sent in tap.heard()) >= count,
                60.0,
                f"{count} calls are out",
            )
            yield process
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def lines(process: subprocess.Popen[str]) -> list[str]:
    """Return what a process has printed until its end."""
    assert process.stdout is not None
    process.wait(60.0)
    return process.stdout.read().splitlines()


def waiting(cloud: Cloud, queue: str = "conductor") -> int:
    """Return the number of messages that the broker keeps in a queue."""
    url = cloud.transport_url.replace("rabbit://", "amqp://", 1)
    with kombu.Connection(url) as connection:
        channel = connection.channel()
        return int(channel.queue_declare(queue, passive=True).message_count)


@pytest.fixture(scope="class")
def conductor(make_class_cloud: Make) -> Cloud:
    """A cloud of a conductor that nobody else talks to."""
    return make_class_cloud(computes=0, schedulers=0, api=False, config=CONFIG)


class TestOverload:
    """A conductor gets more calls than it can answer."""

    def test_calls_whose_callers_gave_up_are_not_carried_out(self, conductor: Cloud) -> None:
        count, timeout = 300, 1.0
        with Caller(conductor.transport_url) as caller:
            # The connections are there before the clock runs.
            assert caller.report(10.0)[0] == "unknown"
            before = len(conductor.grep("conductor", STARTED))
            with faults.locked(conductor), throw_away(conductor, count, timeout) as process:
                assert lines(process)[-1] == str({"none": count})
            how, seconds = caller.report(timeout)
            assert (how, seconds < timeout) == ("unknown", True), (how, seconds)
            eventually(lambda: waiting(conductor) == 0, what="nothing is left of it")
        # Those that had begun when the conductor got slow, and the last call.
        started = len(conductor.grep("conductor", STARTED)) - before
        assert started <= THREADS + 1
        assert conductor.grep("conductor", r"conductor: \d+ calls waited too long")

    def test_v15_answers_for_who_has_gone_starve_nobody(self, conductor: Cloud) -> None:
        count = 40
        with Caller(conductor.transport_url) as caller:
            assert caller.report(10.0)[0] == "unknown"
            before = len(conductor.grep("conductor", STARTED))
            with faults.locked(conductor), throw_away(conductor, count, 60.0) as process:
                assert process.stdout is not None
                queue = process.stdout.readline().strip()
                process.kill()
                # As after a restart of the broker, or half an hour later.
                url = conductor.transport_url.replace("rabbit://", "amqp://", 1)
                with kombu.Connection(url) as connection:
                    connection.channel().queue_delete(queue)
            ends = caller.reports(20, 5.0)
            assert {how for how, _ in ends} == {"unknown"}, ends
            eventually(
                lambda: len(conductor.grep("conductor", THROWN)) == count,
                PATIENCE + 10.0,
                "each answer to nobody is given up",
            )
            assert len(conductor.grep("conductor", STARTED)) - before == count + 20
            assert not conductor.grep("conductor", "Traceback|ERROR")

    def test_v18_a_late_answer_is_given_to_nobody_else(
        self, conductor: Cloud, caplog: pytest.LogCaptureFixture
    ) -> None:
        context = context_module.service_context()
        with Caller(conductor.transport_url) as caller, futures.ThreadPoolExecutor(1) as pool:
            caplog.set_level(logging.INFO)
            with faults.locked(conductor):
                assert caller.report(1.0)[0] == "none"
                second = pool.submit(caller.report, 10.0)
                # The answers to both will come into the queue in which this one comes.
                assert caller.conductor.ping(context, timeout=10.0) == "pong"
            assert second.result(10.0)[0] == "unknown"
            late = f"in {caller.reply_queue} came too late and is thrown away"
            eventually(lambda: late in caplog.text, what="the late answer is named")

    def test_no_more_is_taken_than_can_be_in_hand(self, conductor: Cloud) -> None:
        count = 64
        with faults.locked(conductor), throw_away(conductor, count, 30.0):
            in_hand = TASKS_PER_THREAD * THREADS
            least = count - in_hand - PREFETCH
            eventually(lambda: waiting(conductor) >= least, what="the broker keeps the others")
            assert waiting(conductor) <= count - in_hand
            # With its hands full it can be stopped, and leaves the others to who comes next.
            conductor.stop("conductor")
            # The conductor's own calls to itself may be among them.
            assert waiting(conductor) >= count - in_hand
        conductor.start("conductor")
        eventually(lambda: waiting(conductor) == 0, what="they are taken")
