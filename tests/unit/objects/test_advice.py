# SPDX-License-Identifier: Apache-2.0
"""The sentence of a decision without a host, and whether the advice would really help."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects import advice, capacity, reason
from novalite.objects.compute_node import ComputeNode
from novalite.objects.decision import Decision, FilterCount, Miss
from novalite.objects.reason import WORDS, Reason


def decision(*counts, hosts=None, misses=()):
    rows, left = [], hosts if hosts is not None else sum(count for _, _, count in counts)
    total = left
    for name, code, count in counts:
        rows.append(FilterCount(name, left, left - count, {code: count} if code else {}))
        left -= count
    return Decision(hosts=total, survivors=left, filters=rows, misses=list(misses))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (decision(), "there is no compute host at all"),
        (
            decision(("RamFilter", "not_enough_memory", 1)),
            "the only host has too little memory left",
        ),
        (
            decision(("RamFilter", "not_enough_memory", 3)),
            "all 3 hosts have too little memory left",
        ),
        (
            decision(
                ("ComputeFilter", "host_disabled", 1),
                ("RamFilter", "not_enough_memory", 2),
                ("DiskFilter", "not_enough_disk", 997),
            ),
            "of 1000 hosts 1 is disabled, 2 have too little memory left and 997 have too little "
            "disk left",
        ),
        (decision(("Mine", "odd", 2)), "all 2 hosts were removed by Mine"),
        (decision(("Mine", None, 1), ("Yours", None, 1)),
         "of 2 hosts 1 was removed by Mine and 1 was removed by Yours"),
        (decision(("host7.example.org", None, 1)), "the only host was removed by a filter"),
        (decision(hosts=4), "none of 4 hosts was taken"),
    ],
)  # fmt: skip
def test_counts_as_a_sentence(made, text):
    assert advice.counted(made) == text


def test_every_code_of_ours_has_its_words_and_advice():
    for code in WORDS:
        if code == "other":
            continue
        assert code in advice.COUNTED
        assert advice.for_tenant(decision(("F", code, 1))) != [advice.ASK_OPERATORS]


def shortage(code, *, need, total, ratio, used, reserved=0):
    limit = total * ratio
    return Reason(code, need, min(limit - used, total), limit, total, ratio, used, reserved)


def told(*reasons, host="h3"):
    made = decision(("F", reasons[0].code, 1))
    made.misses = [Miss(host, host, [("F", each) for each in reasons])]
    return advice.for_admin(made)


def test_advice_names_the_option_and_the_numbers():
    short = shortage("not_enough_memory", need=2048, total=16384, ratio=1.5, used=24064)
    assert told(short) == ["on h3: raise ram_allocation_ratio from 1.5 to 1.6, or free 1536 MB"]
    short = shortage("larger_than_host_disk", need=300, total=200, ratio=2.0, used=0)
    assert told(short)[0].startswith(
        "on h3: use a flavor of at most 200 GB instead of 300, or a larger host (no ratio helps"
    )


@pytest.mark.parametrize(
    ("why", "text"),
    [
        (
            Reason("host_disabled", detail="disk"),
            "`openstack compute service set --enable h3 nova-compute` (it was disabled for: disk)",
        ),
        (Reason("host_down", detail="forced down"), "--up h3 nova-compute` (it was forced down)"),
        (Reason("host_down"), "start novalite-compute, or see in its log why it does not report"),
        (Reason("already_tried"), "mend what failed there"),
        (Reason("wrong_zone", detail="z2"), "ask for availability zone z2, or for none"),
        (Reason("image_not_supported", detail="arm64 any any"), "(this one wants arm64 any any)"),
        (Reason("odd", need=4, have=2), "satisfy F: odd: 4 requested, 2 usable"),
    ],
)
def test_advice_for_other_reasons(why, text):
    assert text in told(why)[0]


def test_advice_takes_all_reasons_of_a_host_and_three_hosts():
    short = shortage("not_enough_memory", need=64, total=64, ratio=1.0, used=1)
    [line] = told(Reason("host_disabled"), short)
    assert line.endswith(
        "nova-compute` and raise ram_allocation_ratio from 1 to 1.02, or free 1 MB"
    )
    made = decision(("F", "host_down", 9))
    made.misses = [Miss(f"h{i}", f"n{i}", [("F", Reason("host_down"))]) for i in range(9)]
    [line] = advice.for_admin(made)
    assert line.startswith("on h0 (node n0), h1 (node n1) and h2 (node n2): start ")


def test_advice_without_misses_and_for_a_name_that_is_none():
    assert advice.for_admin(decision()) == [
        "start novalite-compute on a host; `openstack compute service list` shows it"
    ]
    assert "RamFilter 2" in advice.for_admin(decision(("RamFilter", "not_enough_memory", 2)))[0]
    assert told(Reason("not_forced_host")) == [
        "name a host that exists: `openstack compute service list` shows them"
    ]


@given(
    total=st.integers(1, 10**6),
    ratio=st.integers(1, 400).map(lambda share: share / 20),
    used=st.integers(0, 10**7),
    need=st.integers(1, 10**6),
)
def test_the_advised_ratio_and_room_let_the_server_in(total, ratio, used, need):
    node = ComputeNode(
        "h", "h", memory_mb=total, memory_mb_used=used, ram_allocation_ratio=ratio, vcpus=1
    )
    wanted = capacity.Need(need, 0, 0)
    rooms = capacity.own_rooms(node)
    if rooms.memory.fits(need) or need > total:
        return
    [short] = [
        each
        for each in reason.room_reasons(node, rooms, wanted)
        if each.code == "not_enough_memory"
    ]
    [line] = told(short)
    found = re.search(r"to ([\d.]+), or free (\d+) MB", line)
    node.ram_allocation_ratio = float(found[1])
    assert capacity.memory_room(node).fits(need)
    node.ram_allocation_ratio, node.memory_mb_used = ratio, used - int(found[2])
    assert capacity.memory_room(node).fits(need)
