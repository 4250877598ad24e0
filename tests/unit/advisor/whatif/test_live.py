# SPDX-License-Identifier: Apache-2.0
"""The hosts of a running cloud, from what its API answers."""

from pathlib import Path
from typing import Any

from novalite.advisor.cloud import CloudError, Compute
from novalite.advisor.whatif import live
from tests.unit.advisor.whatif.sides import side


class PlayedCompute(Compute):
    """Answers of an API, by path."""

    def __init__(self, answers: dict[str, Any], capacity: Any):
        self.answers = answers
        self.answer = capacity

    def get(self, path: str) -> Any:
        return self.answers[path]

    def capacity(self, flavor: str, asked: dict[str, Any]) -> Any:
        if self.answer is None:
            raise CloudError("POST /novalite/capacity answered 404: not found")
        return self.answer


def hypervisor(name: str, **more: Any) -> dict[str, Any]:
    return {
        "hypervisor_hostname": f"{name}.example.org",
        "service": {"host": name},
        "state": "up",
        "status": "enabled",
        "memory_mb": 16384,
        "memory_mb_used": 5120,
        "vcpus": 8,
        "vcpus_used": 3,
        "local_gb": 200,
        "local_gb_used": 25,
        "running_vms": 2,
        "disk_available_least": 150,
        **more,
    }


def answers() -> dict[str, Any]:
    link = "http://127.0.0.1:8774/v2.1/os-hypervisors/detail?marker=1"
    return {
        "/os-hypervisors/detail": {
            "hypervisors": [hypervisor("h1")],
            "hypervisors_links": [{"rel": "next", "href": link}],
        },
        "/os-hypervisors/detail?marker=1": {
            "hypervisors": [hypervisor("h2", state="down", status="disabled")]
        },
        "/os-aggregates": {
            "aggregates": [
                {
                    "id": 1,
                    "uuid": "u",
                    "name": "rack",
                    "availability_zone": "az1",
                    "metadata": {"availability_zone": "az1"},
                    "hosts": ["h1"],
                }
            ]
        },
        "/flavors?limit=1": {"flavors": [{"id": "1"}]},
    }


def test_the_hosts_of_a_cloud(tmp_path: Path) -> None:
    resources = [
        {"resource": "memory", "ratio": 2.0, "reserved": 1024},
        {"resource": "disk", "ratio": 1.0, "reserved": 5},
        {"resource": "vcpu", "ratio": 4.0, "reserved": 1},
    ]
    body = {"capacity": {"hosts": [{"node": "h1.example.org", "resources": resources}]}}
    found, notes = live.hosts(PlayedCompute(answers(), body), side(tmp_path))
    first, second = found
    assert notes == []
    assert (first.memory_mb_used, first.local_gb_used, first.vcpus_used) == (4096, 20, 2)
    assert first.own["ram_allocation_ratio"] == 2.0
    assert first.own["reserved_host_disk_mb"] == 5120.0
    assert [each.name for each in first.aggregates] == ["rack"]
    assert (second.up, second.disabled, second.aggregates) == (False, True, ())
    # As it is now, nothing has changed.
    picture = first.state(side(tmp_path), new=False).picture
    assert (picture.memory_mb_used, picture.local_gb_used, picture.vcpus_used) == (5120, 25, 3)


def test_a_cloud_that_does_not_tell_ratios(tmp_path: Path) -> None:
    old = side(tmp_path, "[DEFAULT]\nram_allocation_ratio = 3.0\n")
    found, notes = live.hosts(PlayedCompute(answers(), None), old)
    assert found[0].own["ram_allocation_ratio"] == 3.0
    assert found[0].memory_mb_used == 5120 - 512
    assert len(notes) == 1 and "those of the old files" in notes[0]
