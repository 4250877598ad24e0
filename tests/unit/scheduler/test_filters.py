# SPDX-License-Identifier: Apache-2.0
"""Each filter alone, and how names become filters."""

import pytest

from novalite import exception
from novalite.objects.reason import Reason
from novalite.scheduler import demand, filters
from novalite.scheduler.filters import base
from tests.unit.scheduler import fakes


def examine(name, host, **wanted):
    """What one filter says, and that a filter that skips itself would have said nothing."""
    made = filters.FILTERS[name]()
    asked = demand.of(fakes.spec(**wanted), made.reads)
    reason = made.examine(host, asked)
    assert made.applies(asked) or reason is None
    return reason


def test_compute_filter():
    assert examine("ComputeFilter", fakes.host_state()) is None
    assert examine("ComputeFilter", fakes.host_state(up=False)).code == "host_down"
    host = fakes.host_state(disabled=True)
    host.disabled_reason = "new disk"
    reason = examine("ComputeFilter", host)
    assert (reason.code, reason.detail) == ("host_disabled", "new disk")
    host = fakes.host_state(up=False)
    host.forced_down = True
    assert examine("ComputeFilter", host) == Reason("host_down", detail="forced down")


def test_retry_filter():
    assert examine("RetryFilter", fakes.host_state("h1")) is None
    assert examine("RetryFilter", fakes.host_state("h1"), ignore_hosts=["h2"]) is None
    reason = examine("RetryFilter", fakes.host_state("h1"), ignore_hosts=["h2", "h1"])
    assert reason.code == "already_tried"


def test_availability_zone_filter():
    host = fakes.host_state(zone="left")
    assert examine("AvailabilityZoneFilter", host) is None
    assert examine("AvailabilityZoneFilter", host, availability_zone="left") is None
    reason = examine("AvailabilityZoneFilter", host, availability_zone="right")
    assert (reason.code, reason.detail) == ("wrong_zone", "left")


@pytest.mark.parametrize(
    ("name", "used", "wanted", "code", "numbers"),
    [
        # need, have, limit, total, ratio, used, reserved
        (
            "RamFilter",
            {"memory_mb_used": 24000},
            {"memory_mb": 577},
            "not_enough_memory",
            (577, 576.0, 24576.0, 16384, 1.5, 24000, 512),
        ),
        (
            "RamFilter",
            {},
            {"memory_mb": 16385},
            "larger_than_host_memory",
            (16385, 16384, 24576.0, 16384, 1.5, 512, 512),
        ),
        (
            "DiskFilter",
            {"local_gb_used": 190, "reserved_host_disk_mb": 1025},
            {"root_gb": 11},
            "not_enough_disk",
            (11, 10.0, 200.0, 200, 1.0, 190, 2),
        ),
        (
            "DiskFilter",
            {"disk_available_least": 4},
            {"root_gb": 5},
            "not_enough_disk",
            (5, 4.0, 200.0, 200, 1.0, 196, 0),
        ),
        (
            "CoreFilter",
            {"vcpus_used": 126},
            {"vcpus": 3},
            "not_enough_vcpu",
            (3, 2.0, 128.0, 8, 16.0, 126, 0),
        ),
        (
            "CoreFilter",
            {},
            {"vcpus": 9},
            "larger_than_host_vcpu",
            (9, 8, 128.0, 8, 16.0, 0, 0),
        ),
    ],
)
def test_resource_filters_give_the_arithmetic(name, used, wanted, code, numbers):
    host = fakes.host_state(**used)
    reason = examine(name, host, **wanted)
    assert (reason.code, reason[1:8]) == (code, numbers)
    enough = {key: value - 1 for key, value in wanted.items()}
    assert examine(name, host, **enough) is None


def test_resource_filters_see_what_was_selected_since():
    host = fakes.host_state()
    host.consume("other", demand.of(fakes.spec(memory_mb=24064)).need)
    assert examine("RamFilter", host, memory_mb=1).have == 0.0
    host.release("other")
    assert examine("RamFilter", host, memory_mb=1) is None


def test_core_filter_passes_a_host_that_tells_no_threads():
    assert examine("CoreFilter", fakes.host_state(vcpus=0), vcpus=64) is None


