# SPDX-License-Identifier: Apache-2.0
"""What a scheduler decided and why: every host accounted for once, with counts, numbers, words.

The pipeline makes a :class:`Decision`, the conductor stores it with the action, API and command
line show it. Pure data: no clock, no option, no table.

The rows in it are named tuples because they travel and are stored as plain arrays, which is what
keeps a decision within its bounds. Fields of a row may only be appended, with a default.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from novalite.objects import base, change
from novalite.objects.capacity import Need
from novalite.objects.reason import WORDS, Reason, number

# Most bytes of a decision as JSON, with and without a host.
SUCCESS_BYTES = 2048
FAILURE_BYTES = 8192
NEAREST = 10
TOP = 5
# The name of the filter that leaves only the host that the request names.
REQUESTED = "requested_destination"
# Most different codes kept for one filter, and most characters of a detail: both may come from
# filters that are not ours.
_CODES = 6
_DETAIL = 80
# Made once, since every decision is measured.
_COMPACT = json.JSONEncoder(separators=(",", ":"), check_circular=False)


class FilterCount(NamedTuple):
    """How many hosts came to a filter and how many left it; ``codes`` counts why the others did
    not."""

    filter: str
    start: int
    end: int
    codes: dict[str, int]


class Miss(NamedTuple):
    """One host that was not taken, with every filter that refuses it; the first one removed it.

    ``picture`` is the generation of the host's picture, "epoch.counter"; "" if nobody said.
    """

    host: str
    node: str
    reasons: list[tuple[str, Reason]]
    picture: str = ""


class Weighed(NamedTuple):
    """One host that was weighed; ``raw`` and ``normalised`` are in the order of the weighers.

    ``multipliers`` are those in force on the host if its aggregates replace some, else None.
    """

    host: str
    node: str
    total: float
    raw: list[float]
    normalised: list[float]
    picture: str = ""
    multipliers: list[float] | None = None


@base.register
@dataclass(slots=True)
class Decision:
    """One instance's way through filters and weighers.

    ``hosts`` counts all hosts; each is in exactly one filter's count or in ``survivors``.
    ``weighers`` are (name, multiplier). ``room`` is the arithmetic of the chosen host.
    ``picture_age`` is how many seconds ago the hosts' pictures were known to be the newest, and
    ``took`` the seconds that the decision took. ``violated`` is what the enabled filters, which
    were skipped, would have said against a forced host.
    """

    VERSION: ClassVar[str] = "1.1"

    hosts: int = 0
    survivors: int = 0
    need: Need = Need(0, 0, 0)
    host: str | None = None
    node: str | None = None
    forced: bool = False
    filters: list[FilterCount] = field(default_factory=list)
    misses: list[Miss] = field(default_factory=list)
    weighers: list[tuple[str, float]] = field(default_factory=list)
    weights: list[Weighed] = field(default_factory=list)
    room: list[Reason] = field(default_factory=list)
    picture_age: float = 0.0
    took: float = 0.0
    violated: list[tuple[str, Reason]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Give rows that came as arrays their names back; fields unknown here are dropped."""
        self.need = _row(Need, self.need)
        self.filters = [_row(FilterCount, row) for row in self.filters]
        self.misses = [_miss(row) for row in self.misses]
        self.weighers = [(row[0], row[1]) for row in self.weighers]
        self.weights = [_row(Weighed, row) for row in self.weights]
        self.room = [_row(Reason, row) for row in self.room]
        self.violated = [(row[0], _row(Reason, row[1])) for row in self.violated]

    def bound(self) -> "Decision":
        """Shorten the lists from their ends until the decision keeps its size; return itself."""
        most = FAILURE_BYTES if self.host is None else SUCCESS_BYTES
        self.filters = [_with_few_codes(count) for count in self.filters]
        excess = self.size() - most
        if excess <= 0:
            return self
        # What is least needed goes first; the counts stay, since they account for every host.
        order: tuple[tuple[list[Any], int], ...] = (
            (self.misses, 1),
            (self.weights, 2),
            (self.misses, 0),
            (self.weights, 0),
            (self.room, 0),
            (self.violated, 0),
        )
        for rows, least in order:
            excess = _shorten(rows, least, excess)
        if excess > 0:
            self.filters = [count._replace(codes={}) for count in self.filters]
        return self

    def size(self) -> int:
        """Return the bytes of the decision on the wire, as compact JSON."""
        # The rows are tuples, which json writes as the arrays that the codec makes of them; so
        # the codec's slower walk is not needed to know the size.
        fields = {name: getattr(self, name) for name in self.__slots__}
        return _size({"novalite_object": "Decision", "version": self.VERSION} | fields)

    def only(self, filter_name: str) -> bool:
        """Tell whether this one filter removed all hosts, and there were any.

        Hosts that the request did not want anyway are none of its hosts.
        """
        hosts = self.hosts - sum(
            count.start - count.end for count in self.filters if count.filter == REQUESTED
        )
        return hosts > 0 and any(
            count.filter == filter_name and count.start - count.end == hosts
            for count in self.filters
        )

    def summary(self) -> str:
        """Return the counts in one line that a tenant may read: ``3 hosts: RamFilter 2, ...``."""
        hosts = "1 host" if self.hosts == 1 else f"{self.hosts} hosts"
        parts = [
            f"{filter_name(count.filter)} {count.start - count.end}"
            for count in self.filters
            if count.start > count.end
        ]
        if self.survivors:
            parts.append(f"left {self.survivors}")
        return f"{hosts}: {', '.join(parts)}" if parts else hosts

    def reason_text(self) -> str:
        """Return NoValidHost's reason: Nova's words, then the counts; nothing names a host."""
        return f"There are not enough hosts available. {self.summary()}."

    def text(self) -> str:
        """Return the whole decision in plain words with the arithmetic, for administrators."""
        wanted = (
            f"{self.need.memory_mb} MB memory, {self.need.disk_gb} GB disk, {self.need.vcpus} vcpus"
        )
        lines = [f"Wanted: {wanted}. {self.summary()}."]
        if self.forced:
            lines.append("The host was named in the request: filters were skipped, no limits set.")
        lines.extend(f"  {name} would have refused it: {r.text()}" for name, r in self.violated)
        lines.extend(self._filter_lines())
        for miss in self.misses:
            lines.append(f"Not {where(miss.host, miss.node)}:")
            lines.extend(f"  {name}: {reason.text()}" for name, reason in miss.reasons)
            changes = change.all_of(miss.reasons, miss.host)
            lines.append(f"  To let it in: {' and '.join(each.text for each in changes)}")
        lines.extend(self._weight_lines())
        if self.host is not None:
            lines.append(f"Chosen: {where(self.host, self.node)}.")
            lines.extend(f"  {reason.text()}" for reason in self.room)
        lines.append(
            f"Pictures of the hosts were {self.picture_age:.2f} s old; "
            f"deciding took {self.took * 1000:.1f} ms."
        )
        return "\n".join(lines)

    def _filter_lines(self) -> Iterable[str]:
        for count in self.filters:
            codes = ", ".join(f"{WORDS.get(code, code)}: {n}" for code, n in count.codes.items())
            yield f"{count.filter}: {count.start} -> {count.end}" + (f" ({codes})" if codes else "")

    def _weight_lines(self) -> Iterable[str]:
        for row in self.weights:
            parts = ", ".join(
                f"{name} {number(raw)} -> {normalised:.3f} x {number(multiplier)} = "
                f"{multiplier * normalised:.3f}"
                for name, multiplier, raw, normalised in self._columns(row)
            )
            yield f"Weight {row.total:.4f} {where(row.host, row.node)}: {parts}"

    def _columns(self, row: Weighed) -> Iterable[tuple[str, float, float, float]]:
        """Return name, multiplier, raw and normalised weight of each weigher on one host.

        A host that was not weighed against any other has no numbers.
        """
        names = [name for name, _multiplier in self.weighers]
        multipliers = row.multipliers or [multiplier for _name, multiplier in self.weighers]
        return zip(names, multipliers, row.raw, row.normalised, strict=bool(row.raw))

    def tenant_view(self) -> dict[str, Any]:
        """Return what a tenant may see: codes and counts, no host and no size of one.

        Names and codes of filters that are not ours may say anything; those are not shown.
        """
        return {
            "hosts": self.hosts,
            "survivors": self.survivors,
            "filters": [_tenants_count(count)._asdict() for count in self.filters],
        }

    def admin_view(self) -> dict[str, Any]:
        """Return everything under names, as JSON primitives."""
        return {
            "hosts": self.hosts,
            "survivors": self.survivors,
            "filters": [count._asdict() for count in self.filters],
            "need": self.need._asdict(),
            "host": self.host,
            "node": self.node,
            "forced": self.forced,
            "misses": [_miss_view(miss) for miss in self.misses],
            "weights": [self.weighed_view(row) for row in self.weights],
            "room": [reason_view(reason) for reason in self.room],
            "violated": [{"filter": name} | reason_view(r) for name, r in self.violated],
            "picture_age": self.picture_age,
            "took": self.took,
        }

    def weighed_view(self, row: Weighed) -> dict[str, Any]:
        """Return the weights of one host under names: raw, normalised, multiplied, in all."""
        return {
            "host": row.host,
            "node": row.node,
            "picture": row.picture,
            "total": row.total,
            "weighers": [
                {
                    "weigher": name,
                    "multiplier": multiplier,
                    "raw": raw,
                    "normalised": normalised,
                    "weighted": round(multiplier * normalised, 6),
                }
                for name, multiplier, raw, normalised in self._columns(row)
            ],
        }


