# SPDX-License-Identifier: Apache-2.0
"""Servers with volumes: made, attached, given back; and what they cost their host (V02)."""

import pytest

from novalite import exception
from novalite.objects import build
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import Limits
from novalite.objects.states import TaskState
from novalite.volume import errors
from tests.unit.compute.conftest import PRIVATE, ROOT_VOLUME, again, destroy_for, request_for
from tests.unit.compute.doubles import Driver


def volume_backed(**options):
    return request_for(image_ref="", devices=[ROOT_VOLUME], **options)


def states(world):
    return [item.task_state for item in world.conductor.items(build.Progress)]


def test_the_volume_is_there_before_the_guest(world):
    request = volume_backed()
    uuid = request.instance.uuid
    world.driver.during_spawn = lambda _: seen.append(dict(world.volumes.hosts))
    world.volumes.during_attach = lambda _: world.report()
    seen = []
    world.boot(request)
    assert seen == [{uuid: "host1"}]
    assert states(world) == [TaskState.BLOCK_DEVICE_MAPPING]
    [finish] = world.conductor.items(build.Finish)
    assert finish.fault is None
    assert [device.volume_id for device in finish.block_devices] == ["volume0"]
    events = {event.event: event.result for event in finish.events}
    assert events["compute_block_device_mapping"] == "Success"


def test_a_server_without_volumes_asks_nothing_of_block_storage(world):
    world.volumes.fail_attach = world.volumes.fail_release = AssertionError("it was asked")
    request = request_for(networks=[PRIVATE])
    world.boot(request)
    world.manager.destroy_instances([destroy_for(request, action_id=9)])
    world.settle()
    failed = request_for()
    world.driver.fail_spawn = exception.HypervisorError(reason="no")
    world.boot(failed)
    assert TaskState.BLOCK_DEVICE_MAPPING not in states(world)
    assert (world.volumes.made, world.volumes.given_back) == ({}, [])
    assert world.conductor.items(build.Finish)[0].block_devices == []


@pytest.mark.parametrize(
    ("error", "elsewhere"),
    [
        (errors.InvalidVolume(reason="in-use"), False),
        (exception.NeighborUnavailable(service="block storage"), True),
        (errors.VolumeNotCreated(volume_id="v", seconds=1, attempts=2, volume_status="x"), True),
    ],
)
def test_a_volume_that_cannot_be_had(world, error, elsewhere):
    world.volumes.fail_attach = error
    request = volume_backed()
    world.boot(request)
    [finish] = world.conductor.items(build.Finish)
    assert finish.reschedule is elsewhere
    assert error.message() in finish.fault.details
    assert world.volumes.given_back == [("release", request.instance.uuid, False)]
    assert world.driver.calls == []


def test_a_failed_spawn_gives_the_volumes_back(world):
    world.driver.fail_spawn = exception.HypervisorError(reason="no")
    world.boot(volume_backed())
    assert (world.volumes.hosts, world.volumes.made) == ({}, {})


def test_a_guest_that_will_not_go_keeps_what_it_writes_to(world):
    request = volume_backed()
    world.driver.stuck.add(request.instance.uuid)
    world.driver.fail_spawn = exception.HypervisorError(reason="no")
    world.boot(request)
    assert world.volumes.hosts == {request.instance.uuid: "host1"}
    assert world.volumes.given_back == []


def test_a_fenced_build_leaves_the_volumes_to_whoever_follows(world):
    request = volume_backed()
    world.volumes.during_attach = lambda _: world.clock.advance(world.host.fence.limit + 1)
    world.volumes.fail_attach = exception.NeighborUnavailable(service="block storage")
    world.manager.build_and_run_instances([request])
    world.report()
    world.host.builds.run()
    assert list(world.volumes.made) == [request.instance.uuid]
    assert "release" not in [what for what, *_ in world.volumes.given_back]


def test_a_repeat_after_a_kill_uses_the_volume_again(world):
    request = volume_backed()
    world.volumes.fail_attach = SystemExit("killed")
    world.manager.build_and_run_instances([request])
    world.report()
    with pytest.raises(SystemExit):
        world.host.builds.run()
    assert world.volumes.made == {request.instance.uuid: "volume0"}
    world.volumes.fail_attach = None
    world.restart()
    world.boot(again(request))
    assert world.conductor.rows[request.action_id].active
    assert world.volumes.made == {request.instance.uuid: "volume0"}
    assert world.volumes.hosts == {request.instance.uuid: "host1"}


def test_an_attempt_that_is_not_ours_any_more_takes_its_own_attachment_off(world):
    request = volume_backed()
    world.volumes.during_attach = lambda _: setattr(
        world.conductor.rows[request.action_id], "open", False
    )
    world.boot(request)
    assert world.volumes.given_back == [("detach", request.instance.uuid, "host1")]
    assert list(world.volumes.made) == [request.instance.uuid]


@pytest.mark.parametrize("launched_at", [None, 1.0])
def test_a_delete_gives_everything_back(world, launched_at):
    request = volume_backed()
    world.boot(request)
    world.manager.destroy_instances([destroy_for(request, action_id=9, launched_at=launched_at)])
    world.settle()
    built = launched_at is not None
    assert world.volumes.given_back == [("release", request.instance.uuid, built)]


def test_a_delete_that_cannot_give_them_back_says_so(world):
    request = volume_backed()
    world.boot(request)
    world.volumes.fail_release = exception.NeighborUnavailable(service="block storage")
    world.manager.destroy_instances([destroy_for(request, action_id=9)])
    world.settle()
    [gone] = world.conductor.items(build.Gone)
    assert "block storage" in gone.failure


def test_a_clean_up_takes_off_only_what_is_on_this_host(world):
    request = volume_backed()
    world.boot(request)
    world.manager.destroy_instances([destroy_for(request, attempt=1)])
    world.settle()
    assert world.volumes.given_back == [("detach", request.instance.uuid, "host1")]
    assert list(world.volumes.made) == [request.instance.uuid]


def test_v02_a_volume_is_no_local_disk(make_world):
    """Field case V02: the same 33 GB before and after a restart, then no 91 GB more."""
    flavor = Flavor("f", "big", 1, 64, root_gb=80, ephemeral_gb=10, swap_mb=1024)
    world = make_world(driver=Driver(local_gb=100))
    requests = [volume_backed(flavor=flavor) for _ in range(3)]
    for request in requests:
        world.boot(request)
    books = world.books()
    assert (books.local_gb_used, books.local_gb - books.local_gb_used) == (33, 67)
    world.conductor.registration.kept = [build.Kept(r.instance, r.attempt) for r in requests]
    world.restart()
    assert world.books().local_gb_used == 33
    world.manager.audit_books(repair=True)
    assert world.books().local_gb_used == 33
    world.boot(request_for(flavor=flavor, limits=Limits(disk_gb=100.0)))
    assert "disk" in world.conductor.items(build.Refusal)[-1].reason
