# SPDX-License-Identifier: Apache-2.0
"""The driver on the fake hypervisor: lifecycle, cancel, failure, numbers."""

import logging
import re
import threading
from concurrent import futures
from types import SimpleNamespace

import pytest

from novalite import exception
from novalite.objects.flavor import Flavor
from novalite.objects.states import PowerState
from novalite.virt.driver import GuestMetadata
from novalite.virt.libvirt import fakedomain

LOGGER = "novalite.virt.libvirt.driver"


def nothing_is_left(cloudlet, instance):
    assert cloudlet.driver.get_guest(instance.uuid) is None
    assert cloudlet.driver.list_guests() == []
    assert cloudlet.volumes() == []
    assert list(cloudlet.conf_directory.glob(f"*{instance.uuid}*")) == []


@pytest.fixture
def cloudlet(make_cloudlet, tmp_path):
    found = make_cloudlet()
    found.conf_directory = tmp_path / "instances" / "host1"
    return found


def test_spawn_leaves_the_guest_paused_and_finish_runs_it(cloudlet, make_instance, caplog):
    instance = make_instance()
    with caplog.at_level(logging.INFO, LOGGER):
        cloudlet.spawn(instance, action_id=9, attempt=2, token="abc")
        info = cloudlet.driver.get_guest(instance.uuid)
        assert (info.name, info.node) == (instance.name, "host1")
        assert info.power_state is PowerState.PAUSED
        assert info.metadata == GuestMetadata(9, 2, token="abc")
        cloudlet.driver.finish_spawn(instance)
    assert cloudlet.driver.power_state(instance.uuid) is PowerState.RUNNING
    assert [(r.name, r.levelname, r.getMessage(), r.instance) for r in caplog.records] == [
        (LOGGER, "INFO", text, f"[instance: {instance.uuid}] ")
        for text in ("Creating image", "Instance spawned successfully.")
    ]
    cloudlet.driver.finish_spawn(instance)  # asked twice, it still runs
    assert cloudlet.driver.power_state(instance.uuid) is PowerState.RUNNING


def test_destroy_takes_everything_away_and_may_be_repeated(cloudlet, make_instance):
    instance = make_instance(flavor=Flavor("1", "f", 1, 64, 1, ephemeral_gb=1, swap_mb=64))
    cloudlet.spawn(instance)
    assert len(cloudlet.volumes()) == 3
    cloudlet.driver.destroy(instance.uuid)
    nothing_is_left(cloudlet, instance)
    cloudlet.driver.destroy(instance.uuid)


def test_a_missing_guest_is_said(cloudlet, make_instance):
    instance = make_instance()
    driver = cloudlet.driver
    assert driver.power_state(instance.uuid) is PowerState.NOSTATE
    for call in (
        lambda: driver.finish_spawn(instance),
        lambda: driver.pause_guest(instance.uuid, by_fence=True),
        lambda: driver.unpause_guest(instance.uuid),
        lambda: driver.set_metadata(instance.uuid, GuestMetadata(1, 1)),
        lambda: driver.get_console_output(instance.uuid),
    ):
        with pytest.raises(exception.DomainNotFound) as caught:
            call()
        assert instance.uuid in caught.value.message()


def test_a_fence_leaves_its_mark(cloudlet, make_instance):
    instance = make_instance()
    cloudlet.spawn(instance, token="abc")
    cloudlet.driver.finish_spawn(instance)
    cloudlet.driver.pause_guest(instance.uuid, by_fence=True)
    info = cloudlet.driver.get_guest(instance.uuid)
    assert info.power_state is PowerState.PAUSED
    assert info.metadata == GuestMetadata(7, 1, paused_by_fence=True, token="abc")
    cloudlet.driver.pause_guest(instance.uuid, by_fence=True)
    cloudlet.driver.unpause_guest(instance.uuid)
    info = cloudlet.driver.get_guest(instance.uuid)
    assert info.power_state is PowerState.RUNNING
    assert info.metadata.paused_by_fence is False
    cloudlet.driver.unpause_guest(instance.uuid)
    cloudlet.driver.pause_guest(instance.uuid, by_fence=False)
    info = cloudlet.driver.get_guest(instance.uuid)
    assert info.power_state is PowerState.PAUSED
    assert info.metadata.paused_by_fence is False


