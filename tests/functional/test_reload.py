# SPDX-License-Identifier: Apache-2.0
"""SIGHUP and rolling restarts while users go on: no request fails, no build is lost."""

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from novalite.devcloud import configuration
from tests.functional.cloud import Cloud
from tests.functional.load import Load
from tests.functional.waiting import eventually

# A process takes as long to start as the machine is busy, and here many are started in turn.
pytestmark = [pytest.mark.drill, pytest.mark.timeout(900)]

Make = Callable[..., Cloud]

# Between the two signals of a pair, in seconds.
APART = 0.05
COMPUTES = ("compute1", "compute2")
REREAD = "has read its options again"
CONFIG: configuration.Sections = {
    "DEFAULT": {"service_down_time": 20, "report_interval": 2, "graceful_shutdown_timeout": 20},
    "conductor": {"task_lease": 6, "task_renew_interval": 2, "begin_timeout": 6},
    "fake_libvirt": {"vcpus": 1000, "memory_mb": 1000000, "local_gb": 100000, "spawn_delay": 0.5},
}


def assert_all_built(cloud: Cloud, load: Load, what: str) -> None:
    """Nothing failed, and everything that was asked for is there; print the counts."""
    states = cloud.api.wait_settled(load.servers, 90.0)
    lost = {uuid: state for uuid, state in states.items() if state != "ACTIVE"}
    print(
        f"\n{what}: {load.requests} requests, {len(load.failures)} failed; "
        f"{len(load.servers)} servers asked for, {len(lost)} not ACTIVE"
    )
    assert load.failures == []
    assert lost == {}
    assert load.servers


def pid(cloud: Cloud, name: str) -> int:
    """Return the pid of a service's process, the parent if it has workers."""
    found = cloud.services.process(name).pid
    assert found is not None, f"{name} does not run"
    return found


def sockets(number: int) -> set[str]:
    """Return the TCP connections of a process, without listening sockets."""
    listening, connected = set(), set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{number}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            (listening if fields[3] == "0A" else connected).add(f"socket:[{fields[9]}]")
    own = set()
    for entry in Path(f"/proc/{number}/fd").iterdir():
        try:
            own.add(os.readlink(entry))
        except FileNotFoundError:
            continue
    return own & connected


def children(number: int) -> list[int]:
    """Return the workers of a parent."""
    return [int(one) for one in Path(f"/proc/{number}/task/{number}/children").read_text().split()]


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    """Two workers of the API, of the conductor and of the scheduler; two hosts."""
    workers = {"conductor": {"workers": 2}, "scheduler": {"workers": 2}}
    config = configuration.merge(CONFIG, workers)
    return make_class_cloud(computes=2, api_workers=2, config=config)


