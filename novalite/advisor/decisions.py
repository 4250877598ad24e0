# SPDX-License-Identifier: Apache-2.0
"""One decision of a scheduler in tables: counts of all hosts, nearest misses, weights, the sums.

Called by ``render.py`` with the part of an explanation that administrators get.
"""

from collections.abc import Iterator
from typing import Any

from novalite.advisor.columns import DIM, Line, number, rows
from novalite.advisor.hosts import HEADINGS, place, sums

Json = dict[str, Any]

_INDENT = "      "
_OTHER_HOST = ("not_forced_host", "not_requested_host")
_AMOUNTS = ("need", "have", "limit", "total", "ratio", "used", "reserved")


def lines(decision: Json) -> Iterator[Line]:
    """Return what was wanted, what became of every host, and why."""
    need = decision["need"]
    yield Line(
        f"    Decision: wanted {need['memory_mb']} MB memory, {need['disk_gb']} GB disk, "
        f"{need['vcpus']} vcpus; of {decision['hosts']} hosts {decision['survivors']} were left"
    )
    if decision["forced"]:
        yield Line(
            f"{_INDENT}The host was named in the request: filters were skipped, no limits set."
        )
    yield from rows(("filter", "came", "left", "removed"), _counts(decision), _INDENT)
    yield from _misses(decision["misses"])
    yield from _weights(decision)
    yield from _chosen(decision)
    told = {place(row): row["picture"] for row in [*decision["weights"], *decision["misses"]]}
    names = ", ".join(f"{name} {picture}" for name, picture in told.items() if picture)
    which = f" ({names})" if names else ""
    yield Line(
        f"{_INDENT}The pictures of the hosts{which} were {decision['picture_age']:.2f} s old; "
        f"deciding took {decision['took'] * 1000:.1f} ms",
        DIM,
    )


def _counts(decision: Json) -> list[tuple[Any, ...]]:
    return [
        (
            count["filter"],
            count["start"],
            count["end"],
            ", ".join(f"{code} {hosts}" for code, hosts in count["codes"].items()),
        )
        for count in decision["filters"]
    ]


def _misses(misses: list[Json]) -> Iterator[Line]:
    # That a host was not the one that was named needs no row: the counts say it.
    misses = [
        miss for miss in misses if miss["reasons"] and miss["reasons"][0]["code"] not in _OTHER_HOST
    ]
    if not misses:
        return
    yield Line("")
    measured = any("need" in reason for miss in misses for reason in miss["reasons"])
    names = _AMOUNTS if measured else ()
    table = []
    # Hosts of which the same is to be said stand together.
    more: dict[str, list[str]] = {}
    for miss in misses:
        for reason in miss["reasons"]:
            amounts = [reason.get(name) for name in names]
            why = [reason["filter"], reason["code"], *amounts, reason.get("detail", "")]
            table.append([place(miss), *why])
        changes = " and ".join(change["text"] for change in miss["changes"])
        for text in (*miss["more"], f"the server would be let in after: {changes}"):
            more.setdefault(text, []).append(place(miss))
    headings = ("nearest that were not taken", "filter", "reason", *names, "")
    yield from rows(headings, table, _INDENT)
    for text, hosts in more.items():
        yield Line(f"{_INDENT}{', '.join(hosts)}: {text}")


def _weights(decision: Json) -> Iterator[Line]:
    """Return a column for each of the best hosts and a row for each weigher that tells them apart.

    A cell is raw -> normalised = weighted.
    """
    hosts = decision["weights"]
    if not hosts:
        return
    yield Line("")
    if decision["survivors"] == 1:
        yield Line(f"{_INDENT}{place(hosts[0])} was the only one left: there was nothing to weigh")
        return
    table, same = [], []
    for at, weigher in enumerate(hosts[0]["weighers"]):
        cells = [host["weighers"][at] for host in hosts]
        if any(cell["normalised"] for cell in cells):
            shown = [_weighted(cell) for cell in cells]
            table.append([weigher["weigher"], number(weigher["multiplier"]), *shown])
        else:
            same.append(weigher["weigher"])
    table.append(["weight", "", *(number(host["total"]) for host in hosts)])
    yield from rows(("best hosts", "x", *(place(host) for host in hosts)), table, _INDENT)
    if len(table) > 1:
        yield Line(f"{_INDENT}(raw -> normalised = weighted, times x)", DIM)
    if same:
        yield Line(f"{_INDENT}The same for all hosts: {', '.join(same)}")


def _weighted(cell: Json) -> str:
    return f"{number(cell['raw'])} -> {cell['normalised']:.3f} = {number(cell['weighted'])}"


def _chosen(decision: Json) -> Iterator[Line]:
    if decision["host"] is None:
        return
    yield Line("")
    yield Line(f"{_INDENT}Chosen: {place(decision)}")
    for each in decision.get("violated", ()):
        yield Line(f"{_INDENT}{each['filter']} would have refused it: {each['text']}")
    if decision["room"]:
        yield from rows(HEADINGS, [sums(each) for each in decision["resources"]], _INDENT)
    yield from (Line(f"{_INDENT}{text}") for text in decision["more"])
