# SPDX-License-Identifier: Apache-2.0
"""What a host counts, how far it can be filled, and that all say the same of it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.functional import faults, lines
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

Make = Callable[..., Cloud]

V01, V04 = "compute1", "compute2"
OWN = {
    V01: {
        "DEFAULT": {"reserved_host_memory_mb": 0},
        "fake_libvirt": {"memory_mb": 10240, "vcpus": 64, "local_gb": 1000},
    },
    # The standard host: 8 vcpus, 16384 MB, 200 GB, 512 MB reserved.
    V04: {},
}
FULL = "No valid host was found. There are not enough hosts available. 2 hosts: ComputeFilter 1, "


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    return make_class_cloud(computes=len(OWN), own=OWN)


class Host:
    """The only host that is enabled, which gets servers of any size."""

    def __init__(self, cloud: Cloud, name: str):
        self.cloud = cloud
        self.api = cloud.api
        self.name = name
        for other in OWN:
            faults.enable(cloud, other, other == name)

    def shown(self) -> dict[str, Any]:
        """Return the host's record as the API has it."""
        found = self.api.get("/os-hypervisors/detail")["hypervisors"]
        return next(host for host in found if host["hypervisor_hostname"] == self.name)

    def statistics(self) -> dict[str, Any]:
        """Return the sums over all hosts."""
        sums: dict[str, Any] = self.api.get("/os-hypervisors/statistics")["hypervisor_statistics"]
        return sums

    def wait_used(self, **wanted: int) -> None:
        """Wait until the host's record has these numbers."""

        def reached() -> bool:
            shown = self.shown()
            assert {name: shown[name] for name in wanted} == wanted
            return True

        eventually(reached)

    def reserve(self, **options: int) -> None:
        """Let the host keep something back for itself."""
        self.cloud.configure({"DEFAULT": options}, self.name)
        self.cloud.reload(self.name)

    def boot(self, ram: int, vcpus: int = 1, count: int = 1) -> list[str]:
        """Ask for servers of a size."""
        name = f"{vcpus}x{ram}"
        known = {flavor["name"]: flavor["id"] for flavor in self.api.get("/flavors")["flavors"]}
        flavor = known.get(name) or self.api.flavor(name, ram=ram, vcpus=vcpus)
        return self.api.boot_many(count, flavor=flavor)

    def takes(self, ram: int, vcpus: int = 1, count: int = 1) -> list[str]:
        """Boot servers that must become ACTIVE."""
        uuids = self.boot(ram, vcpus, count)
        assert set(self.api.wait_settled(uuids).values()) == {"ACTIVE"}
        return uuids

    def refuses(self, ram: int, vcpus: int = 1, *, filter_name: str) -> None:
        """Boot a server for which there is no room, and delete it."""
        [uuid] = self.boot(ram, vcpus)
        fault = self.api.wait(uuid, "ERROR")["fault"]
        assert fault["message"] == f"{FULL}{filter_name} 1."
        self.api.delete(uuid)

    def empty(self) -> None:
        """Delete all servers."""
        faults.remove_all(self.cloud)


