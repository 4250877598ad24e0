# SPDX-License-Identifier: Apache-2.0
"""The flow of one build and every way in which it can leave that flow."""

import logging

import pytest

from novalite import exception
from novalite.compute.hand import Stage
from novalite.objects import build
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import Generation, Limits
from novalite.objects.states import PowerState
from tests.unit.compute.conftest import PRIVATE, again, destroy_for, request_for
from tests.unit.compute.doubles import Row


def one(world, request):
    return world.hand.find(request.instance.uuid, request.action_id, request.attempt)


def test_a_build_runs_from_its_message_to_active(world):
    request = request_for(networks=[PRIVATE])
    world.boot(request)

    uuid = request.instance.uuid
    guest = world.driver.guests[uuid]
    assert guest.power_state is PowerState.RUNNING
    assert guest.metadata.done and guest.metadata.attempt == 1
    assert world.conductor.rows[request.action_id].active
    [begin] = world.conductor.items(build.Begin)
    assert begin.resources == {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
    assert begin.picture.memory_mb_used == 512 + 512
    assert begin.event.event == "compute_claim" and begin.event.result == "Success"
    assert begin.event.details["memory"]["requested"] == 512
    [finish] = world.conductor.items(build.Finish)
    assert finish.power_state is PowerState.RUNNING
    assert finish.root_device_name == "/dev/vda"
    assert [info.network_id for info in finish.network_info] == ["private"]
    assert finish.launched_at is not None and finish.fault is None
    assert finish.token == begin.token
    assert (begin.picture.current_workload, finish.picture.current_workload) == (1, 0)
    assert {event.event: event.result for event in finish.events} == {
        "compute__do_build_and_run_instance": "Success",
        "compute_network": "Success",
        "compute_spawn": "Success",
    }
    assert world.books().memory_mb_used == 1024
    assert world.hand.wait_idle(0)


def test_nothing_is_touched_before_go(world):
    request = request_for()
    world.driver.add(request.instance.uuid, action_id=request.action_id)
    world.manager.build_and_run_instances([request])
    assert world.work() == 0
    assert request.instance.uuid in world.driver.running()


def test_all_builds_of_a_message_begin_in_one_report(world):
    requests = [request_for() for _ in range(5)]
    world.manager.build_and_run_instances(requests)
    world.report()
    report = world.conductor.reports[-1]
    assert sum(isinstance(e.item, build.Begin) for e in report.items) == 5
    # Each item has the context of its own request.
    assert {e.context["request_id"] for e in report.items if isinstance(e.item, build.Begin)} == {
        request.context["request_id"] for request in requests
    }


def test_a_bad_request_does_not_hurt_the_others(world):
    bad, good = request_for(), request_for()
    bad.spec.flavor = None
    world.manager.build_and_run_instances([bad, good])
    world.settle()
    assert good.instance.uuid in world.driver.running()
    assert one(world, bad) is None


def test_task_states_are_seen_while_it_works(world):
    request = request_for(networks=[PRIVATE])
    seen = []

    def look(uuid):
        world.report()
        seen.extend(world.conductor.items(build.Progress))

    world.driver.during_spawn = look
    world.boot(request)
    [progress] = seen
    assert progress.task_state == "spawning"
    assert [info.network_id for info in progress.network_info] == ["private"]
    events = {event.event: event.finish for event in progress.events}
    assert events["compute_network"] is not None
    assert events["compute_spawn"] is None
    assert events["compute__do_build_and_run_instance"] is None


def test_the_lines_of_a_boot_are_novas(world, caplog):
    caplog.set_level(logging.INFO)
    limits = Limits(memory_mb=24576.0, disk_gb=200.0, vcpu=128.0)
    world.boot(request_for(limits=limits))
    lines = [(r.name, r.getMessage()) for r in caplog.records]
    assert ("novalite.compute.manager", str(limits.as_dict())) in lines
    assert [text for name, text in lines if name == "novalite.compute.claims"] == [
        "Attempting claim: memory 512 MB, disk 1 GB, vcpus 1 CPU",
        "Total memory: 16384 MB, used: 512.00 MB",
        "memory limit: 24576.00 MB, free: 24064.00 MB",
        "Total disk: 200 GB, used: 0.00 GB",
        "disk limit: 200.00 GB, free: 200.00 GB",
        "Total vcpu: 8 VCPU, used: 0.00 VCPU",
        "vcpu limit: 128.00 VCPU, free: 128.00 VCPU",
        "Claim successful",
    ]
    names = [name for name, text in lines if text == "Submitted allocation for instance"]
    assert names == ["novalite.scheduler.client.report"]


def test_a_second_delivery_is_ignored_while_the_first_is_in_hand(world):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.manager.build_and_run_instances([again(request)])
    world.report()
    world.manager.build_and_run_instances([again(request)])
    world.settle()
    assert len(world.conductor.items(build.Begin)) == 1
    assert world.driver.calls == [("spawn", request.instance.uuid)]


def test_a_delivery_after_the_end_is_dropped_and_touches_nothing(world):
    request = request_for()
    world.boot(request)
    used = world.books().memory_mb_used
    world.boot(again(request))
    assert request.instance.uuid in world.driver.running()
    assert world.driver.destroyed == []
    assert world.books().memory_mb_used == used


@pytest.mark.parametrize("fault", ["lost", "reply"])
def test_a_lost_begin_is_asked_again_with_its_token(world, fault):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.conductor.faults.extend([fault, fault])
    world.settle()
    assert len({item.token for item in world.conductor.items(build.Begin)}) == 1
    assert request.instance.uuid in world.driver.running()
    assert len(world.driver.calls) == 1


@pytest.mark.parametrize("fault", ["lost", "reply"])
def test_a_lost_finish_is_asked_again_and_the_guest_stays(world, fault):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.report()
    world.work()
    world.conductor.faults.extend([fault, fault])
    world.settle()
    assert world.driver.guests[request.instance.uuid].metadata.done
    assert world.driver.destroyed == []
    assert len(world.driver.calls) == 1


def test_begin_superseded_removes_only_the_guest_of_that_attempt(world):
    request = request_for(attempt=1)
    world.conductor.rows[request.action_id] = row = Row(request.action_id, attempt=2)
    uuid = request.instance.uuid
    world.driver.add(uuid, action_id=request.action_id, attempt=2)
    world.boot(request)
    assert uuid in world.driver.guests, "the guest of another attempt"
    world.driver.add(uuid, action_id=request.action_id, attempt=1)
    world.boot(again(request))
    assert uuid not in world.driver.guests
    assert row.open and world.books().memory_mb_used == 512


def test_a_late_message_of_a_left_attempt_leaves_the_ports_of_the_one_that_finished(world):
    first = request_for(attempt=1, networks=[PRIVATE])
    second = again(first, attempt=2)
    world.conductor.rows[first.action_id] = Row(first.action_id, attempt=2)
    world.boot(second)
    world.boot(first)
    assert [item.attempt for item in world.conductor.items(build.Begin)] == [2, 1]
    assert world.driver.guests[first.instance.uuid].metadata.attempt == 2
    assert world.network.given_back == []


def test_finish_superseded_removes_guest_ports_and_claim(world):
    request = request_for(networks=[PRIVATE])
    world.manager.build_and_run_instances([request])
    world.report()
    world.work()
    world.conductor.rows[request.action_id].attempt = 2
    world.settle()
    uuid = request.instance.uuid
    assert uuid not in world.driver.guests
    # Only the ports bound here: the next attempt may use the others.
    assert world.network.given_back == [(uuid, set(), "host1")]
    assert world.books().memory_mb_used == 512
    assert world.conductor.items(build.Picture)[-1].picture.memory_mb_used == 512


def test_it_starts_over_and_never_adopts(world):
    request = request_for()
    uuid = request.instance.uuid
    world.driver.add(uuid, action_id=request.action_id, attempt=1, token="former")
    world.boot(request)
    assert world.driver.destroyed == [uuid]
    assert world.driver.guests[uuid].metadata.token == world.conductor.items(build.Begin)[0].token


def test_a_newer_attempt_drops_one_that_waits(world):
    first = request_for(attempt=1)
    world.manager.build_and_run_instances([first])
    second = again(first, attempt=2)
    world.conductor.rows.clear()
    world.conductor.rows[first.action_id] = Row(first.action_id, attempt=2)
    world.manager.build_and_run_instances([second])
    assert one(world, first) is None
    world.settle()
    assert [item.attempt for item in world.conductor.items(build.Begin)] == [2]
    assert world.driver.guests[first.instance.uuid].metadata.attempt == 2
    assert world.books().memory_mb_used == 1024, "the server counts once"
    world.manager.build_and_run_instances([again(first)])
    world.settle()
    assert world.driver.guests[first.instance.uuid].metadata.attempt == 2


def test_an_older_message_is_ignored_while_a_newer_attempt_is_in_hand(world):
    second = request_for(attempt=2)
    world.manager.build_and_run_instances([second])
    world.manager.build_and_run_instances([again(second, attempt=1)])
    assert one(world, again(second, attempt=1)) is None


def test_a_newer_attempt_stops_one_that_spawns_and_comes_after_it(world):
    first = request_for(attempt=1)
    second = again(first, attempt=2)

    def arrive(uuid):
        world.driver.during_spawn = lambda uuid: None
        world.conductor.rows[first.action_id].attempt = 2
        world.conductor.rows[first.action_id].begun = False
        world.manager.build_and_run_instances([second])

    world.driver.during_spawn = arrive
    world.boot(first)
    guest = world.driver.guests[first.instance.uuid]
    assert guest.metadata.attempt == 2 and guest.metadata.done
    assert world.books().memory_mb_used == 1024
    assert [item.attempt for item in world.conductor.items(build.Finish)] == [2]


def test_a_failed_spawn_is_told_after_everything_is_gone(world, caplog):
    caplog.set_level(logging.INFO)
    request = request_for(networks=[PRIVATE])
    world.driver.fail_spawn = exception.HypervisorError(reason="no such CPU model")
    world.boot(request)
    [finish] = world.conductor.items(build.Finish)
    assert finish.fault.message == "Hypervisor error: no such CPU model"
    assert finish.fault.host == "host1"
    assert finish.reschedule and not finish.guest_left
    assert finish.picture.memory_mb_used == 512, "the claim is given back before it is told"
    assert world.network.given_back == [(request.instance.uuid, set(), "host1")]
    assert world.driver.guests == {} and world.hand.wait_idle(0)
    results = {event.event: event.result for event in finish.events}
    assert results == {
        "compute__do_build_and_run_instance": "Error",
        "compute_network": "Success",
        "compute_spawn": "Error",
    }
    took = [r for r in caplog.records if "to deallocate network for instance." in r.getMessage()]
    assert [r.name for r in took] == ["novalite.compute.manager"]
    assert took[0].getMessage() == "Took 0.00 seconds to deallocate network for instance."


def test_a_failed_network_is_a_failed_build(world):
    request = request_for(networks=[PRIVATE])
    world.network.fail_allocate = exception.NeighborUnavailable(service="network")
    world.boot(request)
    [finish] = world.conductor.items(build.Finish)
    assert finish.fault.message == "The network service is currently unavailable, try again."
    assert finish.reschedule
    assert ("spawn", request.instance.uuid) not in world.driver.calls


OF_THE_REQUEST = [
    exception.ImageNotActive(image_id="i1"),
    exception.FlavorTooSmall(resource="disk"),
    exception.PortInUse(port_id="p1"),
    exception.PolicyNotAuthorized(action="create_port"),
    exception.NeighborError(service="network", status=409, reason="No more IP addresses"),
]
OF_THE_HOST = [
    exception.HypervisorError(reason="no such CPU model"),
    exception.PortBindingFailed(port_id="p1"),
    exception.NeighborError(service="network", status=500, reason="oops"),
    exception.NeighborError(service="network", status=401, reason="who are you"),
    exception.NeighborUnavailable(service="network"),
    OSError("disk"),
]


@pytest.mark.parametrize("error", OF_THE_REQUEST, ids=lambda error: type(error).__name__)
def test_what_any_host_would_refuse_ends_the_build(world, error):
    request = request_for(networks=[PRIVATE])
    world.network.fail_allocate = error
    world.boot(request)
    [finish] = world.conductor.items(build.Finish)
    assert not finish.reschedule and not finish.guest_left
    assert finish.fault.message == f"Build of instance {request.instance.uuid} aborted: {error}"
    assert finish.fault.details == str(error)
    assert world.books().memory_mb_used == 512, "nothing is leaked in the books"


@pytest.mark.parametrize("error", OF_THE_HOST, ids=lambda error: type(error).__name__)
def test_what_another_host_may_do_is_tried_there(world, error):
    world.network.fail_allocate = error
    world.boot(request_for(networks=[PRIVATE]))
    [finish] = world.conductor.items(build.Finish)
    assert finish.reschedule and "aborted" not in finish.fault.message


def test_an_unknown_error_shows_its_trace_to_administrators_only(world):
    world.driver.fail_spawn = ZeroDivisionError("inner text")
    world.boot(request_for())
    [finish] = world.conductor.items(build.Finish)
    assert finish.fault.message == "Unexpected error: ZeroDivisionError"
    assert "Traceback" in finish.fault.details


def test_a_guest_that_will_not_go_ends_the_build(world):
    request = request_for()
    uuid = request.instance.uuid
    world.driver.fail_spawn = exception.HypervisorError(reason="no such CPU model")
    world.driver.stuck.add(uuid)
    world.boot(request)
    [finish] = world.conductor.items(build.Finish)
    assert finish.fault.message == (
        f"Build of instance {uuid} aborted: Could not clean up failed build, not rescheduling"
    )
    assert "no such CPU model" in finish.fault.details
    assert finish.guest_left and not finish.reschedule
    assert world.books().memory_mb_used == 512, "nothing is leaked in the books"


def test_ports_that_cannot_be_given_back_do_not_hide_the_failure(world):
    request = request_for(networks=[PRIVATE])
    world.driver.fail_spawn = exception.HypervisorError(reason="x")
    world.network.fail_deallocate = exception.NeighborUnavailable(service="network")
    world.boot(request)
    assert world.conductor.items(build.Finish)[0].fault is not None


def test_a_refusal_says_why_and_that_the_limits_were_current(world):
    world.settle()
    generation = world.books().generation
    request = request_for(
        flavor=Flavor("2", "big", 1, 64, 60),
        limits=Limits(memory_mb=24576.0, disk_gb=18.0, generation=generation),
    )
    world.boot(request)
    [refusal] = world.conductor.items(build.Refusal)
    assert refusal.reason == (
        "Insufficient compute resources: Free disk 18.00 GB < requested 60 GB."
    )
    assert not refusal.stale and not refusal.guest_left
    assert refusal.event.result == "Error"
    assert world.conductor.items(build.Begin) == []
    assert world.books().memory_mb_used == 512 and world.hand.wait_idle(0)


def test_limits_from_an_older_picture_are_called_stale_only_when_they_refuse(world):
    old = Generation(world.conductor.epoch, 0)
    small = Limits(memory_mb=24576.0, disk_gb=18.0, vcpu=128.0, generation=old)
    fits = request_for(limits=small)
    world.boot(fits)
    assert fits.instance.uuid in world.driver.running()
    refused = request_for(flavor=Flavor("2", "big", 1, 64, 60), limits=small)
    world.boot(refused)
    [refusal] = world.conductor.items(build.Refusal)
    assert refusal.stale
    assert refusal.picture.generation.newer_than(old)


def test_a_refusal_first_removes_what_is_here_of_that_attempt(world):
    limits = Limits(memory_mb=1.0)
    request = request_for(limits=limits)
    uuid = request.instance.uuid
    world.driver.add(uuid, action_id=request.action_id)
    world.driver.stuck.add(uuid)
    world.manager.build_and_run_instances([request])
    world.settle()
    assert world.conductor.items(build.Refusal)[0].guest_left
    world.driver.stuck.clear()
    world.boot(again(request))
    assert not world.conductor.items(build.Refusal)[1].guest_left
    assert uuid not in world.driver.guests


def test_a_refusal_never_removes_a_server(world):
    request = request_for()
    world.boot(request)
    world.boot(again(request, limits=Limits(memory_mb=1.0)))
    assert request.instance.uuid in world.driver.running()
    assert world.conductor.items(build.Refusal) == []
    assert world.hand.wait_idle(0)


def test_a_node_that_is_not_here_is_refused(world):
    world.boot(request_for(node="elsewhere"))
    [refusal] = world.conductor.items(build.Refusal)
    assert refusal.reason == "Compute host elsewhere could not be found."
    assert refusal.picture.hypervisor_hostname == "node1"


def test_work_is_named_from_the_answer_to_begin_to_the_answer_to_finish(world):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.report()
    assert world.conductor.reports[-1].in_hand == []
    world.report()
    [named] = world.conductor.reports[-1].in_hand
    assert (named.action_id, named.attempt) == (request.action_id, 1)
    world.work()
    world.report()
    assert world.conductor.reports[-1].in_hand == [named]
    world.report()
    assert world.conductor.reports[-1].in_hand == []
    assert one(world, request).stage is Stage.DONE
    world.settle()


def test_a_guest_that_cannot_be_marked_is_marked_at_the_next_audit(world):
    request = request_for()
    world.driver.fail_metadata = True
    world.boot(request)
    uuid = request.instance.uuid
    assert not world.driver.guests[uuid].metadata.done
    # A fence must not stop what is a server's already.
    world.fence()
    assert uuid in world.driver.running()
    world.driver.fail_metadata = False
    world.manager._audit()
    assert world.driver.guests[uuid].metadata.done
    assert world.hand.wait_idle(0)


def test_a_delete_during_the_spawn_wins(world):
    request = request_for(networks=[PRIVATE])
    uuid = request.instance.uuid

    def arrive(_):
        world.conductor.rows[request.action_id].open = False
        world.manager.destroy_instances([destroy_for(request, action_id=99)])

    world.driver.during_spawn = arrive
    world.boot(request)
    assert uuid not in world.driver.guests
    assert world.conductor.items(build.Finish) == []
    [gone] = world.conductor.items(build.Gone)
    assert gone.failure is None and gone.action_id == 99
    assert world.books().memory_mb_used == 512
    assert (uuid, set(), None) in world.network.given_back


@pytest.mark.parametrize("hook", ["after_spawn", "before_resume"])
def test_a_cancel_between_spawn_and_finish_wins(world, hook):
    request = request_for()
    ran = []

    def arrive(_):
        world.manager.destroy_instances([destroy_for(request, action_id=99)])

    setattr(world.driver, hook, arrive)
    if hook == "after_spawn":
        world.driver.before_resume = ran.append
    world.boot(request)
    assert world.driver.guests == {} and ran == []
    assert world.conductor.items(build.Finish) == []


@pytest.mark.parametrize(
    ("error", "failed_builds"),
    [
        (exception.HypervisorError(reason="no such CPU model"), 1),
        (exception.PortBindingFailed(port_id="p1"), 1),
        (RuntimeError("a bug"), 1),
        (exception.NeighborUnavailable(service="image"), 0),
        (exception.NeighborError(service="network", status=500, reason="oops"), 0),
        *((error, 0) for error in OF_THE_REQUEST),
    ],
    ids=repr,
)
def test_v08_only_the_hosts_own_fault_counts_against_it(world, error, failed_builds):
    world.driver.fail_spawn = error
    world.boot(request_for())
    [finish] = world.conductor.items(build.Finish)
    assert finish.picture.stats["failed_builds"] == failed_builds
    world.driver.fail_spawn = None
    world.boot(request_for())
    assert world.conductor.items(build.Finish)[-1].picture.stats["failed_builds"] == 0
