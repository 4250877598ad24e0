# SPDX-License-Identifier: Apache-2.0
"""A host that refuses or fails: where the build goes next, when it ends, and who is told what."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from novalite.devcloud.client import Client, password_token
from novalite.devcloud.configuration import Sections
from tests.functional import faults, history, lines
from tests.functional.cloud import PASSWORDS, Cloud
from tests.functional.waiting import eventually

Make = Callable[..., Cloud]

HOSTS = [f"compute{number}" for number in range(1, 6)]
FIRST, SECOND = HOSTS[:2]
RETRIES = (
    "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures "
    "for instance {}."
)
SPAWN_ERROR = "the guest was told to fail by [fake_libvirt] fail_spawn"
ABORTED = "Build of instance {} aborted: Could not clean up failed build, not rescheduling"


@pytest.fixture(scope="class")
def five(make_class_cloud: Make) -> Cloud:
    # The first host is the roomiest, so it is chosen first, however often it failed before.
    own = {FIRST: {"fake_libvirt": {"memory_mb": 24576}}}
    forgiving: Sections = {"filter_scheduler": {"build_failure_weight_multiplier": 0}}
    return make_class_cloud(computes=5, own=own, neighbors=True, config=forgiving)


@pytest.fixture
def cloud(five: Cloud) -> Iterator[Cloud]:
    """Five good hosts; after the test all servers are gone and the hosts are good again."""
    yield five
    faults.play(five, *HOSTS, fail_spawn=0, fail_destroy=0, spawn_delay=0)
    attempts(five, 3)
    only(five, *HOSTS)
    faults.remove_all(five)


def attempts(cloud: Cloud, number: int) -> None:
    """Set max_attempts for all who read it."""
    cloud.configure({"scheduler": {"max_attempts": number}})
    cloud.reload("conductor", "scheduler")


def only(cloud: Cloud, *hosts: str) -> None:
    """Let the scheduler use these hosts and no others."""
    for host in HOSTS:
        faults.enable(cloud, host, host in hosts)


def limit_ports(cloud: Cloud, project: str, limit: int) -> None:
    """Let the network service give a project so many ports; -1: any number."""
    token = password_token(cloud.endpoints.auth_url, "admin", PASSWORDS["admin"], "admin")
    client = Client(cloud.endpoints.network_url, {"X-Auth-Token": token})
    body = {"quota": {"port": limit}}
    assert client.request("PUT", f"/v2.0/quotas/{project}", body).status == 200


def tenant(cloud: Cloud) -> Any:
    """Return a client that is no administrator."""
    return cloud.client("alice", "wonderland")


def ended(cloud: Cloud, uuid: str) -> dict[str, Any]:
    """Wait for ERROR, check that the server holds nothing, and return its fault."""
    server = cloud.api.wait(uuid, "ERROR")
    assert server["OS-EXT-SRV-ATTR:host"] is None
    assert server["OS-EXT-STS:vm_state"] == "error" and server["OS-EXT-STS:power_state"] == 0
    assert server["addresses"] == {}
    assert not cloud.rows("select * from allocations where consumer = :uuid", uuid=uuid)
    fault: dict[str, Any] = server["fault"]
    assert fault["code"] == 500
    return fault


def fault_for_tenant(cloud: Cloud, uuid: str) -> dict[str, Any]:
    """Return the fault as the server's owner sees it; it names neither host nor place in code."""
    fault: dict[str, Any] = tenant(cloud).show(uuid)["fault"]
    assert set(fault) == {"code", "created", "message"}
    assert not [host for host in HOSTS if host in json.dumps(fault)]
    assert "Traceback" not in json.dumps(fault)
    return fault


