# SPDX-License-Identifier: Apache-2.0
"""The life of the service: start, audits, reload, drain, stop, and what its endpoints answer."""

import inspect

import oslo_messaging as messaging
import pytest

from novalite import exception, manager
from novalite.compute import manager as manager_module
from novalite.compute import rpcapi
from novalite.objects import build
from novalite.objects.states import PowerState
from novalite.virt import loader
from tests.unit.compute import doubles
from tests.unit.compute.conftest import PRIVATE, again, destroy_for, request_for


def test_it_is_a_manager(world):
    typed: manager.Manager = world.manager
    assert [topic for topic, _ in typed.endpoints()] == ["compute"]
    names = [task.name for task in typed.periodic_tasks()]
    assert names == ["update_available_resource", "audit_books", "sync_power_states"]


def test_client_and_endpoint_name_the_same_methods_and_arguments():
    def arguments(cls, *, without):
        return {
            name: [p for p in inspect.signature(method).parameters if p not in without]
            for name, method in inspect.getmembers(cls, inspect.isfunction)
            if not name.startswith("_")
        }

    client = arguments(rpcapi.ComputeAPI, without={"host", "timeout"})
    assert client == arguments(manager_module.ComputeEndpoint, without=set())
    assert manager_module.ComputeEndpoint.target.version == rpcapi.ComputeAPI.TARGET.version


def test_every_endpoint_method_is_exposed(world):
    [(_, [endpoint])] = world.manager.endpoints()
    methods = [m for n, m in inspect.getmembers(endpoint, inspect.ismethod) if n[0] != "_"]
    assert len(methods) == 6 and all(method.exposed for method in methods)
    assert endpoint.ping(None) == "pong"


@pytest.mark.parametrize(
    ("interval", "spacing"), [(0, 60.0), (7, 7.0), (-1, 60.0)], ids=["default", "set", "never"]
)
def test_the_spacing_of_the_audit(make_world, interval, spacing, caplog):
    caplog.set_level("INFO")
    world = make_world(
        update_resources_interval=interval,
        sync_power_state_interval=interval,
        audit_interval=interval,
    )
    for task in world.manager.periodic_tasks():
        assert spacing <= task._delay() <= spacing + 1.0
    caplog.clear()
    world.manager._audit()
    assert ("Final resource view" in caplog.text) is (interval >= 0)


def test_the_audit_tells_the_books(world):
    world.settle()
    world.driver.resources.local_gb = 111710
    world.manager._audit()
    world.settle()
    assert world.conductor.items(build.Picture)[-1].picture.local_gb == 111710


def test_power_states_are_synchronised_unless_switched_off(make_world):
    for interval, count in ((600, 1), (-1, 0)):
        world = make_world(sync_power_state_interval=interval)
        request = request_for()
        world.boot(request)
        world.driver.guests[request.instance.uuid].power_state = PowerState.SHUTDOWN
        world.manager._sync_power_states()
        world.settle()
        assert len(world.conductor.items(build.PowerReport)) == count
        world.kill()


def test_a_reload_takes_over_and_tells_at_once(world):
    world.settle()
    before = world.books().generation
    world.conf.set_override("ram_allocation_ratio", 1.0)
    world.conf.set_override("reserved_host_memory_mb", 1024)
    world.driver.resources.local_gb = 300
    world.manager.reload()
    world.report()
    picture = world.conductor.items(build.Picture)[-1].picture
    assert (picture.ram_allocation_ratio, picture.memory_mb_used, picture.local_gb) == (
        1.0,
        1024,
        300,
    )
    assert picture.generation.newer_than(before)
    assert world.driver.reloaded == 1


def test_a_drain_leaves_what_has_not_begun(world):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.manager.drain(0.0)
    assert world.hand.wait_idle(0.0)
    world.report()
    assert world.conductor.items(build.Begin) == []
    world.manager.build_and_run_instances([request_for()])
    world.manager.destroy_instances([destroy_for(request, action_id=9)])
    assert world.hand.wait_idle(0.0), "nothing new is taken"


def test_a_drain_drops_a_begin_whose_answer_is_on_its_way(world):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.conductor.in_flight = lambda report: world.manager.drain(0.0)
    world.report()
    assert world.work() == 0
    # It has begun there; the next start gets it again.
    world.conductor.in_flight = lambda report: None
    world.restart()
    world.boot(again(request))
    assert world.driver.running() == {request.instance.uuid}


