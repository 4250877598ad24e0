# SPDX-License-Identifier: Apache-2.0
"""Addresses and MACs: given out inside the caller's transaction, unique by primary key.

A cursor a subnet remembers where the last search ended, so that giving out an address costs the
same in an empty and in a nearly full pool, and an address that was given back rests a while.
"""

import ipaddress
import secrets
from collections.abc import Iterator
from typing import Any

from novalite.neighbors.http import Fault
from novalite.neighbors.network import base
from novalite.neighbors.store import Doc, Tx

MAC_PREFIX = "fa:16:3e"


def default_pools(cidr: Any, gateway: str | None) -> list[Doc]:
    """Return the pools of a subnet: every host address but the gateway."""
    first, last = int(cidr.network_address), int(cidr.broadcast_address)
    if cidr.num_addresses > 2:
        first += 1
        last -= 1 if cidr.version == 4 else 0
    address = ipaddress.ip_address(gateway) if gateway else None
    holes = [int(address)] if address is not None and address in cidr else []
    pools = []
    for hole in [*holes, last + 1]:
        if first <= hole - 1 and first <= last:
            pools.append(_pool(cidr.version, first, min(hole - 1, last)))
        first = max(first, hole + 1)
    return pools


def _pool(version: int, first: int, last: int) -> Doc:
    make = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    return {"start": str(make(first)), "end": str(make(last))}


def checked_pools(cidr: Any, pools: list[Any]) -> list[Doc]:
    """Return given pools in order.

    :raises Fault: 400 when one is malformed, 400 when it is outside or overlaps another
    """
    ranges = []
    for pool in pools:
        try:
            start = ipaddress.ip_address(pool["start"])
            end = ipaddress.ip_address(pool["end"])
        except (ValueError, TypeError, KeyError) as error:
            raise base.invalid_input(f"'{pool}' is not a valid allocation pool") from error
        if start not in cidr or end not in cidr or int(start) > int(end):
            raise Fault(
                400,
                f"The allocation pool {start}-{end} spans beyond the subnet cidr {cidr}.",
                "OutOfBoundsAllocationPool",
            )
        ranges.append((int(start), int(end)))
    ranges.sort()
    for before, after in zip(ranges, ranges[1:], strict=False):
        if after[0] <= before[1]:
            raise Fault(409, "Found overlapping allocation pools.", "OverlappingAllocationPools")
    return [_pool(cidr.version, first, last) for first, last in ranges]


def give(tx: Tx, subnet: Doc, port_id: str) -> str | None:
    """Give out the next free address of the subnet's pools, None when there is none."""
    row = tx.one("SELECT address FROM address_cursors WHERE subnet_id = ?", subnet["id"])
    last = int(ipaddress.ip_address(row[0])) if row else -1
    # Ends after at most one more try than addresses are taken, or at the end of the pools.
    for candidate in _candidates(subnet, last):
        if _insert(tx, subnet["id"], candidate, port_id):
            tx.run("INSERT OR REPLACE INTO address_cursors VALUES (?, ?)", subnet["id"], candidate)
            return candidate
    return None


def _candidates(subnet: Doc, last: int) -> Iterator[str]:
    """Yield all addresses of the pools, those after *last* first."""
    make = ipaddress.IPv4Address if subnet["ip_version"] == 4 else ipaddress.IPv6Address
    ranges = [
        (int(ipaddress.ip_address(pool["start"])), int(ipaddress.ip_address(pool["end"])))
        for pool in subnet["allocation_pools"]
    ]
    for start, end in ranges:
        for value in range(max(start, last + 1), end + 1):
            yield str(make(value))
    for start, end in ranges:
        for value in range(start, min(end, last) + 1):
            yield str(make(value))


def _insert(tx: Tx, subnet_id: str, address: str, port_id: str) -> bool:
    done = tx.run("INSERT OR IGNORE INTO addresses VALUES (?, ?, ?)", subnet_id, address, port_id)
    return done.rowcount == 1


def claim(tx: Tx, subnet: Doc, asked: str, port_id: str) -> str:
    """Give out the address that was asked for.

    :raises Fault: 400 when it is not in the subnet, 409 when it is taken
    """
    try:
        address = ipaddress.ip_address(asked)
    except ValueError as error:
        raise base.invalid_input(f"'{asked}' is not a valid IP address") from error
    if address not in ipaddress.ip_network(subnet["cidr"]):
        raise Fault(
            400,
            f"IP address {asked} is not a valid IP for the specified subnet.",
            "InvalidIpForSubnet",
        )
    if not _insert(tx, subnet["id"], str(address), port_id):
        raise base.conflict(
            f"IP address {address} already allocated in subnet {subnet['id']}.",
            "IpAddressAlreadyAllocated",
        )
    return str(address)


def give_back(tx: Tx, port_id: str) -> None:
    """Free all addresses of a port."""
    tx.run("DELETE FROM addresses WHERE port_id = ?", port_id)


def in_use(tx: Tx, subnet_id: str) -> bool:
    """Tell whether any port has an address of the subnet."""
    return tx.one("SELECT 1 FROM addresses WHERE subnet_id = ? LIMIT 1", subnet_id) is not None


def rewind(tx: Tx, subnet_id: str) -> None:
    """Search the pools from their start again."""
    tx.run("DELETE FROM address_cursors WHERE subnet_id = ?", subnet_id)


def forget_subnet(tx: Tx, subnet_id: str) -> None:
    """Delete what is kept about a subnet."""
    rewind(tx, subnet_id)
    tx.run("DELETE FROM addresses WHERE subnet_id = ?", subnet_id)


def mac(tx: Tx, network_id: str, port_id: str, asked: str | None) -> str:
    """Give out a MAC that is unique in the network.

    :raises Fault: 409 when the one that was asked for is taken
    """
    while True:
        found = asked.lower() if asked else _random_mac()
        done = tx.run("INSERT OR IGNORE INTO macs VALUES (?, ?, ?)", network_id, found, port_id)
        if done.rowcount == 1:
            return found
        if asked:
            raise base.conflict(
                f"Unable to complete operation for network {network_id}. The mac address "
                f"{asked} is in use.",
                "MacAddressInUse",
            )


def _random_mac() -> str:
    return MAC_PREFIX + "".join(f":{byte:02x}" for byte in secrets.token_bytes(3))


def give_back_macs(tx: Tx, port_id: str) -> None:
    """Free the MAC of a port."""
    tx.run("DELETE FROM macs WHERE port_id = ?", port_id)


def holding(subnets: list[Doc], asked: str) -> Doc | None:
    """Return the subnet whose range has the address, None if there is none.

    :raises Fault: 400 when it is no address
    """
    try:
        address = ipaddress.ip_address(asked)
    except ValueError as error:
        raise base.invalid_input(f"'{asked}' is not a valid IP address") from error
    for subnet in subnets:
        if address in ipaddress.ip_network(subnet["cidr"]):
            return subnet
    return None