class TestFailures:
    """Hosts whose hypervisor fails on purpose."""

    def test_v06_three_attempts(self, cloud: Cloud) -> None:
        faults.play(cloud, *HOSTS, fail_spawn=1)
        uuid = tenant(cloud).boot("a", networks="auto")
        fault = ended(cloud, uuid)
        hosts = history.spawns(cloud, uuid)
        assert len(hosts) == len(set(hosts)) == 3
        assert fault["message"] == RETRIES.format(uuid)
        assert fault_for_tenant(cloud, uuid)["message"] == fault["message"]
        for host in hosts:
            assert f"{host}: " in fault["details"]
            assert cloud.grep(host, rf"{uuid}.*Took \d+\.\d\d seconds to deallocate network")
        assert fault["details"].count(SPAWN_ERROR) >= 3
        events = history.events(cloud, uuid)
        spawns = [event for event in events if event.name == "compute_spawn"]
        assert [(event.host, event.attempt) for event in spawns] == list(
            zip(hosts, (1, 2, 3), strict=True)
        )
        assert {event.result for event in spawns} == {"Error"}
        assert faults.action(cloud, uuid)["state"] == "error"
        cloud.assert_books()

    def test_v06_one_attempt(self, cloud: Cloud) -> None:
        attempts(cloud, 1)
        faults.play(cloud, *HOSTS, fail_spawn=1)
        uuid = tenant(cloud).boot("a")
        fault = ended(cloud, uuid)
        assert len(history.spawns(cloud, uuid)) == 1
        assert fault["message"] == RETRIES.format(uuid)
        told = [line for line in lines.read(cloud) if uuid in (line.instance or line.text)]
        assert (6, "conductor") not in lines.steps(told)
        assert not [line for line in told if "schedul" in line.text.replace("scheduler", "")]
        cloud.assert_books()

    def test_the_next_host_takes_it(self, cloud: Cloud) -> None:
        faults.play(cloud, FIRST, fail_spawn=1)
        uuid = tenant(cloud).boot("a", networks="auto")
        host = cloud.api.wait(uuid)["OS-EXT-SRV-ATTR:host"]
        assert history.spawns(cloud, uuid) == [FIRST, host]
        action = faults.action(cloud, uuid)
        assert history.decoded(action["failures"]) == [FIRST]
        assert (action["attempt"], action["drives"]) == (2, 0)
        found = [line for line in lines.read(cloud, "conductor", "scheduler", *HOSTS)]
        assert lines.steps(line for line in found if line.instance == uuid) == [
            (2, "conductor"),
            (3, "scheduler"),
            (4, "conductor"),
            (5, FIRST),
            (2, "conductor"),
            (6, "conductor"),
            (4, "conductor"),
            (5, host),
        ]
        results = {
            event["result"]
            for event in cloud.api.action(uuid, action["request_id"])["events"]
            if event["event"] == "compute_spawn"
        }
        assert results == {"Error", "Success"}
        assert len(tenant(cloud).show(uuid)["addresses"]["private"]) == 1
        assert "fault" not in cloud.api.show(uuid)
        cloud.assert_books()

    def test_v07_the_candidates_are_used_up(self, cloud: Cloud) -> None:
        only(cloud, FIRST, SECOND)
        ten = cloud.api.flavor("ten", ram=10000)
        sixteen = cloud.api.flavor("sixteen", ram=16000)
        faults.play(cloud, FIRST, fail_spawn=1, spawn_delay=2)
        uuid = tenant(cloud).boot("a", flavor=ten)
        cloud.wait_log(FIRST, f"{uuid}.*Creating image")
        filler = cloud.api.boot("filler", flavor=sixteen)
        assert cloud.api.wait(filler)["OS-EXT-SRV-ATTR:host"] == SECOND
        assert cloud.api.show(uuid)["status"] == "BUILD"
        fault = ended(cloud, uuid)
        assert history.spawns(cloud, uuid) == [FIRST]
        message = fault_for_tenant(cloud, uuid)["message"]
        assert message.startswith("No valid host was found. ")
        assert "The candidate hosts were used up: the build failed on 1 of them." in message
        assert f"{FIRST}: " in fault["details"] and SPAWN_ERROR in fault["details"]
        assert f"{SECOND}: Insufficient compute resources: Free memory" in fault["details"]
        cloud.assert_books()
        used = cloud.rows(
            "select memory_mb_used from compute_nodes where hypervisor_hostname = :host", host=FIRST
        )
        assert used == [{"memory_mb_used": 512}]
        tenant(cloud).delete(uuid)
        tenant(cloud).wait_gone(uuid)

    def test_what_every_host_would_refuse_is_tried_once(self, cloud: Cloud) -> None:
        limit_ports(cloud, "wonderland", 0)
        try:
            uuid = tenant(cloud).boot("a", networks="auto")
            fault = ended(cloud, uuid)
        finally:
            limit_ports(cloud, "wonderland", -1)
        assert fault["message"].startswith(f"Build of instance {uuid} aborted: ")
        assert "Quota exceeded for resources: ['port']" in fault["message"]
        assert fault_for_tenant(cloud, uuid)["message"] == fault["message"]
        networks = [each for each in history.events(cloud, uuid) if each.name == "compute_network"]
        assert [(each.attempt, each.result) for each in networks] == [(1, "Error")]
        action = faults.action(cloud, uuid)
        assert (action["attempt"], history.decoded(action["failures"])) == (1, [])
        cloud.assert_books()

    def test_a_guest_that_does_not_go(self, cloud: Cloud) -> None:
        faults.play(cloud, FIRST, fail_spawn=1, fail_destroy=1)
        uuid = tenant(cloud).boot("a", networks="auto")
        fault = ended(cloud, uuid)
        assert fault["message"] == ABORTED.format(uuid)
        assert fault_for_tenant(cloud, uuid)["message"] == fault["message"]
        assert SPAWN_ERROR in fault["details"]
        assert history.spawns(cloud, uuid) == [FIRST]
        assert faults.hosts_of(cloud, uuid) == [FIRST]
        warning = cloud.grep(FIRST, f"{uuid}.*The failed spawn left its domain behind")
        assert warning and " WARNING " in warning[0]
        left = cloud.rows("select host from cleanups where instance_uuid = :uuid", uuid=uuid)
        assert left == [{"host": FIRST}]
        # It goes when it can, and the host's next server is none the worse for it.
        faults.play(cloud, FIRST, fail_spawn=0, fail_destroy=0)
        eventually(lambda: faults.hosts_of(cloud, uuid) == [], 20.0, "the guest is gone")
        cloud.assert_books()
        assert cloud.api.wait(cloud.api.boot("b"))["OS-EXT-SRV-ATTR:host"] == FIRST