def filter_name(name: str) -> str:
    """Return the name of a filter's class; what is none is not told to everybody."""
    return name if name.isascii() and name.isidentifier() and len(name) <= _DETAIL else "a filter"


def _tenants_count(count: FilterCount) -> FilterCount:
    codes: dict[str, int] = {}
    for code, hosts in count.codes.items():
        known = code if code in WORDS else "other"
        codes[known] = codes.get(known, 0) + hosts
    return count._replace(filter=filter_name(count.filter), codes=codes)


def _row(kind: Any, row: Any) -> Any:
    return row if isinstance(row, kind) else kind(*row[: len(kind._fields)])


def _miss(row: Any) -> Miss:
    if isinstance(row, Miss):
        return row
    host, node, reasons = row[:3]
    found = [(name, _row(Reason, reason)) for name, reason in reasons]
    return Miss(host, node, found, *row[3:4])


def _miss_view(miss: Miss) -> dict[str, Any]:
    reasons = [{"filter": name} | reason_view(reason) for name, reason in miss.reasons]
    changes = [each.view() for each in change.all_of(miss.reasons, miss.host)]
    return {
        "host": miss.host,
        "node": miss.node,
        "picture": miss.picture,
        "reasons": reasons,
        "changes": changes,
    }


def reason_view(reason: Reason) -> dict[str, Any]:
    """Return code, numbers and words of a reason, as JSON primitives."""
    known = {name: value for name, value in reason._asdict().items() if value is not None}
    return known | {"text": reason.text()}


def where(host: str | None, node: str | None) -> str:
    """Return the name of a host, with its node if that has another name."""
    return str(host) if node in (None, "", host) else f"{host} (node {node})"


def _size(wire: Any) -> int:
    return len(_COMPACT.encode(wire))


def _with_few_codes(count: FilterCount) -> FilterCount:
    """Keep the most frequent codes, with short names; the rest is summed up as ``other``."""
    codes = count.codes
    if len(codes) <= _CODES and all(len(code) <= _DETAIL for code in codes):
        return count
    ordered = sorted(codes.items(), key=lambda item: -item[1])
    few = {code[:_DETAIL]: number for code, number in ordered[:_CODES]}
    rest = sum(codes.values()) - sum(few.values())
    if rest:
        few["other"] = few.get("other", 0) + rest
    return count._replace(codes=few)


def _shorten(rows: list[Any], least: int, excess: int) -> int:
    """Drop rows from the end until *excess* bytes are saved; return what is still too much."""
    while excess > 0 and len(rows) > least:
        # With each row but the last its comma goes.
        excess -= _size(rows.pop()) + bool(rows)
    return excess