def test_a_guest_that_a_fence_pauses_is_marked_before_it_is_paused(
    cloudlet, make_instance, monkeypatch
):
    instance = make_instance()
    cloudlet.spawn(instance)
    seen = []
    suspend = fakedomain.virDomain.suspend

    def looked_at(domain):
        seen.append(cloudlet.driver.get_guest(instance.uuid).metadata.paused_by_fence)
        return suspend(domain)

    monkeypatch.setattr(fakedomain.virDomain, "suspend", looked_at)
    cloudlet.driver.pause_guest(instance.uuid, by_fence=True)
    assert seen == [True]


def test_metadata_is_replaced(cloudlet, make_instance):
    instance = make_instance()
    cloudlet.spawn(instance)
    wanted = GuestMetadata(7, 1, done=True, token="new")
    cloudlet.driver.set_metadata(instance.uuid, wanted)
    assert cloudlet.driver.get_guest(instance.uuid).metadata == wanted
    assert instance.display_name in cloudlet.xml(instance)


@pytest.mark.parametrize("stage", [1, 2, 3, 4])
def test_cancel_between_the_stages_leaves_nothing(cloudlet, make_instance, stage):
    instance = make_instance()
    asked = []

    def cancelled():
        asked.append(len(cloudlet.volumes()))
        return len(asked) == stage

    with pytest.raises(exception.BuildCancelled) as caught:
        cloudlet.spawn(instance, cancelled=cancelled)
    assert instance.uuid in caught.value.message()
    assert asked == [0, 0, 1, 1][:stage]
    nothing_is_left(cloudlet, instance)
    cloudlet.spawn(instance)
    assert cloudlet.driver.power_state(instance.uuid) is PowerState.PAUSED


def test_cancel_that_cannot_clean_up_does_not_say_that_it_has(make_cloudlet, make_instance):
    cloudlet, instance = make_cloudlet(fake_libvirt__fail_destroy=1.0), make_instance()
    answers = iter([False, False, True])
    with pytest.raises(exception.HypervisorError):
        cloudlet.spawn(instance, cancelled=lambda: next(answers))
    assert cloudlet.driver.get_guest(instance.uuid) is not None


def test_a_failed_spawn_leaves_nothing(make_cloudlet, make_instance, tmp_path):
    cloudlet, instance = make_cloudlet(fake_libvirt__fail_spawn=1.0), make_instance()
    cloudlet.conf_directory = tmp_path / "instances" / "host1"
    with pytest.raises(exception.HypervisorError) as caught:
        cloudlet.spawn(instance)
    assert "process exited while connecting to monitor" in caught.value.message()
    nothing_is_left(cloudlet, instance)
    cloudlet.conf.set_override("fail_spawn", 0.0, "fake_libvirt")
    cloudlet.driver.reload(cloudlet.conf)
    cloudlet.spawn(instance)
    assert cloudlet.driver.power_state(instance.uuid) is PowerState.PAUSED


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({}, "vmx, svm"),
        ({"cpu_mode": "custom", "cpu_models": ["EPYC"], "cpu_model_extra_flags": ["svm"]}, "svm"),
        ({"cpu_mode": "custom", "cpu_models": ["EPYC"]}, None),
        ({"cpu_mode": "host-passthrough"}, None),
        ({"cpu_mode": "none"}, None),
    ],
)
def test_a_nested_host_starts_what_asks_for_no_feature_that_it_lacks(
    make_cloudlet, make_instance, tmp_path, options, missing
):
    named = {f"libvirt__{name}": value for name, value in options.items()}
    cloudlet = make_cloudlet(fake_libvirt__nested=["vmx", "svm"], **named)
    cloudlet.conf_directory = tmp_path / "instances" / "host1"
    instance = make_instance()
    if missing is None:
        cloudlet.spawn(instance)
        return
    with pytest.raises(exception.HypervisorError) as caught:
        cloudlet.spawn(instance)
    text = caught.value.message()
    assert f"Host CPU does not provide required features: {missing} (" in text
    mode = options.get("cpu_mode", "host-model")
    assert f"[libvirt] cpu_mode = {mode} asks for them, cpu_mode = none does not" in text
    nothing_is_left(cloudlet, instance)


