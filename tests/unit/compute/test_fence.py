# SPDX-License-Identifier: Apache-2.0
"""The fence's own rules, and what a fall does to builds at every stage (rule 9)."""

import threading

import pytest

from novalite import exception
from novalite.compute import fence as fence_module
from novalite.compute.fence import Fence
from novalite.compute.hand import Stage
from novalite.objects import build
from tests.unit.compute.conftest import again, destroy_for, request_for
from tests.unit.compute.doubles import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def fence(clock):
    fence = Fence(50.0, lambda: None, clock)
    fence.start(clock())
    return fence


def test_it_falls_after_the_limit_and_not_at_it(fence, clock):
    clock.advance(50.0)
    assert not fence.is_closed()
    clock.advance(0.1)
    assert fence.is_closed() and fence.falls == 1


def test_it_keeps_no_time_before_the_registration(clock):
    fence = Fence(50.0, lambda: None, clock)
    clock.advance(1000.0)
    assert not fence.is_closed()


def test_time_counts_from_the_sending_of_what_was_acknowledged(fence, clock):
    sent_at = clock()
    clock.advance(40.0)
    assert fence.acknowledge(sent_at)
    clock.advance(10.5)
    assert fence.is_closed()


def test_only_a_report_sent_after_the_fall_lifts_it(fence, clock):
    clock.advance(45.0)
    sent_before = clock()
    clock.advance(10.0)
    assert not fence.acknowledge(sent_before), "it fell while the report was on its way"
    assert fence.is_closed()
    clock.advance(1.0)
    assert fence.acknowledge(clock())
    assert not fence.is_closed() and fence.falls == 1


def test_an_answer_that_comes_too_late_is_not_used_though_nobody_had_looked(fence, clock):
    sent_at = clock()
    clock.advance(1000.0)
    assert not fence.acknowledge(sent_at)
    assert fence.falls == 1


def test_nothing_lifts_one_that_is_closed_for_good(fence, clock):
    fence.close_for_good()
    clock.advance(1.0)
    assert not fence.acknowledge(clock())
    assert fence.is_closed()


def test_the_passage_is_shut_while_down_and_after_a_fall(fence, clock):
    with fence.passage(0) as is_open:
        assert is_open
    clock.advance(51.0)
    with fence.passage(0) as is_open:
        assert not is_open
    clock.advance(1.0)
    fence.acknowledge(clock())
    with fence.passage(0) as is_open:
        assert not is_open, "it has fallen since"
    with fence.passage(1) as is_open:
        assert is_open


def test_a_fall_inside_the_passage_is_attended_to_again_behind_it(clock):
    seen = []
    fence = Fence(50.0, lambda: seen.append(1), clock)
    fence.start(clock())
    with fence.passage(0):
        clock.advance(51.0)
        assert fence.is_closed()
        fence.attend()
    assert len(seen) == 1
    fence.attend()
    assert len(seen) == 2
    fence.attend()
    assert len(seen) == 2


def test_an_error_in_the_care_for_guests_is_survived(clock):
    def fail():
        raise RuntimeError("no hypervisor")

    fence = Fence(50.0, fail, clock)
    fence.start(clock())
    clock.advance(51.0)
    assert fence.is_closed()
    fence.attend()


def test_its_thread_tries_again_what_failed(monkeypatch):
    monkeypatch.setattr(fence_module, "RETRY", 0.01)
    tries, done = [], threading.Event()

    def fail_twice():
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("no hypervisor")
        done.set()

    fence = Fence(0.02, fail_twice)
    fence.start(fence.clock())
    fence.run()
    assert done.wait(10.0)
    fence.stop()


def test_its_thread_attends_when_the_time_is_over():
    fallen = threading.Event()
    fence = Fence(0.02, fallen.set)
    fence.start(fence.clock())
    fence.run()
    assert fallen.wait(10.0)
    fence.stop()


# What it does to builds


def started(world, **options):
    request = request_for(**options)
    world.manager.build_and_run_instances([request])
    return request


def asks_finish(world):
    """Return a build whose guest runs and whose finish waits for a report."""
    request = started(world)
    world.report()
    world.host.builds.run()
    return request


def test_while_it_is_down_nothing_starts_and_only_heartbeats_go_out(world):
    request = started(world)
    world.fence()
    world.conductor.faults.append("lost")
    world.report()
    count = len(world.conductor.items(build.Begin))
    assert count == 0
    world.report()
    assert world.conductor.reports[-1].items == []
    world.settle()
    assert request.instance.uuid in world.driver.running()


