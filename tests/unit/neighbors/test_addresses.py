# SPDX-License-Identifier: Apache-2.0
import ipaddress
from concurrent import futures
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from novalite.neighbors.http import Fault
from novalite.neighbors.network import addresses
from novalite.neighbors.store import Store, Tx
from tests.unit.neighbors.support import Cloud


def subnet(cidr: str, pools: list[Any] | None = None) -> dict[str, Any]:
    network = ipaddress.ip_network(cidr)
    gateway = str(network.network_address + 1)
    return {
        "id": "s",
        "cidr": cidr,
        "ip_version": network.version,
        "allocation_pools": pools or addresses.default_pools(network, gateway),
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("addresses") / "n.db")


def clear(tx: Tx) -> None:
    tx.run("DELETE FROM addresses")
    addresses.rewind(tx, "s")


@pytest.mark.parametrize(
    ("cidr", "gateway", "expected"),
    [
        ("10.0.0.0/29", "10.0.0.1", [("10.0.0.2", "10.0.0.6")]),
        ("10.0.0.0/29", "10.0.0.4", [("10.0.0.1", "10.0.0.3"), ("10.0.0.5", "10.0.0.6")]),
        ("10.0.0.0/29", "10.0.0.6", [("10.0.0.1", "10.0.0.5")]),
        ("10.0.0.0/29", None, [("10.0.0.1", "10.0.0.6")]),
        ("10.0.0.0/31", "10.0.0.0", [("10.0.0.1", "10.0.0.1")]),
        ("fd00::/126", "fd00::1", [("fd00::2", "fd00::3")]),
    ],
)
def test_default_pools(cidr: str, gateway: str | None, expected: list[tuple[str, str]]) -> None:
    pools = addresses.default_pools(ipaddress.ip_network(cidr), gateway)
    assert [(pool["start"], pool["end"]) for pool in pools] == expected


def test_overlapping_pools_are_refused() -> None:
    pools = [
        {"start": "10.0.0.2", "end": "10.0.0.5"},
        {"start": "10.0.0.5", "end": "10.0.0.6"},
    ]
    with pytest.raises(Fault, match="overlapping"):
        addresses.checked_pools(ipaddress.ip_network("10.0.0.0/24"), pools)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=60))
def test_given_addresses_are_free_and_all_are_given(store: Store, steps: list[int | None]) -> None:
    """None asks for an address, a number gives back the one at that place."""
    small = subnet("10.0.0.0/28")
    every = {f"10.0.0.{number}" for number in range(2, 15)}
    with store.write() as tx:
        clear(tx)
        held: list[tuple[str, str]] = []
        for number, step in enumerate(steps):
            if step is None:
                found = addresses.give(tx, small, f"port{number}")
                taken = {address for _port, address in held}
                if found is None:
                    assert taken == every
                else:
                    assert found in every - taken
                    held.append((f"port{number}", found))
            elif held:
                port_id, _address = held.pop(step % len(held))
                addresses.give_back(tx, port_id)


def test_an_address_that_was_given_back_rests(store: Store) -> None:
    small = subnet("10.0.0.0/28")
    with store.write() as tx:
        clear(tx)
        first = addresses.give(tx, small, "p1")
        addresses.give_back(tx, "p1")
        assert addresses.give(tx, small, "p2") != first


def test_an_endless_pool_does_not_take_for_ever(store: Store) -> None:
    with store.write() as tx:
        clear(tx)
        given_out = {addresses.give(tx, subnet("fd00::/64"), f"p{number}") for number in range(20)}
    assert len(given_out) == 20


def test_two_ports_never_get_one_address(cloud: Cloud) -> None:
    user = cloud.user()
    network = user("network", "POST", "/v2.0/networks", {"network": {"name": "n"}}, 201)["network"]
    asked = {"network_id": network["id"], "cidr": "10.77.0.0/26"}
    user("network", "POST", "/v2.0/subnets", {"subnet": asked}, 201)

    def create(_number: int) -> str | None:
        answer = cloud.network.simulate_post(
            "/v2.0/ports",
            json={"port": {"network_id": network["id"]}},
            headers={"X-Auth-Token": user.token},
        )
        if answer.status_code == 409:
            assert answer.json["NeutronError"]["type"] == "IpAddressGenerationFailure"
            return None
        return str(answer.json["port"]["fixed_ips"][0]["ip_address"])

    with futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(create, range(70)))
    made = [address for address in found if address]
    assert len(made) == len(set(made)) == 61
