# SPDX-License-Identifier: Apache-2.0
"""What is advised is true: with the change the pipeline takes the host, with less it does not."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects import change
from novalite.objects.reason import WORDS, Reason
from tests.unit.scheduler import fakes

FILTERS = ("RamFilter", "DiskFilter", "CoreFilter")
# option -> used amounts of a picture that sink when something is freed
BOOKS = {
    "ram_allocation_ratio": ("memory_mb_used",),
    "disk_allocation_ratio": ("local_gb_used",),
    "cpu_allocation_ratio": ("vcpus_used",),
}


def takes(picture, spec):
    """Tell whether the pipeline takes the host with this picture."""
    made = fakes.HostState(picture)
    return fakes.pipeline(FILTERS).schedule([made], [spec]).found


def freed(picture, option, amount):
    changes = {name: getattr(picture, name) - amount for name in BOOKS[option]}
    if option == "disk_allocation_ratio" and picture.disk_available_least is not None:
        changes["disk_available_least"] = picture.disk_available_least + amount
    return dataclasses.replace(picture, **changes)


@st.composite
def resources(draw, most, least_over):
    """Total, used, ratio and need, where used is near what would be too much."""
    total = draw(st.integers(1, most))
    ratio = draw(st.integers(1, 400)) / 20
    wanted = draw(st.integers(1, total))
    over = draw(st.integers(least_over, 3) | st.integers(least_over, most))
    return total, max(0, math.ceil(total * ratio) - wanted + over), ratio, wanted


@given(
    memory=resources(10**6, 1),
    disk=resources(10**5, -3),
    vcpu=resources(500, -3),
    least=st.none() | st.integers(-100, 10**5),
    beside=st.integers(0, 300),
)
def test_the_smallest_change_lets_the_server_in(memory, disk, vcpu, least, beside):
    picture = fakes.node(
        memory_mb=memory[0],
        memory_mb_used=memory[1],
        ram_allocation_ratio=memory[2],
        local_gb=disk[0],
        local_gb_used=disk[1],
        disk_allocation_ratio=disk[2],
        vcpus=vcpu[0],
        vcpus_used=vcpu[1],
        cpu_allocation_ratio=vcpu[2],
        disk_available_least=least,
        guest_overhead_mb=beside,
    )
    spec = fakes.spec(memory_mb=memory[3], root_gb=disk[3], vcpus=vcpu[3])
    outcome = fakes.pipeline(FILTERS).schedule([fakes.HostState(picture)], [spec])
    assert not outcome.found
    [miss] = outcome.decisions[0].misses
    changes = change.all_of(miss.reasons, miss.host)
    raised = dataclasses.replace(picture, **{each.option: each.new for each in changes})
    emptied = picture
    for each in changes:
        emptied = freed(emptied, each.option, each.free)
    assert takes(raised, spec) and takes(emptied, spec)
    for each in changes:
        assert each.new > each.old and each.free > 0
        less = round(each.new - 0.01, 2)
        assert not takes(dataclasses.replace(raised, **{each.option: less}), spec)
        assert not takes(freed(emptied, each.option, -1), spec)


def test_a_server_larger_than_the_host_is_not_let_in_by_a_ratio():
    why = Reason("larger_than_host_memory", 900, 512.0, 5120.0, 512, 10.0, 0, 0)
    found = change.of("RamFilter", why, "h1")
    assert (found.option, found.new) == (None, None)
    assert found.view() == {"text": found.text}
    assert "at most 512 MB" in found.text


def test_the_ratio_of_an_aggregate_is_in_its_metadata():
    why = Reason("not_enough_memory", 900, 100.0, 612.0, 512, 1.2, 512, 0, "an aggregate's")
    found = change.of("AggregateRamFilter", why, "h1")
    assert found.text.startswith("raise ram_allocation_ratio in the metadata of its aggregate from")
    assert "aggregate" not in change.of("AggregateRamFilter", why._replace(detail=None), "h").text


def test_a_number_of_servers_that_is_allowed_grows_to_what_lets_one_more_in():
    made = fakes.host_state(running_vms=52)
    names = ("NumInstancesFilter",)
    [miss] = fakes.pipeline(names).schedule([made], [fakes.spec()]).decisions[0].misses
    [found] = change.all_of(miss.reasons, "h1")
    assert (found.option, found.old, found.new, found.free) == ("max_instances_per_host", 50, 53, 3)
    assert found.text == "raise max_instances_per_host from 50 to 53, or move 3 servers away"
    [(_name, why)] = miss.reasons
    assert change.of("AggregateNumInstancesFilter", why, "h1").text == found.text
    aggregated = change.of("AggregateNumInstancesFilter", why._replace(detail="its"), "h1")
    assert aggregated.text.startswith(
        "raise max_instances_per_host in the metadata of its aggregate from 50 to 53, or"
    )
    made.update(fakes.node(running_vms=52 - found.free))
    assert fakes.pipeline(names).schedule([made], [fakes.spec()]).found
    made.release("i1")
    made.update(fakes.node(running_vms=52 - found.free + 1))
    assert not fakes.pipeline(names).schedule([made], [fakes.spec()]).found


def test_every_code_has_a_change_of_its_own():
    for code in WORDS:
        if code != "other":
            text = change.of("SomeFilter", Reason(code, 1, 2, 3, 4, 1.0, 5, 0, "why"), "h1").text
            assert "satisfy" not in text, code


@pytest.mark.parametrize("total", [3, 7, 49, 199, 7823, 10240, 111710])
def test_ratios_are_exact_where_floats_are_not(total):
    for used in (0, 1, total // 3, total):
        for wanted in (1, 2, total // 7 + 1):
            ratio = change.least_ratio(total, used, wanted)
            assert total * ratio - used >= wanted
            assert total * (round(ratio * 100) - 1) / 100 - used < wanted
