# SPDX-License-Identifier: Apache-2.0
"""Old and new settings on the same hosts: the sums, the refusals, what lands elsewhere."""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from novalite.advisor.whatif import comparison
from novalite.advisor.whatif.fleet import Request
from novalite.objects.aggregate import Aggregate
from novalite.objects.flavor import Flavor
from tests.unit.advisor.whatif.sides import BIG, SMALL, both, host, side


def test_the_same_settings_make_no_difference(tmp_path: Path) -> None:
    hosts = [host(f"h{number}", 16384 + 1024 * number) for number in range(5)]
    requests = [Request("web", SMALL), Request("pair", BIG, servers=2)] * 8
    text = "[filter_scheduler]\nhost_subset_size = 3\nshuffle_best_same_weighed_hosts = true\n"
    _old, _new, body = both(side(tmp_path, text), side(tmp_path, text), hosts, requests)
    assert body["settings"] == []
    assert body["elsewhere"] == []
    assert body["summary"]["old"]["placed"] == body["summary"]["new"]["placed"] > 0


def test_a_lower_ratio_refuses_and_says_why(tmp_path: Path) -> None:
    new = side(tmp_path, "[DEFAULT]\nram_allocation_ratio = 1.0\n")
    # 16384 x 1.5 - 512 = 24064 MB are 2 big ones (16384 left of 24064 after one); 1.0: one.
    _old, _new, body = both(side(tmp_path), new, [host("h1"), host("h2")], [Request("b", BIG)] * 5)
    kind = body["requests"][0]
    assert (kind["old"]["placed"], kind["new"]["placed"]) == (4, 2)
    assert kind["new"]["refused_by"] == {"RamFilter": 3}
    assert kind["new"]["last_refusal"] == "2 hosts: RamFilter 2"
    assert "8192 MB requested, 7680 MB usable" in kind["new"]["nearest"]
    assert body["settings"] == [
        {"option": "[DEFAULT] ram_allocation_ratio", "old": 1.5, "new": 1.0}
    ]
    assert body["differences"] == {"on_another_host": 0, "only_old": 2, "only_new": 0}
    assert body["hosts"][0]["old"] == {
        "servers": 2,
        "memory_percent": 68.8,  # (512 + 16384) / 24576
        "disk_percent": 40.0,
        "vcpu_percent": 6.2,
    }


def test_reserved_memory_of_the_new_file_is_held_back(tmp_path: Path) -> None:
    new = side(tmp_path, "[DEFAULT]\nreserved_host_memory_mb = 9000\n")
    before, after, _body = both(side(tmp_path), new, [host("h")], [Request("b", BIG)] * 2)
    assert (before.places, after.places) == (["h", "h"], ["h", None])


def test_what_the_new_file_does_not_set_stays_as_the_host_has_it(tmp_path: Path) -> None:
    lone = host("h", own={"ram_allocation_ratio": 1.0, "reserved_host_memory_mb": 1024.0})
    old, new = side(tmp_path), side(tmp_path, "[DEFAULT]\nram_allocation_ratio = 2.0\n")
    assert lone.state(old, new=False).picture.ram_allocation_ratio == 1.0
    picture = lone.state(new, new=True).picture
    assert (picture.ram_allocation_ratio, picture.memory_mb_used) == (2.0, 1024)
    unset = side(tmp_path, "[DEFAULT]\nram_allocation_ratio = 0.0\n")
    assert lone.state(unset, new=True).picture.ram_allocation_ratio == 1.5


def test_stacking_lands_elsewhere(tmp_path: Path) -> None:
    names = ("ram", "cpu", "disk")
    text = "".join(f"{name}_weight_multiplier = -1.0\n" for name in names)
    new = side(tmp_path, "[filter_scheduler]\n" + text)
    hosts = [host("h1"), host("h2")]
    before, after, body = both(side(tmp_path), new, hosts, [Request("web", SMALL)] * 4)
    assert before.places == ["h1", "h2", "h1", "h2"]
    assert after.places == ["h1", "h1", "h1", "h1"]
    assert body["differences"]["on_another_host"] == 2
    new_fill = body["summary"]["new"]["fill_percent"]["memory"]
    assert new_fill["imbalance"] > body["summary"]["old"]["fill_percent"]["memory"]["imbalance"]


def test_zones_groups_and_hosts_that_are_away_count(tmp_path: Path) -> None:
    zone = (Aggregate(1, "u", "rack", "az1"),)
    hosts = [host("h1", aggregates=zone), host("h2"), host("h3", up=False)]
    requests = [
        Request("zone", SMALL, availability_zone="az1"),
        Request("apart", SMALL, policy="anti-affinity"),
        Request("apart", SMALL, policy="anti-affinity"),
        Request("apart", SMALL, policy="anti-affinity"),
    ]
    before, _after, body = both(side(tmp_path), side(tmp_path), hosts, requests)
    assert before.places[0] == "h1"
    assert sorted(map(str, before.places[1:])) == ["None", "h1", "h2"]
    refused = {each["kind"]: each["old"]["refused_by"] for each in body["requests"]}
    assert refused == {"zone": {}, "apart": {"ServerGroupAntiAffinityFilter": 1}}


def test_a_request_gets_all_of_its_servers_or_none(tmp_path: Path) -> None:
    before, _after, body = both(
        side(tmp_path), side(tmp_path), [host("h")], [Request("three", BIG, servers=3)]
    )
    assert before.places == [None, None, None]
    assert body["hosts"][0]["old"]["servers"] == 0
    assert body["requests"][0]["old"]["refused"] == 3


_HOSTS = st.lists(
    st.tuples(st.sampled_from([4096, 16384]), st.integers(0, 4096)), min_size=1, max_size=4
)
_WISHES = st.lists(
    st.tuples(st.sampled_from([SMALL, BIG]), st.integers(1, 3)), min_size=1, max_size=12
)


@settings(max_examples=30)
@given(_HOSTS, _WISHES, st.sampled_from(["", "[DEFAULT]\nram_allocation_ratio = 1.0\n"]))
def test_every_server_is_counted_once(
    tmp_path_factory: Any, hosts: list[tuple[int, int]], wishes: list[tuple[Flavor, int]], text: str
) -> None:
    made = [host(f"h{at}", total, memory_mb_used=used) for at, (total, used) in enumerate(hosts)]
    chosen = side(tmp_path_factory.mktemp("conf"), text)
    requests = [Request(flavor.name, flavor, servers=count) for flavor, count in wishes]
    found = comparison.run(chosen, made, requests, new=True)
    asked = [flavor for flavor, count in wishes for _ in range(count)]
    assert len(found.places) == len(asked)
    for state, (_total, used) in zip(found.hosts, hosts, strict=True):
        here = sum(
            flavor.memory_mb
            for flavor, place in zip(asked, found.places, strict=True)
            if place == state.node
        )
        room = state.rooms.memory
        assert room.used == used + 512 + here
        assert state.io_ops == 0
        assert state.num_instances == found.places.count(state.node)
        assert here == 0 or (room.limit is not None and room.used <= room.limit)
