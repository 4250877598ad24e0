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
    if not misses:
        return
    yield Line("")
    table, more = [], []
    for miss in misses:
        for reason in miss["reasons"]:
            amounts = [reason.get(name) for name in _AMOUNTS]
            why = [reason["filter"], reason["code"], *amounts, reason.get("detail", "")]
            table.append([place(miss), *why])
        for text in miss["more"]:
            more.append(f"{place(miss)}: {text}")
        changes = " and ".join(change["text"] for change in miss["changes"])
        more.append(f"{place(miss)} would take it after: {changes}")
    headings = ("nearest that were not taken", "filter", "reason", *_AMOUNTS, "")
    yield from rows(headings, table, _INDENT)
    yield from (Line(f"{_INDENT}{text}") for text in more)


def _weights(decision: Json) -> Iterator[Line]:
    """Return one row a host: raw -> normalised x multiplier = weighted."""
    weighed = decision["weights"]
    if not weighed:
        return
    yield Line("")
    names = [each["weigher"] for each in weighed[0]["weighers"]]
    table = [
        [place(row), row["total"], *(_product(each) for each in row["weighers"])] for row in weighed
    ]
    # A host that was not weighed against any other has no numbers.
    wide = len(names) + 2
    table = [[*row, *([""] * (wide - len(row)))][:wide] for row in table]
    yield from rows(("best hosts", "weight", *names), table, _INDENT)
    if names:
        yield Line(f"{_INDENT}(raw -> normalised x multiplier = weighted)", DIM)


def _product(each: Json) -> str:
    return (
        f"{number(each['raw'])} -> {each['normalised']:.3f} x {number(each['multiplier'])} = "
        f"{number(each['weighted'])}"
    )


def _chosen(decision: Json) -> Iterator[Line]:
    if decision["host"] is None:
        return
    yield Line("")
    yield Line(f"{_INDENT}Chosen: {place(decision)}")
    if decision["room"]:
        yield from rows(HEADINGS, [sums(each) for each in decision["resources"]], _INDENT)
    yield from (Line(f"{_INDENT}{text}") for text in decision["more"])