def test_a_failed_spawn_that_cannot_be_removed_stays_to_be_found(
    make_cloudlet, make_instance, caplog
):
    cloudlet = make_cloudlet(fake_libvirt__fail_spawn=1.0, fake_libvirt__fail_destroy=1.0)
    instance = make_instance()
    with caplog.at_level(logging.WARNING, LOGGER):
        with pytest.raises(exception.HypervisorError) as caught:
            cloudlet.spawn(instance)
    assert "monitor" in caught.value.message()
    assert "left its domain behind" in caplog.text
    with pytest.raises(exception.HypervisorError):
        cloudlet.driver.destroy(instance.uuid)
    assert cloudlet.driver.get_guest(instance.uuid).power_state is PowerState.SHUTDOWN


def test_a_failed_destroy_leaves_the_guest_as_it_was(cloudlet, make_instance):
    instance = make_instance()
    cloudlet.spawn(instance)
    cloudlet.conf.set_override("fail_destroy", 1.0, "fake_libvirt")
    cloudlet.driver.reload(cloudlet.conf)
    with pytest.raises(exception.HypervisorError) as caught:
        cloudlet.driver.destroy(instance.uuid)
    assert not isinstance(caught.value, exception.DomainNotFound)
    assert cloudlet.driver.get_guest(instance.uuid).power_state is PowerState.PAUSED
    assert len(cloudlet.volumes()) == 1
    cloudlet.conf.set_override("fail_destroy", 0.0, "fake_libvirt")
    cloudlet.driver.reload(cloudlet.conf)
    cloudlet.driver.destroy(instance.uuid)
    nothing_is_left(cloudlet, instance)


def test_console(cloudlet, make_instance):
    instance = make_instance()
    cloudlet.spawn(instance)
    lines = cloudlet.driver.get_console_output(instance.uuid).splitlines()
    assert len(lines) > 10
    assert any(instance.name in line for line in lines)
    assert any(instance.uuid in line for line in lines)


def test_console_gives_the_end_of_a_long_log(cloudlet, make_instance):
    instance = make_instance()
    cloudlet.spawn(instance)
    path = cloudlet.conf_directory / f"{instance.uuid}_console.log"
    path.write_bytes(b"\xff" * 200_000 + b"end")
    text = cloudlet.driver.get_console_output(instance.uuid)
    assert len(text) == 100 * 1024 and text.endswith("\ufffdend")
    cloudlet.driver.destroy(instance.uuid)
    nothing_is_left(cloudlet, instance)


def test_a_guest_without_a_process_has_no_console(cloudlet, make_instance):
    instance = make_instance()
    cloudlet.spawn(instance)
    cloudlet.hypervisor.open("fake:///host1").lookupByUUIDString(instance.uuid).destroy()
    assert cloudlet.driver.get_console_output(instance.uuid) == ""


def test_numbers(make_cloudlet, make_instance):
    cloudlet = make_cloudlet(fake_libvirt__vcpus=6, fake_libvirt__local_gb=10)
    found = cloudlet.driver.host_resources("host1")
    assert (found.vcpus, found.memory_mb, found.local_gb) == (6, 16384, 10)
    assert found.disk_available_least == 10
    assert (found.hypervisor_type, found.hypervisor_version) == ("QEMU", 8002002)
    assert found.cpu_info["arch"] == "x86_64"
    assert found.cpu_info["topology"] == {"cells": 1, "sockets": 1, "cores": 6, "threads": 1}
    assert found.supported_instances == [
        ["x86_64", "kvm", "hvm"],
        ["x86_64", "qemu", "hvm"],
        ["i686", "qemu", "hvm"],
    ]
    with pytest.raises(exception.HypervisorError):
        cloudlet.driver.host_resources("elsewhere")


