# SPDX-License-Identifier: Apache-2.0
"""Old and new settings on the same hosts: the sums, the refusals, what lands elsewhere."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from novalite.advisor import (
    whatif,
    whatif_files,
    whatif_live,
    whatif_render,
    whatif_settings,
)
from novalite.advisor.cloud import CloudError, Compute
from novalite.advisor.whatif_files import WrongFile
from novalite.advisor.whatif_fleet import Host, Request
from novalite.advisor.whatif_settings import Side
from novalite.conf.files import ConfigError
from novalite.objects.aggregate import Aggregate
from novalite.objects.flavor import Flavor

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
EXAMPLES = ROOT / "etc" / "novalite" / "whatif"
SMALL = Flavor("small", "small", 1, 2048, 10)
BIG = Flavor("big", "big", 4, 8192, 40)


def host(name: str, memory_mb: int = 16384, **more: Any) -> Host:
    return Host(name, name, memory_mb, 8, 200, **more)


def side(tmp_path: Path, text: str = "") -> Side:
    file = tmp_path / f"{len(list(tmp_path.iterdir()))}.conf"
    file.write_text(text)
    return whatif_settings.load([str(file)])


def both(
    old: Side, new: Side, hosts: list[Host], requests: list[Request]
) -> tuple[whatif.Run, whatif.Run, dict[str, Any]]:
    before = whatif.run(old, hosts, requests, new=False)
    after = whatif.run(new, hosts, requests, new=True)
    return before, after, whatif.compare(before, after, old, new)


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
    found = whatif.run(chosen, made, requests, new=True)
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


# -- files


def test_a_real_nova_conf_is_read() -> None:
    found = whatif_settings.load([str(DATA / "nova-controller.conf")])
    assert found.explicit == {"cpu_allocation_ratio": 8.0}
    assert found.notes == ["NUMATopologyFilter is left out: guests have no NUMA topology"]
    assert "NUMATopologyFilter" not in found.values["[filter_scheduler] enabled_filters"]


def test_weighers_that_are_left_out(tmp_path: Path) -> None:
    path = "nova.scheduler.weights.metrics.MetricsWeigher"
    text = f"[filter_scheduler]\nweight_classes = nova.scheduler.weights.ram.RAMWeigher,{path}\n"
    found = side(tmp_path, text)
    assert found.notes == ["MetricsWeigher is left out: no compute reports metrics"]
    assert [weigher.name for weigher in found.pipeline.weighers] == ["RAMWeigher"]


def test_a_wrong_value_that_matters_is_told() -> None:
    words = r"nova-master.conf, line 33: \[filter_scheduler\] host_subset_size = 0: not valid"
    with pytest.raises(ConfigError, match=words):
        whatif_settings.load([str(DATA / "nova-master.conf")])
    with pytest.raises(ConfigError, match="nova-compute.conf, line 65: a section is written"):
        whatif_settings.load([str(DATA / "nova-compute.conf")])
    with pytest.raises(ConfigError, match="none.conf"):
        whatif_settings.load([str(DATA / "none.conf")])


def test_the_examples_are_good() -> None:
    hosts = whatif_files.fleet(str(EXAMPLES / "fleet.yaml"))
    requests = whatif_files.workload(str(EXAMPLES / "workload.yaml"))
    assert len(hosts) == 1000
    assert sum(request.servers for request in requests) == 5000
    # Mixed: no kind is done before the others have begun.
    assert {request.kind for request in requests[:500]} == {
        "web", "worker", "batch", "database", "quorum"
    }  # fmt: skip
    assert hosts[-1].aggregates[1].metadata == {"ssd": "true"}
    assert whatif_settings.load([str(EXAMPLES / "new.conf")]).explicit == {
        "ram_allocation_ratio": 1.0,
        "reserved_host_memory_mb": 2048.0,
    }


_BODY = "hosts: [{name: h, memory_mb: 1, vcpus: 1, local_gb: 1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hosts: [{name: h}]", r"hosts\[0\]: 'memory_mb' is a required property"),
        (_BODY + ", cpus: 3}]", r"hosts\[0\]: .*'cpus' was unexpected"),
        (_BODY + ", up: maybe}]", r"hosts\[0\].up: 'maybe' is not of type 'boolean'"),
        (_BODY + ", aggregates: [x]}]", r"hosts\[0\]: there is no aggregate x"),
        (_BODY + "}, {name: h, memory_mb: 1, vcpus: 1, local_gb: 1}]", "two hosts h"),
        ("hosts: [", "not YAML"),
        ("hosts: []", "hosts"),
    ],
)
def test_a_wrong_fleet_is_told_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(text)
    with pytest.raises(WrongFile, match=words):
        whatif_files.fleet(str(file))


def test_a_wrong_workload_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text("flavors: {}\nrequests: [{name: a, flavor: b}]\n")
    with pytest.raises(WrongFile, match=r"requests\[0\]: there is no flavor b"):
        whatif_files.workload(str(file))
    with pytest.raises(WrongFile, match="cannot be read: No such file"):
        whatif_files.workload(str(tmp_path / "none"))


def test_requests_in_the_given_order(tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text(
        "order: given\nflavors: {f: {vcpus: 1, memory_mb: 1, extra_specs: {ssd: true}}}\n"
        "requests: [{name: a, flavor: f, count: 2}, {name: b, flavor: f}]\n"
    )
    requests = whatif_files.workload(str(file))
    assert [request.kind for request in requests] == ["a", "a", "b"]
    assert requests[0].flavor.extra_specs == {"ssd": "true"}


# -- the running cloud


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
    found, notes = whatif_live.hosts(PlayedCompute(answers(), body), side(tmp_path))
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
    found, notes = whatif_live.hosts(PlayedCompute(answers(), None), old)
    assert found[0].own["ram_allocation_ratio"] == 3.0
    assert found[0].memory_mb_used == 5120 - 512
    assert len(notes) == 1 and "those of the old files" in notes[0]


# -- text


def test_of_lists_only_the_difference_is_shown(tmp_path: Path) -> None:
    new = side(tmp_path, "[filter_scheduler]\nenabled_filters = RamFilter,ComputeFilter\n")
    old = side(tmp_path, "[filter_scheduler]\nenabled_filters = ComputeFilter,DiskFilter\n")
    turned = side(tmp_path, "[filter_scheduler]\nenabled_filters = ComputeFilter,RamFilter\n")
    shown = []
    for before in (old, turned):
        *_runs, body = both(before, new, [host("h")], [Request("b", BIG)])
        lines = [line.text for line in whatif_render.lines(body)]
        [line] = [text for text in lines if "enabled_filters" in text]
        shown.append(" ".join(line.split()[2:]))
    assert shown == ["with DiskFilter with RamFilter", "2 names the same in another order"]


def test_the_text_has_both_sides(tmp_path: Path) -> None:
    new = side(tmp_path, "[DEFAULT]\nram_allocation_ratio = 1.0\n")
    hosts = [host(f"h{number}") for number in range(12)]
    _old, _new, body = both(side(tmp_path), new, hosts, [Request("b", BIG)] * 30)
    text = [line.text for line in whatif_render.lines(body)]
    assert "  [DEFAULT] ram_allocation_ratio  1.5  1" in text
    assert "30 servers on 12 hosts" in text
    assert ["placed", "24", "12", "-12"] in [line.split() for line in text]
    assert "  new, b: 18 refused, the last hosts removed by: RamFilter 18" in text
    assert "Hosts whose fill differs: 12 (the 10 that differ most)" in text
    assert text[-1] == "  and 2 more (--all shows them)"
    everything = [line.text for line in whatif_render.lines(body, everything=True)]
    assert len(everything) == len(text) + 2 + 2 - 1