# Seconds for which the scheduler goes on with what it knows.
LONG = 600
USUAL: Sections = {
    "DEFAULT": {"reserved_host_memory_mb": 512, "reserved_host_disk_mb": 0},
    "fake_libvirt": {"local_gb": 199},
}
# What the host says of a claim of 60 GB under the limit of its former disk.
INCIDENT = [
    "Attempting claim: memory 2048 MB, disk 60 GB, vcpus 1 CPU",
    "Total disk: 111710 GB, used: 181.00 GB",
    "disk limit: 199.00 GB, free: 18.00 GB",
]
REFUSED = "Insufficient compute resources: Free disk 18.00 GB < requested 60 GB."
SEEN = {"memory_mb_used": 512, "local_gb": 199, "local_gb_used": 0}


@pytest.fixture(scope="class")
def two(make_class_cloud: Make) -> Cloud:
    own = {
        FIRST: USUAL,
        SECOND: {"fake_libvirt": {"local_gb": 50, "memory_mb": 8192}},
    }
    return make_class_cloud(computes=2, own=own, config={"scheduler": {"max_attempts": 1}})


@pytest.fixture
def held_back(two: Cloud) -> Iterator[Cloud]:
    """The scheduler knows both hosts as they are now and will not look again by itself."""
    change(two, USUAL, **SEEN)
    settings = {"DEFAULT": {"service_down_time": LONG}, "testing": {"refresh_delay": LONG}}
    two.configure(settings, "scheduler")
    two.api.wait(two.api.boot("look"))
    faults.remove_all(two)
    two.reload("scheduler")
    yield two
    faults.remove_all(two)
    two.configure({"testing": {"refresh_delay": 0}}, "scheduler")
    two.reload("scheduler")


def change(cloud: Cloud, sections: Sections, **shown: int) -> None:
    """Change the first host behind the scheduler's back, and wait until its record has it."""
    cloud.configure(sections, FIRST)
    cloud.reload(FIRST)

    def known() -> bool:
        row = cloud.rows(
            "select * from compute_nodes where hypervisor_hostname = :host", host=FIRST
        )[0]
        return {name: row[name] for name in shown} == shown

    eventually(known, what=f"{FIRST} has {shown}")