def test_disk_available_least_follows_the_disks_and_may_be_negative(make_cloudlet, make_instance):
    options = {"fake_libvirt__local_gb": 10}
    cloudlet = make_cloudlet(**options)

    def least(of):
        return of.driver.host_resources("host1").disk_available_least

    big = make_instance(flavor=Flavor("1", "f", 1, 64, 8, ephemeral_gb=1))
    volume_backed = make_instance(flavor=Flavor("1", "f", 1, 64, 8), image_ref="")
    other = make_instance(flavor=Flavor("1", "f", 1, 64, 4))
    cloudlet.spawn(big)
    assert least(cloudlet) == 1
    cloudlet.spawn(volume_backed)
    assert least(cloudlet) == 1
    cloudlet.spawn(other)
    assert least(cloudlet) == -3
    assert least(make_cloudlet(**options)) == -3  # read anew by the next process
    cloudlet.driver.destroy(big.uuid)
    cloudlet.driver.destroy(big.uuid)
    assert least(cloudlet) == 6
    cloudlet.driver.init_host()
    assert least(cloudlet) == 6


def test_numbers_look_at_no_domain_and_no_disk(cloudlet, make_instance):
    cloudlet.spawn(make_instance())
    cloudlet.hypervisor.close()  # whoever asks the store now fails
    assert cloudlet.driver.host_resources("host1").disk_available_least == 199


def test_reload_changes_the_host(cloudlet):
    cloudlet.conf.set_override("memory_mb", 1234, "fake_libvirt")
    cloudlet.conf.set_override("vcpus", 2, "fake_libvirt")
    cloudlet.conf.set_override("guest_overhead_mb", 48, "libvirt")
    assert cloudlet.driver.host_resources("host1").guest_overhead_mb == 0
    assert cloudlet.driver.host_resources("host1").memory_mb == 16384
    cloudlet.driver.reload(cloudlet.conf)
    found = cloudlet.driver.host_resources("host1")
    assert (found.memory_mb, found.vcpus, found.guest_overhead_mb) == (1234, 2, 48)
    assert found.cpu_info["topology"]["cores"] == 2


def test_reload_of_a_contradiction_changes_nothing(cloudlet, make_instance):
    cloudlet.conf.set_override("memory_mb", 1234, "fake_libvirt")
    cloudlet.conf.set_override("cpu_mode", "custom", "libvirt")
    with pytest.raises(exception.ConfigurationError):
        cloudlet.driver.reload(cloudlet.conf)
    assert cloudlet.driver.host_resources("host1").memory_mb == 16384
    instance = make_instance()
    cloudlet.spawn(instance)
    assert 'mode="host-model"' in cloudlet.xml(instance)
    cloudlet.conf.set_override("cpu_mode", "none", "libvirt")
    cloudlet.driver.reload(cloudlet.conf)
    other = make_instance()
    cloudlet.spawn(other)
    assert "mode=" not in cloudlet.xml(other).partition("<cpu")[2].partition(">")[0]


def test_a_model_that_the_hypervisor_does_not_know_is_refused_at_the_start(make_cloudlet):
    with pytest.raises(exception.ConfigurationError) as caught:
        make_cloudlet(libvirt__cpu_mode="custom", libvirt__cpu_models=["Haswel"])
    assert "Haswel" in caught.value.message() and "Haswell-noTSX" in caught.value.message()


def test_a_reload_takes_a_known_model_only(cloudlet, make_instance):
    cloudlet.conf.set_override("cpu_mode", "custom", "libvirt")
    cloudlet.conf.set_override("cpu_models", ["Haswel"], "libvirt")
    with pytest.raises(exception.ConfigurationError):
        cloudlet.driver.reload(cloudlet.conf)
    cloudlet.conf.set_override("cpu_models", ["Haswel", "epyc-rome"], "libvirt")
    cloudlet.driver.reload(cloudlet.conf)
    instance = make_instance()
    cloudlet.spawn(instance)
    assert "<model>EPYC-Rome</model>" in cloudlet.xml(instance)


def test_a_domain_of_somebody_else_is_left_alone(cloudlet):
    connection = cloudlet.hypervisor.open("fake:///host1")
    connection.defineXML("<domain type='kvm'><name>theirs</name><uuid>1-2</uuid></domain>")
    assert cloudlet.driver.list_guests() == []
    assert cloudlet.driver.get_guest("1-2") is None


