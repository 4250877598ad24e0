# SPDX-License-Identifier: Apache-2.0
"""The words, the bounds and the two views of a decision."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects import base, decision
from novalite.objects.capacity import Need
from novalite.objects.decision import Decision, FilterCount, Miss, Weighed
from novalite.objects.reason import Reason

MEMORY = Reason("not_enough_memory", 2048, 1536.0, 24576.0, 16384, 1.5, 23040, 512)
DISK = Reason("larger_than_host_disk", 300, 200, 400.0, 200, 2.0, 10, 0)


def failure():
    return Decision(
        hosts=3,
        need=Need(2048, 300, 1),
        filters=[
            FilterCount("ComputeFilter", 3, 3, {}),
            FilterCount("RamFilter", 3, 1, {"not_enough_memory": 2}),
            FilterCount("DiskFilter", 1, 0, {"larger_than_host_disk": 1}),
        ],
        misses=[
            Miss("host-a", "host-a", [("RamFilter", MEMORY), ("DiskFilter", DISK)]),
            Miss("host-b", "node-b", [("DiskFilter", DISK)], "3.17"),
        ],
        picture_age=0.02,
        took=0.0015,
    )


def success():
    return Decision(
        hosts=2,
        survivors=2,
        need=Need(64, 1, 1),
        host="host-a",
        node="host-a",
        filters=[FilterCount("RamFilter", 2, 2, {})],
        weighers=[("RAMWeigher", 1.0), ("CPUWeigher", -2.0)],
        weights=[
            Weighed("host-a", "host-a", 0.5, [1000, 20], [0.5, 0.0]),
            Weighed("host-b", "node-b", -1.0, [2000, 40], [1.0, 1.0]),
        ],
        room=[Reason("enough_memory", 64, 2048.0, 15360.0, 10240, 1.5, 13312, 0)],
    )


def test_reason_gives_the_arithmetic():
    assert MEMORY.text() == (
        "not enough memory: 2048 MB requested, 1536 MB usable: limit 24576 MB (16384 x 1.5) - "
        "used 23040 MB (512 of it reserved); free is -6656 MB, which is no error: more is promised "
        "than there is, as the ratio allows"
    )
    assert DISK.text() == (
        "the server wants more disk than the whole host has: 300 GB requested, 390 GB usable: "
        "limit 400 GB (200 x 2) - used 10 GB, but one server may take 200 GB at most"
    )


def test_a_host_below_zero_that_still_takes_a_server_is_explained():
    text = success().text()
    assert "enough memory: 64 MB requested, 2048 MB usable" in text
    assert "free is -3072 MB, which is no error" in text


def test_reasons_without_numbers():
    assert Reason("host_disabled", detail="new disk").text() == "the host is disabled (new disk)"
    assert Reason("odd_thing").text() == "odd thing"
    assert Reason("my_count", need=4, have=2).text() == "my count: 4 requested, 2 usable"


@pytest.mark.parametrize(
    ("reason", "distance"),
    [(MEMORY, 0.25), (Reason("host_down"), None), (Reason("x", need=0, have=-3.0), 3.0)],
)
def test_distance(reason, distance):
    assert reason.distance() == distance


def test_reason_text_is_novas_words_and_the_counts():
    made = failure()
    assert made.summary() == "3 hosts: RamFilter 2, DiskFilter 1"
    assert made.reason_text() == (
        "There are not enough hosts available. 3 hosts: RamFilter 2, DiskFilter 1."
    )
    assert Decision(hosts=1, survivors=1).summary() == "1 host: left 1"


def test_text_tells_everything():
    text = failure().text()
    assert "Wanted: 2048 MB memory, 300 GB disk, 1 vcpus." in text
    assert "RamFilter: 3 -> 1 (not enough memory: 2)" in text
    assert "Not host-b (node node-b):" in text
    assert (
        "  To let it in: raise ram_allocation_ratio from 1.5 to 1.54, or free 512 MB and " in text
    )
    assert "Pictures of the hosts were 0.02 s old; deciding took 1.5 ms." in text
    text = success().text()
    assert "Weight -1.0000 host-b (node node-b): RAMWeigher 2000 -> 1.000 x 1 = 1.000," in text
    assert "Chosen: host-a." in text
    forced = Decision(hosts=1, survivors=1, host="h", node="h", forced=True)
    assert "filters were skipped, no limits set" in forced.text()
    forced.violated = [("ComputeFilter", Reason("host_disabled"))]
    assert "\n  ComputeFilter would have refused it: the host is disabled\n" in forced.text()
    assert base.decode(base.encode(forced)) == forced
    (shown,) = forced.admin_view()["violated"]
    assert (shown["filter"], shown["code"]) == ("ComputeFilter", "host_disabled")
    assert "violated" not in forced.tenant_view()


def test_tenants_see_codes_and_counts_only():
    for made in (failure(), success()):
        text = json.dumps(made.tenant_view()) + made.reason_text()
        for secret in ("host-a", "host-b", "node-b", "16384", "24576", "10240"):
            assert secret not in text
    assert failure().tenant_view()["filters"][1] == {
        "filter": "RamFilter",
        "start": 3,
        "end": 1,
        "codes": {"not_enough_memory": 2},
    }


def test_administrators_see_everything_under_names():
    view = json.loads(json.dumps(failure().admin_view()))
    reason = view["misses"][0]["reasons"][0]
    assert (reason["filter"], reason["code"], reason["need"]) == ("RamFilter", MEMORY.code, 2048)
    assert reason["text"] == MEMORY.text()
    view = json.loads(json.dumps(success().admin_view()))
    assert view["weights"][1]["weighers"][1] == {
        "weigher": "CPUWeigher",
        "multiplier": -2.0,
        "raw": 40,
        "normalised": 1.0,
        "weighted": -2.0,
    }


@pytest.mark.parametrize("make", [failure, success])
def test_comes_back_from_the_wire_as_it_was(make):
    wire = json.loads(json.dumps(base.encode(make())))
    back = base.decode(wire)
    assert back == make()
    assert back.text() == make().text()


def test_rows_of_a_later_version_lose_what_is_unknown_here():
    wire = json.loads(json.dumps(base.encode(failure())))
    wire["filters"] = [[*row, "later"] for row in wire["filters"]]
    wire["misses"][0][2][0][1].append("later")
    assert base.decode(wire) == failure()


def test_rows_have_the_fields_that_are_stored():
    """A row is stored as an array: fields may only be appended."""
    assert Reason._fields == (
        "code",
        "need",
        "have",
        "limit",
        "total",
        "ratio",
        "used",
        "reserved",
        "detail",
    )
    assert FilterCount._fields == ("filter", "start", "end", "codes")
    assert Miss._fields == ("host", "node", "reasons", "picture")
    assert Weighed._fields == (
        "host",
        "node",
        "total",
        "raw",
        "normalised",
        "picture",
        "multipliers",
    )
    assert Need._fields == ("memory_mb", "disk_gb", "vcpus")


short = st.text(max_size=300)
numbers = st.floats(-1e9, 1e9, allow_nan=False)
reasons = st.builds(Reason, short, numbers, numbers, numbers, numbers, numbers, numbers, numbers)
large = st.builds(
    Decision,
    hosts=st.integers(0, 10**6),
    host=st.none() | short,
    node=st.none() | short,
    filters=st.lists(
        st.builds(
            FilterCount,
            st.sampled_from(["RamFilter", "a.module.of.mine:ProjectFilter"]),
            st.integers(0, 10**6),
            st.just(0),
            st.dictionaries(short, st.integers(1, 1000), max_size=9),
        ),
        max_size=10,
    ),
    misses=st.lists(
        st.builds(Miss, short, short, st.lists(st.tuples(short, reasons), max_size=4)), max_size=10
    ),
    weighers=st.just([("RAMWeigher", 1.0)] * 6),
    weights=st.lists(
        st.builds(
            Weighed,
            short,
            short,
            numbers,
            st.lists(numbers, min_size=6, max_size=6),
            st.lists(numbers, min_size=6, max_size=6),
            st.sampled_from(["", "1.5"]),
            st.none() | st.lists(numbers, min_size=6, max_size=6),
        ),
        max_size=5,
    ),
    room=st.lists(reasons, max_size=3),
)


@given(large)
def test_bound_keeps_the_size_and_the_counts(made):
    counts = [(count.filter, count.start, count.end) for count in made.filters]
    totals = [sum(count.codes.values()) for count in made.filters]
    made.bound()
    assert made.size() <= (decision.FAILURE_BYTES if made.host is None else decision.SUCCESS_BYTES)
    assert [(count.filter, count.start, count.end) for count in made.filters] == counts
    for count, total in zip(made.filters, totals, strict=True):
        assert sum(count.codes.values()) in (total, 0)


@given(large)
def test_size_is_that_of_the_wire(made):
    assert made.size() == len(json.dumps(base.encode(made), separators=(",", ":")))


def test_bound_leaves_a_small_decision_alone():
    assert failure().bound() == failure()
    assert success().bound() == success()


def test_a_usual_decision_fits_whole():
    """Ten misses with three reasons each, or four misses and five weights, are not shortened."""
    name = "compute-rack42-slot17.cloud.example.org"
    filters = [
        FilterCount(f"Some{i}Filter", 10000, 9000, {"not_enough_disk": 1000}) for i in range(7)
    ]
    misses = [Miss(name, name, [("RamFilter", MEMORY)] * 3) for _ in range(10)]
    made = Decision(filters=list(filters), misses=list(misses))
    assert made.bound().misses == misses
    weights = [
        Weighed(name, name, 2.123456, [20480, 100.5, 2048], [0.123456] * 3) for _ in range(5)
    ]
    made = Decision(host=name, node=name, filters=list(filters), weights=list(weights))
    made.weighers = [("RAMWeigher", 1.0), ("CPUWeigher", 1.0), ("DiskWeigher", 1.0)]
    made.room = [MEMORY, DISK, MEMORY]
    assert made.bound().weights == weights


def test_multipliers_of_aggregates_are_shown_where_they_count():
    made = Decision(
        hosts=2,
        survivors=2,
        weighers=[("RAMWeigher", 1.0), ("CPUWeigher", 2.0)],
        weights=[
            Weighed("h1", "h1", -2.5, [10, 4], [1.0, 1.0], "1.1", [-4.5, 2.0]),
            Weighed("h2", "h2", 0.5, [5, 0], [0.5, 0.0], "1.1"),
        ],
    )
    for each in (made, base.decode(base.encode(made))):
        first, second = each.admin_view()["weights"]
        assert [one["multiplier"] for one in first["weighers"]] == [-4.5, 2.0]
        assert sum(one["weighted"] for one in first["weighers"]) == first["total"]
        assert [one["multiplier"] for one in second["weighers"]] == [1.0, 2.0]
        assert "RAMWeigher 10 -> 1.000 x -4.5 = -4.500" in each.text()
