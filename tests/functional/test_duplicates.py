# SPDX-License-Identifier: Apache-2.0
"""V17: messages that come twice, at once, late or at another process."""

import pytest

from tests.functional import faults
from tests.functional.cloud import Cloud
from tests.functional.tap import Tap
from tests.functional.waiting import eventually

pytestmark = pytest.mark.drill

HOST = "compute1"
IGNORED = "The message for attempt 1 is ignored: it is in hand"
FINISHED = "Attempt 1 is DROP: this attempt has finished here"


@pytest.fixture
def cloud(standing: Cloud) -> Cloud:
    """The standing cloud with one host in use."""
    faults.enable(standing, "compute2", False)
    return standing


def assert_one(cloud: Cloud, uuid: str, table: faults.Table, point: str) -> None:
    """One ACTIVE server with one guest, counted once."""
    cloud.api.wait(uuid)
    books = cloud.assert_books()
    assert books.guests[HOST] == [uuid]
    table.add(point, "ACTIVE, one guest")


def test_a_build_message_at_once(cloud: Cloud, table: faults.Table) -> None:
    before = len(cloud.grep(HOST, IGNORED))
    faults.play(cloud, HOST, spawn_delay=1)
    with Tap(cloud.transport_url, f"compute.{HOST}") as tap:
        uuid = cloud.api.boot()
        sent = tap.wait("build_and_run_instances")
        # The library knows the first by its id; the second one only the state can tell.
        tap.send(sent, sent.renewed())
        eventually(lambda: len(cloud.grep(HOST, IGNORED)) > before)
    assert_one(cloud, uuid, table, "build message again, at once")
    assert len(cloud.grep(HOST, f"{uuid}.*{IGNORED}")) == 1


def test_a_build_message_to_a_finished_build(cloud: Cloud, table: faults.Table) -> None:
    with Tap(cloud.transport_url, f"compute.{HOST}") as tap:
        uuid = cloud.api.boot()
        sent = tap.wait("build_and_run_instances")
        cloud.api.wait(uuid)
        tap.send(sent.renewed())
        cloud.wait_log(HOST, f"{uuid}.*{FINISHED}")
        assert_one(cloud, uuid, table, "build message again, after the build")
        cloud.kill(HOST)
        cloud.start(HOST)
        tap.send(sent.renewed())
        eventually(lambda: len(cloud.grep(HOST, f"{uuid}.*{FINISHED}")) == 2)
    assert_one(cloud, uuid, table, "build message again, after a restart")
    assert faults.action(cloud, uuid)["attempt"] == 1


def test_many_build_messages_together(cloud: Cloud, table: faults.Table) -> None:
    cloud.pause(HOST)
    with Tap(cloud.transport_url, f"compute.{HOST}") as tap:
        uuid = cloud.api.boot()
        sent = tap.wait("build_and_run_instances")
        tap.send(*[sent.renewed() for _ in range(5)])
        cloud.resume(HOST)
        cloud.api.wait(uuid)
        eventually(lambda: len(cloud.grep(HOST, f"{uuid}.*({IGNORED}|{FINISHED})")) == 5)
    assert_one(cloud, uuid, table, "six build messages together")


def test_a_build_message_to_a_deleted_server(cloud: Cloud, table: faults.Table) -> None:
    with Tap(cloud.transport_url, f"compute.{HOST}") as tap:
        uuid = cloud.api.boot()
        sent = tap.wait("build_and_run_instances")
        cloud.api.wait(uuid)
        cloud.api.delete(uuid)
        cloud.api.wait_gone(uuid)
        tap.send(sent.renewed())
        cloud.wait_log(HOST, f"{uuid}.*Attempt 1 is SUPERSEDED: the server is deleted")
    cloud.assert_books()
    table.add("build message again, after a delete", "gone")