def test_deletes_run_while_a_spawn_takes_its_time(make_cloudlet, make_instance, monkeypatch):
    cloudlet = make_cloudlet(fake_libvirt__spawn_delay=30.0)
    entered, released = threading.Event(), threading.Event()
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        entered.set()
        assert released.wait(10)

    old, new = make_instance(), make_instance()
    monkeypatch.setattr(fakedomain, "time", SimpleNamespace(sleep=slept.append))
    cloudlet.spawn(old)
    monkeypatch.setattr(fakedomain, "time", SimpleNamespace(sleep=sleep))
    with futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(cloudlet.spawn, new)
        assert entered.wait(10)
        states = {g.instance_uuid: g.power_state for g in cloudlet.driver.list_guests()}
        assert states == {old.uuid: PowerState.PAUSED, new.uuid: PowerState.SHUTDOWN}
        cloudlet.driver.destroy(old.uuid)
        released.set()
        running.result(10)
    assert slept == [30.0, 30.0]
    (left,) = cloudlet.driver.list_guests()
    assert (left.instance_uuid, left.power_state) == (new.uuid, PowerState.PAUSED)


def test_jitter_adds_to_the_delay(make_cloudlet, make_instance, monkeypatch):
    cloudlet = make_cloudlet(fake_libvirt__spawn_delay=1.0, fake_libvirt__spawn_jitter=0.5)
    slept = []
    monkeypatch.setattr(fakedomain, "time", SimpleNamespace(sleep=slept.append))
    for _ in range(20):
        cloudlet.spawn(make_instance())
    assert all(1.0 <= seconds <= 1.5 for seconds in slept) and len(set(slept)) > 1


def test_many_threads_spawn_and_destroy(cloudlet, make_instance):
    instances = [make_instance() for _ in range(40)]

    def life(instance):
        cloudlet.spawn(instance)
        cloudlet.driver.set_metadata(instance.uuid, GuestMetadata(7, 1, done=True))
        cloudlet.driver.finish_spawn(instance)
        if instance.id % 2:
            cloudlet.driver.destroy(instance.uuid)

    with futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(life, instances, timeout=30))
    left = {i.uuid for i in instances if not i.id % 2}
    guests = cloudlet.driver.list_guests()
    assert {guest.instance_uuid for guest in guests} == left
    assert {guest.power_state for guest in guests} == {PowerState.RUNNING}
    assert all(guest.metadata.done for guest in guests)
    least = cloudlet.driver.host_resources("host1").disk_available_least
    assert least == 200 - len(left)
    assert len(cloudlet.volumes()) == len(left)


def test_one_driver_of_many_nodes(make_cloudlet, make_instance):
    options = {"fake_libvirt__nodes": ["n1", "n2"], "fake_libvirt__local_gb": 10}
    cloudlet = make_cloudlet(**options)
    assert cloudlet.driver.nodes() == ["n1", "n2"]
    first, second = make_instance(node="n1"), make_instance(node="n2")
    for instance in (first, second):
        cloudlet.spawn(instance)
    again = make_cloudlet(**options)
    for driver in (cloudlet.driver, again.driver):
        assert {g.instance_uuid: g.node for g in driver.list_guests()} == {
            first.uuid: "n1",
            second.uuid: "n2",
        }
        assert driver.get_guest(second.uuid).node == "n2"
        assert driver.host_resources("n1").disk_available_least == 9
    with pytest.raises(exception.HypervisorError):
        cloudlet.spawn(make_instance())  # names no node
    first.node = "n2"
    with pytest.raises(exception.HypervisorError):
        cloudlet.spawn(first)  # would be there twice
    assert cloudlet.driver.get_guest(first.uuid).node == "n1"
    cloudlet.driver.destroy(first.uuid)
    cloudlet.spawn(first)
    assert cloudlet.driver.get_guest(first.uuid).node == "n2"
    assert cloudlet.driver.host_resources("n1").disk_available_least == 10


def test_host_uptime_reads_like_uptime(cloudlet: SimpleNamespace) -> None:
    text = cloudlet.driver.host_uptime(cloudlet.driver.nodes()[0])
    assert re.fullmatch(
        r" \d\d:\d\d:\d\d up (\d+ days, )?\d+:\d\d,  0 users,  load average: [\d., ]+", text
    )