def test_go_answered_to_a_report_from_before_the_fall_is_not_used(world):
    request = started(world)

    def fall(_report):
        world.conductor.in_flight = lambda _: None
        world.fence()

    world.conductor.in_flight = fall
    world.report()
    assert world.work() == 0, "the GO must not start anything"
    world.settle()
    tokens = {item.token for item in world.conductor.items(build.Begin)}
    assert len(world.conductor.items(build.Begin)) == 2 and len(tokens) == 1
    assert request.instance.uuid in world.driver.running()


def test_a_build_that_waits_for_its_slot_asks_begin_again(world):
    request = started(world)
    world.driver.add(request.instance.uuid, action_id=request.action_id)
    world.report()
    world.fence()
    world.host.builds.run()
    assert world.driver.calls == [] and world.driver.destroyed == []
    assert world.hand.find(request.instance.uuid, request.action_id, 1).stage is Stage.CLAIMED
    # It has begun, so it is named all the time.
    world.report()
    assert len(world.conductor.reports[-1].in_hand) == 1
    world.settle()
    assert request.instance.uuid in world.driver.running()


@pytest.mark.parametrize("hook", ["during_spawn", "after_spawn", "before_resume"])
def test_a_spawn_that_a_fall_meets_does_not_run(world, hook):
    request = started(world)
    uuid = request.instance.uuid

    def fall(_):
        setattr(world.driver, hook, lambda _: None)
        world.fence()
        if hook != "before_resume":
            assert uuid not in world.driver.running()

    setattr(world.driver, hook, fall)
    world.report()
    world.host.builds.run()
    world.host.fence.attend()
    world.host.ends.run()
    assert uuid not in world.driver.running()
    assert world.conductor.items(build.Finish) == []
    world.settle()
    assert uuid in world.driver.running()
    assert len(world.driver.calls) == 2, "it was built anew"
    assert len({item.token for item in world.conductor.items(build.Begin)}) == 1


def test_a_fall_and_a_lift_during_the_spawn_still_stop_it(world):
    request = started(world)

    def fall(_):
        world.driver.during_spawn = lambda _: None
        world.fence()
        world.report()
        assert not world.host.fence.is_closed()

    world.driver.during_spawn = fall
    world.report()
    world.host.builds.run()
    assert world.driver.guests == {}
    world.settle()
    assert request.instance.uuid in world.driver.running()


def test_a_guest_whose_finish_was_never_sent_is_destroyed(world):
    request = asks_finish(world)
    uuid = request.instance.uuid
    assert uuid in world.driver.running()
    world.fence()
    world.host.ends.run()
    assert world.driver.guests == {}
    world.settle()
    assert uuid in world.driver.running()
    assert len(world.conductor.items(build.Begin)) == 2
    assert len(world.conductor.items(build.Finish)) == 1


def finish_unanswered(world):
    """Return a build whose finish was sent and whose answer is unknown when the fence falls."""
    request = asks_finish(world)
    world.conductor.faults.append("lost")
    world.report()
    world.fence()
    world.host.ends.run()
    return request


def test_a_guest_whose_finish_is_unanswered_is_paused_and_then_runs_again(world):
    request = finish_unanswered(world)
    guest = world.driver.guests[request.instance.uuid]
    assert world.driver.running() == set()
    assert guest.metadata.paused_by_fence and not guest.metadata.done
    world.settle()
    assert world.driver.running() == {request.instance.uuid}
    assert guest is world.driver.guests[request.instance.uuid], "the same guest, not a new one"
    metadata = world.driver.guests[request.instance.uuid].metadata
    assert metadata.done and not metadata.paused_by_fence


def test_a_guest_whose_finish_is_superseded_behind_the_fence_is_destroyed(world):
    request = finish_unanswered(world)
    world.conductor.rows[request.action_id].attempt = 2
    world.settle()
    assert world.driver.guests == {}
    assert world.books().memory_mb_used == 512


def test_done_answered_to_a_report_from_before_the_fall_is_asked_again(world):
    request = asks_finish(world)

    def fall(_report):
        world.conductor.in_flight = lambda _: None
        world.fence()

    world.conductor.in_flight = fall
    world.report()
    world.host.ends.run()
    assert world.driver.running() == set()
    assert not world.driver.guests[request.instance.uuid].metadata.done
    world.settle()
    assert world.driver.running() == {request.instance.uuid}
    assert len(world.conductor.items(build.Finish)) == 2