class TestWorkers:
    """Two workers of each service under load."""

    def test_v19_two_hundred_calls_are_answered(self, cloud: Cloud) -> None:
        servers = [cloud.api.boot() for _ in range(20)]
        cloud.api.wait_settled(servers)
        with Load(cloud, rate=40.0) as load:
            eventually(lambda: load.requests >= 200, 60.0, "200 requests")
        assert_all_built(cloud, load, "200 requests to two workers")

    def test_v19_no_two_processes_share_a_connection(self, cloud: Cloud) -> None:
        for name in ("api", "conductor", "scheduler"):
            parent = pid(cloud, name)
            workers = children(parent)
            assert len(workers) == 2
            assert sockets(parent) == set(), f"the parent of {name} holds a connection"
            first, second = map(sockets, workers)
            assert first | second and not first & second

    def test_workers_share_one_service_record(self, cloud: Cloud) -> None:
        assert sorted(cloud.api.services()) == [
            ("nova-compute", "compute1"),
            ("nova-compute", "compute2"),
            ("nova-conductor", "controller"),
            ("nova-scheduler", "controller"),
        ]
        assert set(cloud.api.services().values()) == {"up"}

    def test_v24_sighup_under_load(self, cloud: Cloud, rounds: range) -> None:
        names = ("api", "conductor", "scheduler", *COMPUTES)
        pids = {name: pid(cloud, name) for name in names}
        repeats = 20 if len(rounds) > 1 else 2
        with Load(cloud) as load:
            for number in range(repeats):
                cloud.configure({"DEFAULT": {"debug": number % 2 == 0}})
                before = {name: len(cloud.grep(name, REREAD)) for name in names}
                for name in names:
                    for _ in range(2):
                        assert cloud.services.process(name).send_signal(signal.SIGHUP)
                        time.sleep(APART)
                eventually(
                    lambda before=before: all(  # type: ignore[misc]
                        len(cloud.grep(name, REREAD)) > count for name, count in before.items()
                    ),
                    30.0,
                    "all have read their options",
                )
            eventually(lambda: load.requests >= 100, 60.0, "100 requests")
        assert_all_built(cloud, load, f"SIGHUP, {repeats} pairs to each service")
        assert {name: pid(cloud, name) for name in names} == pids
        assert len(cloud.grep("compute1", "DEFAULT.debug: False -> True")) == repeats // 2

    @pytest.mark.parametrize("name", ["api", "conductor", "scheduler"])
    def test_a_rolling_restart_under_load(self, cloud: Cloud, name: str, rounds: range) -> None:
        parent = pid(cloud, name)
        with Load(cloud) as load:
            for number in rounds:
                former = children(parent)
                assert cloud.services.process(name).send_signal(signal.SIGUSR1)
                eventually(
                    lambda number=number: (  # type: ignore[misc]
                        len(cloud.grep(name, "All workers have been restarted")) > number
                    ),
                    240.0,
                    f"the workers of {name} are restarted",
                )
                assert not set(former) & set(children(parent))
        assert_all_built(cloud, load, f"rolling restart of {name}, {len(rounds)} times")
        assert pid(cloud, name) == parent

    def test_a_graceful_restart_of_each_compute_under_load(
        self, cloud: Cloud, rounds: range
    ) -> None:
        with Load(cloud) as load:
            for _ in rounds:
                for name in COMPUTES:
                    assert cloud.services.stop([name], timeout=30.0) == []
                    cloud.start(name)
        assert_all_built(cloud, load, f"restart of each compute, {len(rounds)} times")
        cloud.assert_books()

    def test_a_killed_worker_of_the_api_is_replaced(self, cloud: Cloud) -> None:
        parent = pid(cloud, "api")
        killed, other = children(parent)
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: len(set(children(parent)) - {killed}) == 2, what="it is replaced")
        cloud.wait_log("api", r"Worker \d is ready", 60.0)
        assert other in children(parent)
        assert cloud.api.request("GET", "/servers").status == 200

    def test_sigterm_ends_all_in_time(self, cloud: Cloud) -> None:
        workers = {name: children(pid(cloud, name)) for name in ("api", "conductor", "scheduler")}
        for name, found in workers.items():
            assert cloud.services.stop([name], timeout=30.0) == []
            assert cloud.services.process(name).exit_code in (0, None)
            assert not [one for one in found if Path(f"/proc/{one}").exists()]


def test_what_sighup_changes_and_what_it_does_not(make_cloud: Make) -> None:
    cloud = make_cloud(config={"DEFAULT": {"service_down_time": 10, "report_interval": 2}})
    cloud.configure(
        {
            "DEFAULT": {
                "ram_allocation_ratio": 3.0,
                "reserved_host_memory_mb": 700,
                "max_concurrent_builds": 3,
                "host": "renamed",
                "service_down_time": 8,
                "report_interval": 1,
            },
            "fake_libvirt": {"memory_mb": 2048},
            "filter_scheduler": {"enabled_filters": "ComputeFilter"},
            "api": {"max_limit": 1},
            "quota": {"instances": 0},
        },
        "compute1",
        "scheduler",
        "conductor",
        "api",
    )
    cloud.reload("compute1", "scheduler", "conductor", "api")
    for line in (
        r"DEFAULT.ram_allocation_ratio: 1.5 -> 3.0",
        r"DEFAULT.max_concurrent_builds: 10 -> 3",
        r"fake_libvirt.memory_mb: 16384 -> 2048",
        r"DEFAULT.host: needs a restart; compute1 stays in force",
        r"This host fences itself after 7 s from now on",
    ):
        cloud.wait_log("compute1", re.escape(line))
    cloud.wait_log("scheduler", r"enabled_filters: ComputeFilter,.* -> ComputeFilter$")
    cloud.wait_log("conductor", r"DEFAULT.service_down_time: 10 -> 8")
    node = cloud.api.get("/os-hypervisors/detail")["hypervisors"][0]
    assert (node["memory_mb"], node["memory_mb_used"]) == (2048, 700)
    assert len(cloud.api.get("/flavors?limit=1")["flavors"]) == 1
    assert cloud.api.request("GET", "/flavors?limit=2").status == 200
    assert cloud.api.create().status == 403, "no server is allowed now"
    # One wrong value, and nothing changes.
    wrong = {"reserved_host_memory_mb": 900, "report_interval": 0}
    cloud.configure({"DEFAULT": wrong}, "compute1")
    cloud.reload("compute1")
    cloud.wait_log("compute1", r"keeps its former options: .*report_interval = 0: not valid")
    assert not cloud.grep("compute1", r"-> 900")
    cloud.wait_log("compute1", r"Final resource view: .* used_ram=700MB")
    assert not cloud.grep("compute1", r"used_ram=900MB")