class TestStalePicture:
    """A claim refused because the scheduler's picture was old is no failure of anybody.

    One attempt is all that there is, so it would not be forgiven.
    """

    def test_it_goes_elsewhere(self, held_back: Cloud) -> None:
        cloud = held_back
        change(cloud, {"DEFAULT": {"reserved_host_memory_mb": 24570}}, memory_mb_used=24570)
        uuid = cloud.api.boot()
        assert cloud.api.wait(uuid)["OS-EXT-SRV-ATTR:host"] == SECOND
        refused = cloud.grep(FIRST, f"{uuid}.*Insufficient compute resources")
        assert len(refused) == 1
        assert refused[0].endswith(
            "Insufficient compute resources: Free memory 6.00 MB < requested 64 MB. (the limits "
            "are from an older picture of this host)"
        )
        self.assert_forgiven(cloud, uuid)
        assert history.spawns(cloud, uuid) == [SECOND]

    def test_the_incident_of_the_stale_limits(self, held_back: Cloud) -> None:
        cloud = held_back
        uuid = self.boot_sixty(cloud)
        assert cloud.api.wait(uuid)["OS-EXT-SRV-ATTR:host"] == FIRST
        claims = self.claims(cloud, uuid)
        assert [text for text in claims if "disk" in text] == [
            *INCIDENT,
            f"{REFUSED} (the limits are from an older picture of this host)",
            *INCIDENT[:2],
            "disk limit: 111710.00 GB, free: 111529.00 GB",
        ]
        assert claims[-1] == "Claim successful"
        self.assert_forgiven(cloud, uuid)

    def test_the_incident_happens_without_the_look_at_generations(self, held_back: Cloud) -> None:
        cloud = held_back
        cloud.configure({"testing": {"ignore_generations": True}}, FIRST)
        try:
            uuid = self.boot_sixty(cloud)
            fault = cloud.api.wait(uuid, "ERROR")["fault"]
        finally:
            cloud.configure({"testing": {"ignore_generations": False}}, FIRST)
            cloud.reload(FIRST)
        assert fault["message"] == RETRIES.format(uuid)
        assert fault["details"] == f"{FIRST}: {REFUSED}"
        claims = self.claims(cloud, uuid)
        assert [text for text in claims if "disk" in text] == [*INCIDENT, REFUSED]
        assert history.decoded(faults.action(cloud, uuid)["failures"]) == [FIRST]
        cloud.assert_books()

    def boot_sixty(self, cloud: Cloud) -> str:
        """Let the disk grow unseen, and ask for 60 GB of it."""
        sections: Sections = {
            "DEFAULT": {"reserved_host_disk_mb": 181 * 1024},
            "fake_libvirt": {"local_gb": 111710},
        }
        change(cloud, sections, local_gb=111710, local_gb_used=181)
        known = {flavor["name"]: flavor["id"] for flavor in cloud.api.get("/flavors")["flavors"]}
        flavor = known.get("sixty") or cloud.api.flavor("sixty", ram=2048, disk=60)
        return cloud.api.boot(flavor=flavor)

    def claims(self, cloud: Cloud, uuid: str) -> list[str]:
        """Return what the first host logs of the server's claims."""
        return [
            line.text
            for line in lines.read(cloud, FIRST)
            if line.instance == uuid and line.logger == "novalite.compute.claims"
        ]

    def test_no_other_host_has_room(self, held_back: Cloud) -> None:
        cloud = held_back
        flavor = cloud.api.flavor("nine", ram=9000)
        change(cloud, {"DEFAULT": {"reserved_host_memory_mb": 24570}}, memory_mb_used=24570)
        uuid = cloud.api.boot(flavor=flavor)
        fault = cloud.api.wait(uuid, "ERROR")["fault"]
        assert fault["message"] == (
            "No valid host was found. There are not enough hosts available. 2 hosts: RamFilter 2."
        )
        assert f"{FIRST}: Insufficient compute resources: Free memory 6.00 MB" in fault["details"]
        assert history.spawns(cloud, uuid) == []

    def assert_forgiven(self, cloud: Cloud, uuid: str) -> None:
        """Check that the refusal is told, cost a new selection, and counts as no failure."""
        found = [line for line in lines.read(cloud, "scheduler") if line.instance == uuid]
        assert lines.steps(found) == [(3, "scheduler")] * 2
        action = faults.action(cloud, uuid)
        assert history.decoded(action["failures"]) == []
        assert (action["attempt"], action["drives"]) == (2, 1)
        claims = [event for event in history.events(cloud, uuid) if event.name == "compute_claim"]
        assert [event.result for event in claims] == ["Error", "Success"]
        generations = [
            (tuple(event.details["limits_generation"]), tuple(event.details["generation"]))
            for event in claims
        ]
        assert generations[0][0] < generations[0][1]
        cloud.assert_books()