@pytest.mark.parametrize(
    ("properties", "passes"),
    [
        ({}, True),
        ({"os_distro": "debian"}, True),
        ({"hw_architecture": "x86_64"}, True),
        ({"hw_architecture": "AMD64"}, True),
        ({"architecture": "i586"}, True),
        ({"hw_architecture": "aarch64"}, False),
        ({"img_hv_type": "QEMU", "hw_architecture": "i686"}, True),
        ({"img_hv_type": "kvm", "hw_architecture": "i686"}, False),
        ({"hypervisor_type": "vmware"}, False),
        ({"hw_vm_mode": "hvm"}, True),
        ({"hw_vm_mode": "hv"}, True),
        ({"vm_mode": "xen"}, False),
        ({"hw_architecture": "x86_64", "img_hv_type": "kvm", "hw_vm_mode": "hvm"}, True),
    ],
)
def test_image_properties_filter(properties, passes):
    reason = examine("ImagePropertiesFilter", fakes.host_state(), properties=properties)
    assert (reason is None) == passes
    if reason is not None:
        assert reason.code == "image_not_supported"


def test_an_image_with_wishes_needs_a_host_that_says_what_it_supports():
    host = fakes.host_state(supported_instances=[])
    assert examine("ImagePropertiesFilter", host) is None
    reason = examine("ImagePropertiesFilter", host, properties={"hw_architecture": "x86_64"})
    assert reason == Reason("image_not_supported", detail="x86_64 any any")


@pytest.mark.parametrize(
    ("versions", "passes"),
    [
        (">=6.0", True),
        (">=6.2.1", True),
        (">6.2.1", False),
        ("<6.2.1", False),
        ("<=6.2.1, !=6.2.0", True),
        (">=6.0,<6.2", False),
        ("==6.2.1", True),
        ("6.2.1", False),
        ("new", False),
    ],
)
def test_image_properties_filter_compares_versions(versions, passes):
    host = fakes.host_state(hypervisor_version=6002001)
    for name in ("img_hv_requested_version", "hypervisor_version_requires"):
        reason = examine("ImagePropertiesFilter", host, properties={name: versions})
        assert (reason is None) == passes
    if not passes:
        assert reason.detail == f"hypervisor {versions}, is 6.2.1"


def test_default_order_is_the_registry():
    assert [made.name for made in filters.load(filters.DEFAULT)] == list(filters.DEFAULT)


def test_every_unknown_filter_is_named_with_the_valid_ones():
    with pytest.raises(exception.ConfigurationError) as caught:
        filters.load(["RamFilter", "RamFilterr", "nowhere.at_all:Filter", "json:dumps", "Disk"])
    text = caught.value.message()
    for wrong in ("RamFilterr", "nowhere.at_all:Filter", "json:dumps", "Disk"):
        assert wrong in text
    assert all(name in text for name in filters.FILTERS)
    assert text.startswith("unknown filters: ")


def test_v37_a_filter_named_twice_runs_once():
    made = filters.load(["RamFilter", "DiskFilter", "RamFilter"])
    assert [type(one).__name__ for one in made] == ["RamFilter", "DiskFilter"]


class ProjectFilter(base.Filter):
    """A filter of somebody else's."""

    reads = ("project_id", "scheduler_hints")

    def examine(self, host, demand):
        if demand.scheduler_hints.get("no") == host.host or demand.project_id != "project":
            return Reason("not_for_you", detail=host.host)
        return None


class NosyFilter(base.Filter):
    def examine(self, host, demand):
        return None if demand.user_id else Reason("nobody")


def test_a_filter_of_ones_own_is_named_by_its_path_and_reads_what_it_declares():
    (made,) = filters.load([f"{__name__}:ProjectFilter"])
    asked = demand.of(fakes.spec(scheduler_hints={"no": "h1"}), made.reads)
    assert made.examine(fakes.host_state("h1"), asked).code == "not_for_you"
    assert made.examine(fakes.host_state("h2"), asked) is None


def test_reading_what_was_not_declared_is_an_error():
    with pytest.raises(AttributeError, match="user_id.*declare"):
        NosyFilter().examine(fakes.host_state(), demand.of(fakes.spec()))