class TestAccounting:
    """Two hosts; each test fills one of them while the other is disabled."""

    def test_v01_negative_free_memory(self, cloud: Cloud) -> None:
        host = Host(cloud, V01)
        host.wait_used(memory_mb=10240, memory_mb_used=0, free_ram_mb=10240, running_vms=0)
        host.takes(1024, count=13)
        host.wait_used(memory_mb_used=13312, free_ram_mb=-3072, running_vms=13)
        host.refuses(2049, filter_name="RamFilter")
        host.takes(2048)
        host.wait_used(memory_mb_used=15360, free_ram_mb=-5120, running_vms=14)
        host.refuses(64, filter_name="RamFilter")
        cloud.assert_books()
        view = "phys_ram=10240MB used_ram=15360MB"
        cloud.wait_log(V01, view)
        told = [line for line in lines.read(cloud, V01) if view in line.text]
        assert {line.level for line in told} == {"INFO"}
        warned = [line for line in lines.read(cloud, V01) if line.level != "INFO"]
        assert not [line for line in warned if "-5120" in line.text or "memory" in line.text]
        host.empty()
        host.wait_used(memory_mb_used=0, free_ram_mb=10240, local_gb_used=0, vcpus_used=0)

    def test_v04_nobody_overcommits_against_himself(self, cloud: Cloud) -> None:
        host = Host(cloud, V04)
        host.wait_used(vcpus=8, memory_mb=16384, memory_mb_used=512, local_gb=200)
        host.refuses(64, vcpus=9, filter_name="CoreFilter")
        host.takes(64, vcpus=8, count=16)
        host.wait_used(vcpus_used=128, memory_mb_used=512 + 16 * 64)
        host.refuses(64, vcpus=1, filter_name="CoreFilter")
        host.empty()
        host.refuses(16385, filter_name="RamFilter")
        host.takes(16384)
        host.wait_used(memory_mb_used=16896, free_ram_mb=-512)
        host.refuses(16384, filter_name="RamFilter")
        cloud.assert_books()
        host.empty()

    def test_v03_reservations(self, cloud: Cloud) -> None:
        host = Host(cloud, V04)
        for reserved_mb, used_gb in ((10240, 10), (1025, 2), (0, 0)):
            host.reserve(reserved_host_disk_mb=reserved_mb)
            host.wait_used(local_gb_used=used_gb, free_disk_gb=200 - used_gb)
        host.reserve(reserved_host_memory_mb=20000)
        host.wait_used(memory_mb_used=20000, free_ram_mb=-3616)
        told = cloud.wait_log(V04, "reserved_host_memory_mb = 20000 is more than the 16384 MB")
        assert " WARNING " in told
        # Scheduler and claim agree: exactly what 16384 x 1.5 - 20000 allows.
        host.refuses(4577, filter_name="RamFilter")
        host.takes(4576)
        host.wait_used(free_ram_mb=-8192)
        host.refuses(1, filter_name="RamFilter")
        cloud.assert_books()
        host.empty()
        host.reserve(reserved_host_memory_mb=512)
        host.wait_used(memory_mb_used=512)

    def test_hypervisors_and_usage_show_the_same_numbers(self, cloud: Cloud) -> None:
        host = Host(cloud, V04)
        before = host.shown()
        wide = {"name": "wide", "ram": 300, "vcpus": 3, "disk": 2, "OS-FLV-EXT-DATA:ephemeral": 4}
        flavor = cloud.api.post("/flavors", {"flavor": wide})["flavor"]["id"]
        uuids = cloud.api.boot_many(2, flavor=flavor)
        cloud.api.wait_settled(uuids)
        host.wait_used(running_vms=2)
        after = host.shown()
        usage = cloud.api.get("/os-simple-tenant-usage/admin")["tenant_usage"]
        mine = [each for each in usage["server_usages"] if each["instance_id"] in uuids]
        assert len(mine) == 2
        for shown, used in (
            ("vcpus_used", "vcpus"),
            ("memory_mb_used", "memory_mb"),
            ("local_gb_used", "local_gb"),
        ):
            assert after[shown] - before[shown] == sum(each[used] for each in mine), shown
        host.empty()

    @pytest.mark.parametrize("both", [True, False])
    def test_statistics_are_the_sum_of_enabled_hosts(self, cloud: Cloud, both: bool) -> None:
        host = Host(cloud, V04)
        faults.enable(cloud, V01, both)
        host.takes(64, count=2)
        eventually(lambda: host.statistics()["running_vms"] == 2)
        sums = host.statistics()
        hosts = cloud.api.get("/os-hypervisors/detail")["hypervisors"]
        counted = [each for each in hosts if each["status"] == "enabled"]
        assert sums["count"] == len(counted) == 1 + both
        for name in ("vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "free_ram_mb"):
            assert sums[name] == sum(each[name] for each in counted), name
        host.empty()

    def test_a_host_that_grows_takes_the_next_request(self, cloud: Cloud) -> None:
        host = Host(cloud, V04)
        host.refuses(20000, filter_name="RamFilter")
        cloud.configure({"fake_libvirt": {"memory_mb": 20480}}, V04)
        cloud.reload(V04)
        host.wait_used(memory_mb=20480)
        host.takes(20000)
        host.empty()
