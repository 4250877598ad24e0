# SPDX-License-Identifier: Apache-2.0
"""Do all books agree? Servers, allocations, the nodes' own sums and the guests that really run."""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Rows = Callable[[str], list[dict[str, Any]]]


@dataclass(slots=True)
class Books:
    """``problems`` is empty when everything agrees; the rest helps to see why it does not."""

    problems: list[str] = field(default_factory=list)
    servers: dict[str, str | None] = field(default_factory=dict)
    guests: dict[str, list[str]] = field(default_factory=dict)


def read(rows: Rows, stores: dict[str, Path]) -> Books:
    """Compare everything.

    :param rows: runs a query on the cloud's database
    :param stores: host: file of its fake hypervisor
    """
    books = Books(guests={host: _guests(file) for host, file in stores.items()})
    live = rows(
        "select uuid, host, node, vm_state, vcpus, memory_mb, flavor, image_ref from instances "
        "where not deleted"
    )
    books.servers = {row["uuid"]: row["host"] for row in live}
    _compare_guests(books, live)
    _compare_allocations(books, live, rows("select * from allocations"))
    _compare_nodes(books, live, rows("select * from compute_nodes"))
    open_actions = rows(
        "select instance_uuid, action, state from instance_actions "
        "where state in ('pending', 'running')"
    )
    books.problems += [f"an action is open: {row}" for row in open_actions]
    left = rows("select instance_uuid, host from cleanups")
    books.problems += [f"a host still has to clean up: {row}" for row in left]
    return books


def _guests(file: Path) -> list[str]:
    if not file.exists():
        return []
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5.0)
    try:
        return [row[0] for row in connection.execute("select uuid from domains order by uuid")]
    finally:
        connection.close()


def _compare_guests(books: Books, live: list[dict[str, Any]]) -> None:
    for row in live:
        homes = [host for host, guests in books.guests.items() if row["uuid"] in guests]
        wanted = [row["host"]] if row["vm_state"] == "active" else []
        if homes != wanted:
            books.problems.append(
                f"server {row['uuid']} ({row['vm_state']}) should have guests on {wanted}, "
                f"has them on {homes}"
            )
    known = {row["uuid"] for row in live}
    for host, guests in books.guests.items():
        books.problems += [
            f"{host} has a guest of nobody: {uuid}" for uuid in guests if uuid not in known
        ]


def _wanted(row: dict[str, Any]) -> dict[str, int]:
    flavor = row["flavor"] if isinstance(row["flavor"], dict) else json.loads(row["flavor"])
    # A volume-backed server, which has no image, has no local root disk.
    root = flavor["root_gb"] if row["image_ref"] else 0
    disk = root + flavor["ephemeral_gb"] + -(-flavor["swap_mb"] // 1024)
    return {"VCPU": row["vcpus"], "MEMORY_MB": row["memory_mb"], "DISK_GB": disk}


def _compare_allocations(
    books: Books, live: list[dict[str, Any]], allocations: list[dict[str, Any]]
) -> None:
    wanted = {
        (row["uuid"], row["node"], name): amount
        for row in live
        if row["host"]
        for name, amount in _wanted(row).items()
        if amount
    }
    found = {
        (row["consumer"], row["node"], row["resource_class"]): row["used"]
        for row in allocations
        if row["used"]
    }
    for key in sorted(wanted.keys() | found.keys(), key=str):
        if wanted.get(key) != found.get(key):
            books.problems.append(
                f"allocation {key} should be {wanted.get(key)}, is {found.get(key)}"
            )


def _compare_nodes(books: Books, live: list[dict[str, Any]], nodes: list[dict[str, Any]]) -> None:
    for node in nodes:
        picture = (
            node["picture"] if isinstance(node["picture"], dict) else json.loads(node["picture"])
        )
        mine = [_wanted(row) for row in live if row["node"] == node["hypervisor_hostname"]]
        sums = {name: sum(want[name] for want in mine) for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
        wanted = {
            "vcpus_used": picture["reserved_host_cpus"] + sums["VCPU"],
            "memory_mb_used": picture["reserved_host_memory_mb"]
            + sums["MEMORY_MB"]
            + picture["guest_overhead_mb"] * len(mine),
            "local_gb_used": -(-picture["reserved_host_disk_mb"] // 1024) + sums["DISK_GB"],
            "running_vms": len(mine),
        }
        found = {name: node[name] for name in wanted}
        if found != wanted:
            books.problems.append(
                f"node {node['hypervisor_hostname']} says {found}, its servers sum up to {wanted}"
            )
