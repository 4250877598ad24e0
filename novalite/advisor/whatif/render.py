# SPDX-License-Identifier: Apache-2.0
"""A what-if as lines of text: settings, totals, refusals, hosts, side by side.

The body is what :func:`.comparison.compare` returns; ``-f json`` prints it as it is.
"""

from collections.abc import Iterator
from typing import Any

from novalite.advisor import columns
from novalite.advisor.columns import BOLD, DIM, YELLOW, Line

Json = dict[str, Any]
# Rows of a table of hosts or servers, unless all are asked for.
MOST = 10
_RESOURCES = ("memory", "disk", "vcpu")


def lines(body: Json, everything: bool = False) -> Iterator[Line]:
    """Yield the whole comparison.

    :param everything: all hosts and servers, not only the first
    """
    for side in ("old", "new"):
        yield Line(f"{side}: {', '.join(body['files'][side]) or 'the defaults'}", DIM)
    for note in body["notes"]:
        yield Line(f"note: {note}", YELLOW)
    yield Line("")
    yield from _settings(body["settings"])
    yield from _summary(body)
    yield from _kinds(body["requests"])
    yield from _hosts(body["hosts"], everything)
    yield from _elsewhere(body, everything)


def _settings(changes: list[Json]) -> Iterator[Line]:
    if not changes:
        yield Line("The settings do not differ in anything that decides about places.", BOLD)
        yield Line("")
        return
    yield Line("Settings that differ", BOLD)
    rows = [(each["option"], *_texts(each["old"], each["new"])) for each in changes]
    yield from columns.rows(("option", "old", "new"), rows, "  ")
    yield Line("")


def _texts(old: Any, new: Any) -> tuple[str, str]:
    """Return two different values as texts; of lists only what the other one has not."""
    if not (isinstance(old, list) and isinstance(new, list)):
        return _text(old), _text(new)
    if sorted(old) == sorted(new):
        return f"{len(old)} names", "the same in another order"
    return _besides(old, new), _besides(new, old)


def _besides(one: list[str], other: list[str]) -> str:
    more = [name for name in one if name not in other]
    return f"with {', '.join(more)}" if more else "(nothing more)"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return columns.number(value)
    return "(unset)" if value is None else str(value)


def _summary(body: Json) -> Iterator[Line]:
    old, new = body["summary"]["old"], body["summary"]["new"]
    yield Line(f"{old['servers']} servers on {old['hosts']} hosts", BOLD)
    rows: list[tuple[str, float, float]] = [
        ("placed", old["placed"], new["placed"]),
        ("refused", old["refused"], new["refused"]),
        ("hosts that got servers", old["hosts_that_got_servers"], new["hosts_that_got_servers"]),
        ("most on one host", old["most_on_one_host"], new["most_on_one_host"]),
    ]
    for resource in _RESOURCES:
        for what in ("average", "most", "imbalance"):
            before, after = (side["fill_percent"][resource][what] for side in (old, new))
            rows.append((f"{resource} fill, {what} %", before, after))
    rows.append(("CPU seconds", old["cpu_seconds"], new["cpu_seconds"]))
    shown = [(*row, row[2] - row[1]) for row in rows[:-1]] + [(*rows[-1], None)]
    yield from columns.rows(("", "old", "new", "change"), shown, "  ")
    yield Line("")


def _kinds(kinds: list[Json]) -> Iterator[Line]:
    yield Line("Requests", BOLD)
    rows = [
        (
            each["kind"],
            each["servers"],
            each["old"]["placed"],
            each["new"]["placed"],
            each["old"]["refused"],
            each["new"]["refused"],
        )
        for each in kinds
    ]
    headings = ("kind", "servers", "placed old", "placed new", "refused old", "refused new")
    yield from columns.rows(headings, rows, "  ")
    for each in kinds:
        for side in ("old", "new"):
            yield from _why(each["kind"], side, each[side])
    yield Line("")


def _why(kind: str, side: str, found: Json) -> Iterator[Line]:
    if not found["refused"]:
        return
    by = ", ".join(f"{name} {count}" for name, count in found["refused_by"].items())
    yield Line(f"  {side}, {kind}: {found['refused']} refused, the last hosts removed by: {by}")
    yield Line(f"    at last: {found['last_refusal']}", DIM)
    if found["nearest"]:
        yield Line(f"    nearest: {found['nearest']}", DIM)


def _hosts(hosts: list[Json], everything: bool) -> Iterator[Line]:
    shown = [each for each in hosts if everything or each["old"] != each["new"]]
    shown.sort(key=_difference, reverse=True)
    if not everything:
        count = len(shown)
        shown = shown[:MOST]
        yield Line(f"Hosts whose fill differs: {count}" + _first(count), BOLD)
    else:
        yield Line("Hosts", BOLD)
    rows = []
    for each in shown:
        old, new = each["old"], each["new"]
        cells: list[Any] = [each["node"], old["servers"], new["servers"]]
        for resource in _RESOURCES:
            cells.append(f"{old[f'{resource}_percent']:g} > {new[f'{resource}_percent']:g}")
        rows.append(cells)
    if rows:
        headings = ("host", "got old", "got new", "memory %", "disk %", "vcpu %")
        yield from columns.rows(headings, rows, "  ")
    yield Line("")


def _difference(each: Json) -> float:
    keys = [f"{resource}_percent" for resource in _RESOURCES]
    return max(abs(float(each["old"][key]) - float(each["new"][key])) for key in keys)


def _first(count: int) -> str:
    return f" (the {MOST} that differ most)" if count > MOST else ""


def _elsewhere(body: Json, everything: bool) -> Iterator[Line]:
    found, counts = body["elsewhere"], body["differences"]
    yield Line(
        f"Servers that land elsewhere: {counts['on_another_host']} on another host, "
        f"{counts['only_new']} placed with the new settings only, {counts['only_old']} with the "
        "old ones only",
        BOLD,
    )
    shown = found if everything else found[:MOST]
    rows = [(each["server"], each["old"] or "refused", each["new"] or "refused") for each in shown]
    if rows:
        yield from columns.rows(("server", "old", "new"), rows, "  ")
    if len(shown) < len(found):
        yield Line(f"  and {len(found) - len(shown)} more (--all shows them)", DIM)
