# SPDX-License-Identifier: Apache-2.0
"""What a start does to what a former one left, and what it does not touch."""

import logging

import pytest

from novalite import exception
from novalite.compute import registration
from novalite.objects import build
from novalite.objects.build import Kept
from novalite.objects.states import PowerState
from tests.unit.compute.conftest import again, request_for
from tests.unit.compute.doubles import Conductor


def kept(request, attempt=1):
    instance = request.instance
    instance.host, instance.node = "host1", "node1"
    instance.power_state = PowerState.RUNNING
    return Kept(instance, attempt)


@pytest.fixture
def prepared(make_world):
    """Return a world that has not started yet."""
    return make_world(started=False)


def test_it_announces_who_it_is(prepared):
    prepared.start()
    [(host, binary, identity, nodes)] = prepared.conductor.registered
    assert (host, binary, nodes) == ("host1", "nova-compute", ["node1"])
    assert len(identity) == 36
    prepared.restart()
    assert prepared.conductor.registered[1][2] == identity


def test_a_server_is_kept_and_marked_and_counted(prepared):
    request = request_for()
    uuid = request.instance.uuid
    prepared.driver.add(uuid)
    prepared.conductor.registration.kept = [kept(request)]
    prepared.start()
    assert prepared.driver.running() == {uuid}
    assert prepared.driver.guests[uuid].metadata.done
    assert prepared.books().memory_mb_used == 1024


def test_a_server_that_a_fence_had_paused_runs_again(prepared):
    request = request_for()
    uuid = request.instance.uuid
    prepared.driver.add(uuid, running=False, paused_by_fence=True)
    prepared.conductor.registration.kept = [kept(request)]
    prepared.start()
    assert prepared.driver.running() == {uuid}
    assert not prepared.driver.guests[uuid].metadata.paused_by_fence


def test_a_server_killed_between_finish_and_resume_runs_again(prepared):
    request = request_for()
    prepared.driver.add(request.instance.uuid, running=False, done=True, paused_by_fence=True)
    prepared.conductor.registration.kept = [kept(request)]
    prepared.start()
    assert prepared.driver.running() == {request.instance.uuid}


def test_a_guest_that_the_database_does_not_know_goes_with_its_ports(prepared, caplog):
    request = request_for()
    uuid = request.instance.uuid
    prepared.driver.add(uuid, done=True)
    prepared.start()
    assert prepared.driver.guests == {}
    assert prepared.network.given_back == [(uuid, set(), "host1")]
    assert "is removed" in caplog.text


def test_a_guest_of_another_attempt_than_the_kept_one_goes(prepared):
    request = request_for()
    prepared.driver.add(request.instance.uuid, attempt=1)
    prepared.conductor.registration.kept = [kept(request, attempt=2)]
    prepared.start()
    assert prepared.driver.guests == {}
    assert prepared.books().memory_mb_used == 1024, "the books follow the database"


def test_the_guest_of_an_open_build_is_left_until_begin_is_answered(prepared):
    request = request_for()
    uuid = request.instance.uuid
    prepared.driver.add(uuid, action_id=request.action_id)
    prepared.conductor.registration.open = [uuid]
    prepared.start()
    assert prepared.driver.running() == {uuid}
    prepared.boot(request)
    assert prepared.driver.destroyed == [uuid]
    assert prepared.driver.running() == {uuid}


def test_a_server_without_its_guest_stays_in_the_books(prepared, caplog):
    request = request_for()
    prepared.conductor.registration.kept = [kept(request)]
    prepared.start()
    assert prepared.books().memory_mb_used == 1024
    assert "It is kept here but has no guest" in caplog.text
    prepared.manager._sync_power_states()
    prepared.settle()
    [report] = prepared.conductor.items(build.PowerReport)
    assert report.power_state is PowerState.NOSTATE


def test_a_refused_registration_ends_the_start_and_touches_nothing(prepared):
    prepared.driver.add("someone", done=True)
    prepared.conductor.registration.refused = "another identity has this name"
    with pytest.raises(exception.ConfigurationError):
        prepared.start()
    assert prepared.driver.running() == {"someone"}
    assert prepared.conductor.reports == []


def test_the_reason_of_a_refusal_ends_the_process(prepared):
    prepared.start()
    prepared.conductor.registration.refused = "another identity has this name"
    prepared.manager._identity.release()
    with pytest.raises(exception.ConfigurationError):
        prepared.manager.init_host()
    assert prepared.failures[-1] == "another identity has this name"


def test_it_is_asked_until_it_is_answered(prepared, monkeypatch, caplog):
    monkeypatch.setattr(registration, "SPACING", 0.0)
    prepared.conductor.faults.extend(["lost"] * 5)
    caplog.set_level(logging.WARNING)
    prepared.start()
    assert len(prepared.conductor.registered) == 1
    lines = [r.getMessage() for r in caplog.records if "registration" in r.getMessage()]
    assert lines == ["No conductor answers the registration (BusUnavailable); it is repeated"]


def test_a_stop_ends_the_asking(make_world, monkeypatch):
    monkeypatch.setattr(registration, "SPACING", 0.0)
    world = make_world()

    class Silent(Conductor):
        def register(self, *args, **kwargs):
            world.manager._stopping.set()
            raise exception.BusUnavailable()

    world.manager._conductor = Silent()
    with pytest.raises(exception.BusUnavailable):
        world.manager._register()


def test_a_guest_that_will_not_go_does_not_stop_the_start(prepared):
    prepared.driver.add("stuck")
    prepared.driver.add("other")
    prepared.driver.stuck.add("stuck")
    prepared.start()
    assert set(prepared.driver.guests) == {"stuck"}


def test_a_guest_that_cannot_be_marked_does_not_stop_the_start(prepared):
    request = request_for()
    prepared.driver.add(request.instance.uuid)
    prepared.driver.fail_metadata = True
    prepared.conductor.registration.kept = [kept(request)]
    prepared.start()
    assert prepared.driver.running() == {request.instance.uuid}


def test_a_kill_before_finish_is_told_ends_in_one_guest(make_world):
    world = make_world()
    request = request_for()
    uuid = request.instance.uuid
    world.manager.build_and_run_instances([request])
    world.report()
    world.host.builds.run()
    assert world.driver.running() == {uuid}
    world.conductor.registration.open = [uuid]
    world.restart()
    world.boot(again(request))
    assert world.driver.running() == {uuid}
    first, second = world.conductor.items(build.Begin)
    assert first.token != second.token
    assert world.books().memory_mb_used == 1024


def test_an_unknown_service_registers_anew_and_keeps_its_work(world):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.report()
    world.host.builds.run()
    world.conductor.unknown = True
    world.report()
    assert len(world.conductor.registered) == 2
    assert world.driver.running() == {request.instance.uuid}
    row = world.conductor.rows[request.action_id]
    # The conductor that forgot the service has not forgotten the build.
    row.token = (world.conductor.epoch, row.token[1])
    world.settle()
    assert world.driver.guests[request.instance.uuid].metadata.done
    assert world.books().memory_mb_used == 1024


def test_a_retired_process_stops_and_lets_nothing_run(world):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.report()
    world.conductor.retired = True
    world.report()
    assert world.failures == ["another novalite-compute has registered as host host1"]
    world.host.builds.run()
    assert world.driver.running() == set()
    world.manager.build_and_run_instances([request_for()])
    assert world.work() == 0