def test_a_wake_up_at_another_conductor(cloud: Cloud, table: faults.Table) -> None:
    faults.play(cloud, HOST, spawn_delay=0.5)
    keys = [f"conductor_tasks.{host}" for host in ("controller1", "controller2")]
    with Tap(cloud.transport_url, "conductor_tasks", f"compute.{HOST}") as tap:
        uuid = cloud.api.boot()
        sent = tap.wait("run_reservations")
        tap.send(*[sent.renewed(key) for key in keys for _ in range(5)])
        assert_one(cloud, uuid, table, "wake-up again, at two conductors")
        tap.send(*[sent.renewed(key) for key in keys])
        cloud.api.wait(cloud.api.boot("next"))
        builds = [each for each in tap.heard() if each.method == "build_and_run_instances"]
    assert len(builds) == 2
    assert faults.action(cloud, uuid)["attempt"] == 1


def test_v06_the_wake_up_of_a_failing_build(cloud: Cloud, table: faults.Table) -> None:
    """Whoever repeats it knows neither attempt nor failures; the row does."""
    faults.enable(cloud, "compute2")
    faults.play(cloud, *faults.COMPUTES, fail_spawn=1, spawn_delay=0.3)
    keys = [f"conductor_tasks.{host}" for host in ("controller1", "controller2")]
    hosts = [f"compute.{host}" for host in faults.COMPUTES]
    with Tap(cloud.transport_url, "conductor_tasks", *hosts) as tap:
        uuid = cloud.api.boot()
        sent = tap.wait("run_reservations")
        for _ in range(5):
            tap.send(*[sent.renewed(key) for key in keys])
        server = cloud.api.wait(uuid, "ERROR")
        tap.send(*[sent.renewed(key) for key in keys])
        faults.play(cloud, *faults.COMPUTES, fail_spawn=0)
        cloud.api.wait(cloud.api.boot("next"))
        builds = [each for each in tap.heard() if each.method == "build_and_run_instances"]
    assert server["fault"]["code"] == 500
    # One build on each host, and the one that was asked for later.
    assert len(builds) == len(faults.COMPUTES) + 1
    row = faults.action(cloud, uuid)
    assert (row["attempt"], row["state"]) == (2, "error")
    cloud.assert_books()
    table.add("wake-up of a failing build again", "ERROR, no guest")


def test_reports_that_come_again(cloud: Cloud, table: faults.Table) -> None:
    """Begin, progress, finish and gone, in their order and backwards, to any conductor."""
    with Tap(cloud.transport_url, "conductor") as tap:
        uuid = cloud.api.boot()
        cloud.api.wait(uuid)
        other = cloud.api.boot("other")
        cloud.api.wait(other)
        cloud.api.delete(other)
        cloud.api.wait_gone(other)
        reports = [sent for sent in tap.heard() if sent.method == "report_state"]
        again = [sent.renewed() for sent in [*reports, *reversed(reports)]]
        tap.send(*again)
        # They are behind all of them, whichever conductor has taken them.
        for name in ("before", "after"):
            cloud.api.wait(cloud.api.boot(name))
        cloud.api.wait_gone(other)
    assert all(cloud.alive(name) for name in cloud.names)
    books = cloud.assert_books()
    assert uuid in books.guests[HOST] and other not in books.guests[HOST]
    assert faults.action(cloud, uuid)["state"] == "done"
    table.add("all reports again", "ACTIVE, one guest")


@pytest.mark.parametrize("point", ["conductor.after_begin", "conductor.after_finish"])
def test_an_answer_that_is_lost(cloud: Cloud, table: faults.Table, point: str) -> None:
    """The transaction is there, its answer is not; whoever takes the question again knows."""
    faults.arm(cloud, point, *faults.CONDUCTORS)
    uuid = cloud.api.boot()
    eventually(lambda: not all(map(cloud.alive, faults.CONDUCTORS)), what="one has died")
    assert_one(cloud, uuid, table, f"answer lost, {point}")
    assert faults.action(cloud, uuid)["attempt"] == 1