def test_a_drain_leaves_begun_work_that_does_not_end_in_time(world, caplog):
    request = request_for()
    world.manager.build_and_run_instances([request])
    world.report()
    world.manager.drain(0.0)
    assert "left to the next start" in caplog.text
    world.settle()
    assert world.driver.running() == {request.instance.uuid}, "what has begun may still finish"


def test_the_console(world):
    request = request_for()
    uuid = request.instance.uuid
    [(_, [endpoint])] = world.manager.endpoints()
    with pytest.raises(messaging.ExpectedException):
        endpoint.get_console_output(None, uuid, None)
    with pytest.raises(exception.InstanceNotReady):
        world.manager.get_console_output(uuid, None)
    world.driver.add(uuid)
    world.driver.console[uuid] = "a\nb\nc\n"
    for length, text in ((None, "a\nb\nc\n"), (-1, "a\nb\nc\n"), (2, "b\nc\n"), (9, "a\nb\nc\n")):
        assert endpoint.get_console_output(None, uuid, length) == text
    assert endpoint.get_console_output(None, uuid, 0) == ""


def test_the_fence_is_one_report_earlier_than_down(make_world):
    world = make_world(service_down_time=4, report_interval=1)
    assert world.host.fence.limit == 3.0


def test_a_failed_start_says_why_and_ends_the_process(make_world):
    world = make_world(started=False)
    failures = []
    other = make_world()
    second = manager_module.ComputeManager(
        world.conf, world.conductor, world.driver, world.network, world.volumes, failures.append
    )
    with pytest.raises(exception.ConfigurationError):
        second.init_host()
    assert "another novalite-compute has" in failures[0]
    assert world.conductor.registered == []
    other.kill()


@pytest.fixture
def real(make_conf):
    """Return a compute with its own threads on the real driver, and its conductor."""
    conf = make_conf(report_interval=1, service_down_time=4)
    conductor, network, failures = doubles.Conductor(), doubles.Network(), []
    driver = loader.load_driver(conf, "host1")
    volumes = doubles.Volumes()
    compute = manager_module.ComputeManager(
        conf, conductor, driver, network, volumes, failures.append
    )
    compute.init_host()
    yield compute, conductor
    compute.stop()
    assert failures == []


def test_the_whole_life_with_threads_and_the_real_driver(real):
    compute, conductor = real
    requests = [request_for(networks=[PRIVATE], node="host1") for _ in range(8)]
    compute.build_and_run_instances(requests)
    assert compute.host.hand.wait_idle(20.0)
    guests = compute.host.driver.list_guests()
    assert {guest.instance_uuid for guest in guests} == {r.instance.uuid for r in requests}
    assert all(guest.metadata.done for guest in guests)
    assert all(guest.power_state is PowerState.RUNNING for guest in guests)
    assert all(conductor.rows[request.action_id].active for request in requests)
    [node] = compute.host.tracker.nodes()
    assert compute.host.tracker.picture(node).memory_mb_used == 512 + 8 * 512

    destroys = [destroy_for(request, action_id=900 + n) for n, request in enumerate(requests)]
    compute.destroy_instances(destroys)
    assert compute.host.hand.wait_idle(20.0)
    assert compute.host.driver.list_guests() == []
    assert compute.host.tracker.picture(node).memory_mb_used == 512


def test_reload_takes_over_what_was_read_at_the_start(world):
    world.conf.set_override("ram_allocation_ratio", 3.0)
    world.conf.set_override("cpu_allocation_ratio", 0.0)
    world.conf.set_override("disk_allocation_ratio", 2.0)
    world.conf.set_override("reserved_host_memory_mb", 1024)
    world.conf.set_override("reserved_host_disk_mb", 2048)
    world.conf.set_override("reserved_host_cpus", 2)
    world.conf.set_override("max_concurrent_builds", 3)
    world.conf.set_override("service_down_time", 100)
    world.conf.set_override("report_interval", 20)
    world.manager.reload()
    books = world.books()
    assert (books.cpu_allocation_ratio, books.ram_allocation_ratio) == (16.0, 3.0)
    assert books.disk_allocation_ratio == 2.0
    assert (books.memory_mb_used, books.local_gb_used, books.vcpus_used) == (1024, 2, 2)
    assert world.host.builds.size == 3
    assert world.host.fence.limit == 80.0


def test_reload_asks_for_an_acknowledgement_at_once(world):
    world.host.reporter.send()
    assert world.host.reporter._next_at() == world.clock() + 10.0
    world.manager.reload()
    assert world.host.reporter._next_at() == world.clock()
