# SPDX-License-Identifier: Apache-2.0
"""Removing servers: deletes, clean-ups, bounds, repeats and failures."""

import pytest

from novalite import exception
from novalite.objects import build
from novalite.objects.instance import NetworkInfo
from novalite.objects.request_spec import NetworkRequest
from tests.unit.compute.conftest import PRIVATE, again, destroy_for, request_for


def destroy(world, request, **options):
    world.manager.destroy_instances([destroy_for(request, **options)])
    world.settle()
    return world.conductor.items(build.Gone)[-1]


@pytest.fixture
def server(world):
    request = request_for()
    world.boot(request)
    return request


def test_a_delete_removes_guest_and_claim_and_tells(world, server):
    gone = destroy(world, server, action_id=9)
    assert world.driver.guests == {}
    assert (gone.instance_uuid, gone.action_id, gone.failure) == (server.instance.uuid, 9, None)
    assert gone.picture.memory_mb_used == 512
    [event] = gone.events
    assert (event.event, event.result) == ("compute_terminate_instance", "Success")
    assert event.finish >= event.start
    assert world.hand.wait_idle(0)


def test_what_is_gone_already_is_a_success(world, server):
    world.driver.guests.clear()
    assert destroy(world, server, action_id=9).failure is None
    assert destroy(world, request_for(), action_id=10).failure is None


def test_a_delete_is_named_in_the_reports(world, server):
    world.manager.destroy_instances([destroy_for(server, action_id=9)])
    world.report()
    assert world.conductor.reports[-1].in_hand == [build.InHand(9, 0)]


def test_a_repeat_is_ignored_while_it_is_in_hand_and_done_again_after_it(world, server):
    world.manager.destroy_instances([destroy_for(server, action_id=9)])
    world.manager.destroy_instances([destroy_for(server, action_id=9)])
    assert len(world.host.deletes.jobs) == 1
    world.settle()
    destroy(world, server, action_id=9)
    assert len(world.conductor.items(build.Gone)) == 2


@pytest.mark.parametrize("fault", ["lost", "reply"])
def test_gone_is_told_until_it_is_answered(world, server, fault):
    world.manager.destroy_instances([destroy_for(server, action_id=9)])
    world.host.deletes.run()
    world.conductor.faults.extend([fault, fault])
    world.settle()
    assert world.conductor.items(build.Gone)
    assert world.hand.wait_idle(0)


def test_a_clean_up_keeps_to_its_bound(world, server):
    kept = destroy(world, server, attempt=0)
    assert kept.failure is None and kept.attempt == 0
    assert server.instance.uuid in world.driver.running()
    assert world.books().memory_mb_used == 1024
    destroy(world, server, attempt=1)
    assert world.driver.guests == {}
    assert world.books().memory_mb_used == 512


def test_a_clean_up_cancels_only_what_it_may(world):
    request = request_for(attempt=3)
    world.manager.build_and_run_instances([request])
    destroy(world, again(request), attempt=2)
    assert request.instance.uuid in world.driver.running()


def test_a_clean_up_drops_an_attempt_that_waits(world):
    request = request_for(attempt=2)
    world.manager.build_and_run_instances([request])
    destroy(world, again(request), attempt=2)
    assert world.driver.calls == []
    assert world.books().memory_mb_used == 512
    assert world.hand.wait_idle(0)


def test_a_clean_up_gives_back_only_the_ports_of_this_host(world):
    request = request_for(networks=[PRIVATE])
    destroy(world, request, attempt=1)
    assert world.network.given_back == [(request.instance.uuid, set(), "host1")]


def test_a_clean_up_leaves_the_ports_of_a_newer_attempt_here(world):
    request = request_for(networks=[PRIVATE], attempt=2)
    world.boot(request)
    destroy(world, again(request), attempt=1, launched_at=None)
    assert world.network.given_back == []
    waiting = request_for(networks=[PRIVATE], attempt=2)
    world.manager.build_and_run_instances([waiting])
    destroy(world, again(waiting), attempt=1)
    assert world.network.given_back == []


def test_ports_that_the_user_brought_are_named(world):
    request = request_for()
    infos = [
        NetworkInfo("mine", "n", "private", "fa:16:3e:00:00:01", owned=False),
        NetworkInfo("made", "n", "private", "fa:16:3e:00:00:02", owned=True),
    ]
    destroy(world, request, action_id=9, network_info=infos)
    assert world.network.given_back == [(request.instance.uuid, {"mine"}, None)]


def test_ports_of_a_build_in_hand_are_known_from_its_request(world):
    request = request_for(networks=[NetworkRequest(port_id="mine"), PRIVATE])
    world.manager.build_and_run_instances([request])
    destroy(world, again(request), action_id=9)
    assert world.network.given_back == [(request.instance.uuid, {"mine"}, None)]


def test_a_server_without_network_asks_nothing_of_the_network_service(world, server):
    world.network.fail_deallocate = exception.NeighborUnavailable(service="network")
    assert destroy(world, server, action_id=9, launched_at=1.0).failure is None


def test_a_guest_that_will_not_go_is_told_and_stays_in_the_books(world, server):
    world.driver.stuck.add(server.instance.uuid)
    gone = destroy(world, server, action_id=9)
    assert gone.failure == "Hypervisor error: the domain will not go"
    assert gone.events[0].result == "Error"
    assert world.books().memory_mb_used == 1024
    world.driver.stuck.clear()
    assert destroy(world, server, action_id=9).failure is None
    assert world.books().memory_mb_used == 512


def test_ports_that_cannot_be_given_back_are_a_failure_too(world):
    request = request_for(networks=[PRIVATE])
    world.boot(request)
    infos = [NetworkInfo("p", "n", "private", "fa:16:3e:00:00:01")]
    world.network.fail_deallocate = exception.NeighborUnavailable(service="network")
    gone = destroy(world, request, action_id=9, network_info=infos)
    assert gone.failure == "The network service is currently unavailable, try again."
    world.network.fail_deallocate = None
    assert destroy(world, request, action_id=9).failure is None


def test_a_delete_of_a_finishing_build_withdraws_its_question(world):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.report()
    world.host.builds.run()
    destroy(world, again(request), action_id=9)
    assert world.conductor.items(build.Finish) == []
    assert world.driver.guests == {}


def test_a_delete_between_done_and_its_mark_wins(world):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.report()
    world.host.builds.run()
    world.report()
    world.manager.destroy_instances([destroy_for(request, action_id=9)])
    world.host.deletes.run()
    world.settle()
    assert world.driver.guests == {} and world.hand.wait_idle(0)
    world.manager._sync_power_states()
    world.settle()
    assert world.conductor.items(build.PowerReport) == []