def test_servers_run_on(world):
    request = request_for()
    world.boot(request)
    world.fence()
    world.host.ends.run()
    assert world.driver.running() == {request.instance.uuid}


def test_a_finish_that_is_answered_just_before_the_fall_stands(world):
    request = asks_finish(world)
    world.report()
    # DONE is known, but not yet written into the guest.
    world.fence()
    assert world.driver.running() == {request.instance.uuid}
    world.settle()
    assert world.driver.running() == {request.instance.uuid}


def test_a_guest_that_becomes_a_servers_while_the_fence_looks_is_left_alone(world, monkeypatch):
    request = asks_finish(world)
    seen = world.driver.list_guests()
    world.settle()
    monkeypatch.setattr(world.driver, "list_guests", lambda: seen)
    world.fence()
    assert world.driver.running() == {request.instance.uuid}


def test_unfinished_is_read_from_the_guests_not_from_memory(world):
    request = request_for()
    world.driver.add(request.instance.uuid, action_id=request.action_id)
    world.fence()
    assert world.driver.running() == set()
    world.boot(request)
    assert world.driver.running() == {request.instance.uuid}
    assert not world.driver.guests[request.instance.uuid].metadata.paused_by_fence


def test_a_failure_waits_for_the_lift(world):
    world.driver.fail_spawn = exception.HypervisorError(reason="x")
    request = started(world)
    world.report()
    world.host.builds.run()
    world.fence()
    world.report()
    assert world.conductor.items(build.Finish) == []
    world.settle()
    assert world.conductor.rows[request.action_id].failures == ["Hypervisor error: x"]


def test_a_delete_is_done_behind_the_fence_and_told_after_it(world):
    request = request_for()
    world.boot(request)
    world.fence()
    world.manager.destroy_instances([destroy_for(request, action_id=9)])
    world.host.deletes.run()
    assert world.driver.guests == {}
    world.settle()
    assert len(world.conductor.items(build.Gone)) == 1


def test_a_guest_that_cannot_be_paused_does_not_hide_the_others(world, monkeypatch):
    first, second = started(world), started(world)
    world.report()
    world.host.builds.run()
    world.conductor.faults.append("lost")
    world.report()
    pause = world.driver.pause_guest

    def fail_once(uuid, by_fence):
        monkeypatch.setattr(world.driver, "pause_guest", pause)
        raise exception.HypervisorError(reason="busy")

    monkeypatch.setattr(world.driver, "pause_guest", fail_once)
    world.fence()
    assert len(world.driver.running()) == 1
    assert world.host.fence._failed
    world.settle()
    assert world.driver.running() == {first.instance.uuid, second.instance.uuid}


def test_a_second_delivery_behind_the_fence_is_ignored(world):
    request = finish_unanswered(world)
    world.manager.build_and_run_instances([again(request)])
    world.settle()
    assert len(world.driver.calls) == 1


class TestAnotherLimit:
    def test_a_longer_one_holds_at_once(self):
        clock = Clock()
        fence = Fence(10.0, lambda: None, clock)
        fence.start(clock())
        fence.configure(20.0)
        clock.advance(19.0)
        assert not fence.is_closed()
        clock.advance(2.0)
        assert fence.is_closed()

    def test_a_shorter_one_holds_from_the_next_acknowledgement(self):
        clock = Clock()
        fence = Fence(50.0, lambda: None, clock)
        fence.start(clock())
        clock.advance(9.0)
        fence.configure(3.0)
        assert not fence.is_closed()
        sent_at = clock()
        assert fence.acknowledge(sent_at)
        assert fence.limit == 3.0
        clock.advance(2.9)
        assert not fence.is_closed()
        clock.advance(0.2)
        assert fence.is_closed()

    def test_until_then_the_former_one_holds(self):
        clock = Clock()
        fence = Fence(50.0, lambda: None, clock)
        fence.start(clock())
        fence.configure(3.0)
        clock.advance(51.0)
        assert fence.is_closed()

    def test_the_former_one_comes_back(self):
        clock = Clock()
        fence = Fence(50.0, lambda: None, clock)
        fence.start(clock())
        fence.configure(3.0)
        fence.configure(50.0)
        assert fence.acknowledge(clock())
        assert fence.limit == 50.0
