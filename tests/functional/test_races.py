# SPDX-License-Identifier: Apache-2.0
"""Many requests at once: two schedulers, the last room, an even spread."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent import futures

import pytest

from tests.functional import faults
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.drill

Make = Callable[..., Cloud]

RESERVED = 512
NO_HOST = "No valid host"
_names = itertools.count(1)


def size(cloud: Cloud, host: str, *, room: int, vcpus: int = 8) -> None:
    """Give a host room for so many MB, without overcommit."""
    cloud.configure(
        {
            "fake_libvirt": {"memory_mb": RESERVED + room, "vcpus": vcpus},
            "DEFAULT": {"ram_allocation_ratio": 1.0},
        },
        host,
    )
    cloud.reload(host)


@pytest.fixture
def cloud(standing: Cloud) -> Iterator[Cloud]:
    """The standing cloud; whoever changes the size of its hosts need not change it back."""
    yield standing
    faults.remove_all(standing)
    for host in faults.COMPUTES:
        size(standing, host, room=16384 - RESERVED)


def together(cloud: Cloud, count: int, **fields: str) -> list[str]:
    """Ask for *count* servers in the same instant."""
    api = cloud.api
    with futures.ThreadPoolExecutor(count) as pool:
        asked = [pool.submit(api.boot, f"vm{next(_names)}", **fields) for _ in range(count)]
        return [each.result() for each in asked]


def used(cloud: Cloud) -> dict[str, int]:
    """Return host: MB in use, as the API shows it."""
    found = cloud.api.get("/os-hypervisors/detail")["hypervisors"]
    return {node["hypervisor_hostname"]: node["memory_mb_used"] for node in found}


class TestTheLastSlot:
    """V05: one host has room for one, the other as well but less weight."""

    def test_both_find_a_place(self, cloud: Cloud, rounds: range, table: faults.Table) -> None:
        size(cloud, "compute1", room=3072, vcpus=64)
        size(cloud, "compute2", room=4096 - 1, vcpus=2)
        flavor = cloud.api.flavor("m2", ram=2048)
        for _ in rounds:
            servers = together(cloud, 2, flavor=flavor)
            for uuid in servers:
                cloud.api.wait(uuid)
            books = cloud.assert_books()
            assert sorted(map(len, books.guests.values())) == [1, 1], books
            faults.remove_all(cloud)
        table.add(f"V05, two hosts, {len(rounds)} times", "ACTIVE on each")

    def test_one_finds_none(self, cloud: Cloud, rounds: range, table: faults.Table) -> None:
        size(cloud, "compute1", room=3072)
        faults.enable(cloud, "compute2", False)
        flavor = cloud.api.flavor("m2-alone", ram=2048)
        for _ in rounds:
            states = cloud.api.wait_settled(together(cloud, 2, flavor=flavor))
            assert sorted(states.values()) == ["ACTIVE", "ERROR"]
            [failed] = [uuid for uuid, state in states.items() if state == "ERROR"]
            assert NO_HOST in cloud.api.show(failed)["fault"]["message"]
            cloud.assert_books()
            assert used(cloud)["compute1"] == 2048 + RESERVED
            faults.remove_all(cloud)
        table.add(f"V05, one host, {len(rounds)} times", "ACTIVE and ERROR")

    def test_fifty_for_thirty(self, cloud: Cloud, rounds: range, table: faults.Table) -> None:
        for host in faults.COMPUTES:
            size(cloud, host, room=15 * 64)
        for _ in rounds:
            states = cloud.api.wait_settled(together(cloud, 50))
            assert Counter(states.values()) == {"ACTIVE": 30, "ERROR": 20}
            for uuid, state in states.items():
                if state == "ERROR":
                    assert NO_HOST in cloud.api.show(uuid)["fault"]["message"]
            cloud.assert_books()
            assert used(cloud) == dict.fromkeys(faults.COMPUTES, RESERVED + 15 * 64)
            faults.remove_all(cloud)
        table.add(f"50 creates, room for 30, {len(rounds)} times", "30 ACTIVE, 20 ERROR")


def test_room_that_was_taken_and_given_back(cloud: Cloud) -> None:
    """A big server that is gone leaves no shadow for the next big one."""
    faults.enable(cloud, "compute2", False)
    for _ in range(4):
        uuid = cloud.api.boot("big", flavor=_big(cloud))
        cloud.api.wait(uuid)
        cloud.api.delete(uuid)
        cloud.api.wait_gone(uuid)


def _big(cloud: Cloud) -> str:
    return cloud.api.flavor(f"big{next(_names)}", ram=14000)


@pytest.mark.parametrize(("hosts", "each"), [(2, 10), (20, 1)])
def test_an_even_spread(
    request: pytest.FixtureRequest,
    make_cloud: Make,
    rounds: range,
    table: faults.Table,
    hosts: int,
    each: int,
) -> None:
    """A hundred servers, ten at a time, on twenty equal nodes."""
    if hosts > 2:
        request.getfixturevalue("only_in_drill")
    nodes = {
        f"compute{host}": [f"node{host}-{number}" for number in range(each)]
        for host in range(1, hosts + 1)
    }
    cloud = make_cloud(
        computes=hosts,
        own={host: {"fake_libvirt": {"nodes": ",".join(names)}} for host, names in nodes.items()},
    )
    for _ in rounds:
        with futures.ThreadPoolExecutor(10) as pool:
            servers = list(pool.map(cloud.api.boot, [f"vm{number}" for number in range(100)]))
        states = cloud.api.wait_settled(servers)
        assert set(states.values()) == {"ACTIVE"}
        rows = cloud.rows("select node from instances where not deleted")
        spread = Counter(row["node"] for row in rows)
        assert set(spread) == {name for names in nodes.values() for name in names}
        assert set(spread.values()) <= {4, 5, 6}, spread
        cloud.assert_books()
        faults.remove_all(cloud)
    what = f"{min(spread.values())} to {max(spread.values())} each"
    table.add(f"100 on 20 equal nodes of {hosts} hosts", what)


def test_many_creates_and_deletes_mixed(cloud: Cloud, rounds: range, table: faults.Table) -> None:
    """Every second server is deleted while it is built."""
    api = cloud.api
    faults.play(cloud, *faults.COMPUTES, spawn_delay=0.2)
    for _ in rounds:
        servers = together(cloud, 30)
        with futures.ThreadPoolExecutor(15) as pool:
            list(pool.map(api.delete, servers[::2]))
        for uuid in servers[::2]:
            api.wait_gone(uuid)
        states = api.wait_settled(servers[1::2])
        assert set(states.values()) == {"ACTIVE"}
        books = cloud.assert_books()
        assert set(books.servers) == set(servers[1::2])
        faults.remove_all(cloud)
    eventually(lambda: not api.servers())
    table.add(f"30 creates, 15 deletes, {len(rounds)} times", "ACTIVE or gone, one guest each")
