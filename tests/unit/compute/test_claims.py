# SPDX-License-Identifier: Apache-2.0
"""The verdict of a claim and its words."""

import logging

import pytest

from novalite import context
from novalite.compute import claims
from novalite.objects.capacity import Need
from novalite.objects.compute_node import ComputeNode
from novalite.objects.request_spec import Generation, Limits

OLD, NEW = Generation(1, 1), Generation(1, 9)


def node(**values):
    given = {
        "vcpus": 8,
        "memory_mb": 16384,
        "local_gb": 200,
        "memory_mb_used": 512,
    }
    return ComputeNode(host="host1", hypervisor_hostname="node1", **(given | values))


def reason(need, limits, *, changed=OLD, **values):
    return claims.test(node(**values), Need(*need), limits, changed)[1]


def test_no_limits_are_no_limits():
    assert reason((10**9, 10**9, 10**9), None) is None
    assert reason((10**9, 10**9, 10**9), Limits()) is None


def test_a_limit_is_kept_for_its_resource_only():
    limits = Limits(disk_gb=18.0, generation=NEW)
    assert reason((64, 60, 1), limits) == (
        "Insufficient compute resources: Free disk 18.00 GB < requested 60 GB."
    )
    assert reason((10**9, 18, 10**9), limits) is None


def test_reasons_are_joined_in_novas_order():
    limits = Limits(memory_mb=1024.0, disk_gb=1.0, vcpu=1.0, generation=NEW)
    assert reason((2048, 2, 2), limits) == (
        "Insufficient compute resources: Free memory 512.00 MB < requested 2048 MB; "
        "Free disk 1.00 GB < requested 2 GB; Free vcpu 1.00 VCPU < requested 2 VCPU."
    )


def test_a_server_may_not_overcommit_against_itself():
    limits = Limits(memory_mb=24576.0, generation=NEW)
    assert reason((16384, 1, 1), limits) is None
    assert reason((16385, 1, 1), limits) is not None


def test_what_the_file_system_can_still_take_counts():
    limits = Limits(disk_gb=200.0, generation=NEW)
    assert reason((64, 60, 1), limits, disk_available_least=50) is not None
    assert reason((64, 50, 1), limits, disk_available_least=50) is None


def test_totals_that_changed_after_the_limits_bind_as_well():
    limits = Limits(disk_gb=200.0, generation=OLD)
    shrunk = {"local_gb": 40}
    assert reason((64, 41, 1), limits, changed=NEW, **shrunk) is not None
    assert reason((64, 40, 1), limits, changed=NEW, **shrunk) is None
    # The ratio is the node's own, and a resource without a limit stays unlimited.
    cut = Limits(memory_mb=24576.0, generation=OLD)
    assert reason((2048, 10**6, 1), cut, changed=NEW, memory_mb=1024) is not None
    lower = {"ram_allocation_ratio": 1.0, "memory_mb_used": 15000}
    assert reason((2048, 10**6, 1), cut, changed=NEW, **lower) is not None
    assert reason((2048, 10**6, 1), cut, changed=OLD, **lower) is None


def test_totals_that_grew_do_not_lift_an_old_limit():
    limits = Limits(disk_gb=199.0, generation=OLD)
    grown = {"local_gb": 111710, "local_gb_used": 181}
    assert reason((64, 60, 1), limits, changed=NEW, **grown) == (
        "Insufficient compute resources: Free disk 18.00 GB < requested 60 GB."
    )


def verdict(limits, **values):
    need = Need(512, 1, 1)
    picture = node(generation=NEW, **values)
    rooms, why = claims.test(picture, need, limits, OLD)
    return claims.Verdict(need, rooms, limits or Limits(), picture, why, why is not None)


def test_the_numbers_explain_the_verdict():
    limits = Limits(memory_mb=24576.0, generation=OLD, age=0.12345)
    assert verdict(limits).numbers() == {
        "memory": {"requested": 512, "total": 16384, "used": 512, "limit": 24576.0},
        "disk": {"requested": 1, "total": 200, "used": 0, "limit": None},
        "vcpu": {"requested": 1, "total": 8, "used": 0, "limit": None},
        "limits_generation": [1, 1],
        "limits_age": 0.123,
        "generation": [1, 9],
    }


@pytest.mark.parametrize("limits", [None, Limits()])
def test_the_lines_without_limits(caplog, limits):
    caplog.set_level(logging.INFO)
    claims.announce(context.service_context(), "uuid", verdict(limits))
    assert [record.getMessage() for record in caplog.records] == [
        "Attempting claim: memory 512 MB, disk 1 GB, vcpus 1 CPU",
        "Total memory: 16384 MB, used: 512.00 MB",
        "memory limit not specified, defaulting to unlimited",
        "Total disk: 200 GB, used: 0.00 GB",
        "disk limit not specified, defaulting to unlimited",
        "Total vcpu: 8 VCPU, used: 0.00 VCPU",
        "vcpu limit not specified, defaulting to unlimited",
        "Claim successful",
    ]


def test_the_last_line_of_a_refusal_is_its_reason(caplog):
    caplog.set_level(logging.INFO)
    refused = verdict(Limits(memory_mb=600.0))
    claims.announce(context.service_context(), "uuid", refused)
    assert caplog.records[-1].getMessage() == (
        "Insufficient compute resources: Free memory 88.00 MB < requested 512 MB. "
        "(the limits are from an older picture of this host)"
    )
