# SPDX-License-Identifier: Apache-2.0
"""Answers about hosts as lines of text, from the bodies that the API answers with.

Used by ``novalite capacity`` and ``novalite why-not``. The answer is the first line.
"""

from collections.abc import Iterator
from typing import Any

from novalite.advisor.columns import BOLD, DIM, GREEN, RED, YELLOW, Line, number, rows

Json = dict[str, Any]

# How a resource is counted: usable is what may still be promised, free what nobody was promised.
_COUNTED = ("total", "ratio", "limit", "used", "reserved", "free", "usable")
HEADINGS = (
    "resource",
    "need",
    "total",
    "x ratio",
    "= limit",
    "used",
    "reserved",
    "free",
    "usable",
)


def capacity(body: Json) -> Iterator[Line]:
    """Return how many more servers fit: the sums of each host, and what binds."""
    found = body["capacity"]
    yield Line(found["summary"], BOLD)
    for host in found["hosts"]:
        yield Line("")
        yield from _capacity_of(host)
    yield Line("")
    yield Line(
        "limit = total x ratio, usable = limit - used, free = total - used; used holds what is "
        f"reserved. The pictures were {found['picture_age']:.2f} s old.",
        DIM,
    )


def _capacity_of(host: Json) -> Iterator[Line]:
    count = "any number" if host["count"] is None else host["count"]
    yield Line(f"{place(host)}: {count} more", GREEN if host["count"] != 0 else RED)
    headings = (*HEADINGS, "fit")
    yield from rows(
        headings, [(*sums(each), each["count"]) for each in host["resources"]], indent="  "
    )
    yield from _notes(host["resources"], "  ")
    yield Line(f"  what binds: {host['binds_text']}")
    yield from (Line(f"  {text}") for text in host["more"])


def why_not(body: Json) -> Iterator[Line]:
    """Return what the filters say of one host or of all."""
    found = body["why_not"]
    hosts = found["hosts"]
    if not found["host_details"]:
        yield Line(found["summary"], BOLD)
        yield Line("Hosts and numbers are for administrators.", DIM)
    elif len(hosts) == 1:
        yield from _one(found, hosts[0])
    else:
        yield from _all(found, hosts)


def _one(found: Json, host: Json) -> Iterator[Line]:
    yield Line(host["summary"], GREEN if host["fits"] else RED)
    yield from (Line(f"  {text}") for text in host["more"])
    if host["changes"]:
        yield Line("What would change it:", YELLOW)
        yield from (Line(f"  - {change['text']}") for change in host["changes"])
    yield Line("")
    refused = [(each["filter"], f"refuses it: {each['code']}") for each in host["reasons"]]
    passed = [(name, "lets it in") for name in host["passed"]]
    yield from rows(("filter", "says"), [*refused, *passed])
    yield Line("")
    yield from rows(HEADINGS, [sums(each) for each in host["resources"]])
    yield from _notes(host["resources"], "")
    for weights in host["weights"]:
        yield Line("")
        yield from weighers(weights)
    yield Line("")
    yield Line(f"Picture {host['picture']} of the host, {found['picture_age']:.2f} s old.", DIM)


def _all(found: Json, hosts: list[Json]) -> Iterator[Line]:
    yield Line(found["summary"], BOLD)
    yield Line("")
    table = []
    for host in sorted(hosts, key=lambda each: (each["rank"] is None, each["rank"] or 0)):
        weight = host["weights"][0]["total"] if host["weights"] else None
        why = "; ".join(f"{each['filter']}: {each['text']}" for each in host["reasons"])
        change = " and ".join(each["text"] for each in host["changes"])
        table.append((place(host), host["rank"], weight, host["picture"], why, change))
    headings = ("host", "rank", "weight", "picture", "refused by", "what would let it in")
    yield from rows(headings, table)
    yield Line("")
    yield Line(f"Asked anew: the pictures were {found['picture_age']:.2f} s old.", DIM)


def weighers(weights: Json, indent: str = "") -> Iterator[Line]:
    """Return the weights of one host: raw, normalised, multiplied, and their sum."""
    names = ("raw", "normalised", "multiplier", "weighted")
    table: list[tuple[Any, ...]] = [
        (each["weigher"], *(each[name] for name in names)) for each in weights["weighers"]
    ]
    yield from rows(("weigher", *names), table, indent)
    yield Line(f"{indent}weight {number(weights['total'])}")


def _notes(resources: list[Json], indent: str) -> Iterator[Line]:
    for each in resources:
        if each["note"]:
            yield Line(f"{indent}{each['resource']}: {each['note']}")


def place(host: Json) -> str:
    """Return the name of a host, with its node if that has another name."""
    same = host["node"] in (None, "", host["host"])
    return str(host["host"]) if same else f"{host['host']} (node {host['node']})"


def sums(each: Json) -> tuple[Any, ...]:
    """Return the row of one resource under HEADINGS."""
    name = each["resource"] if each["resource"] == "vcpu" else f"{each['resource']} {each['unit']}"
    return (name, each["need"], *(each[part] for part in _COUNTED))
