# SPDX-License-Identifier: Apache-2.0
"""Rows in columns, as plain lines: the same on a terminal and in a pipe.

Used by everything here that prints more than sentences. Numbers stand at the right of their column.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

BOLD, RED, GREEN, DIM, YELLOW = "bold", "bold red", "bold green", "dim", "yellow"
_GAP = "  "


class Line(NamedTuple):
    """A line and its style on a terminal."""

    text: str
    style: str = ""


def show(lines: Iterable[Line], console: Console) -> None:
    """Print lines as they are: no markup, and no line is broken."""
    for line in lines:
        console.print(Text(line.text, style=line.style), soft_wrap=True)


def number(value: float | None) -> str:
    """Return a number without needless decimals; a dash for none."""
    # Adding 0.0 takes the sign off a zero.
    return "-" if value is None else f"{value + 0.0:.2f}".rstrip("0").rstrip(".")


def rows(
    headings: Sequence[str], cells: Iterable[Sequence[Any]], indent: str = ""
) -> Iterator[Line]:
    """Yield a line of headings and a line for each row.

    A cell may be a text, a number or None; a column of numbers alone stands to the right.
    """
    table = [list(row) for row in cells]
    columns = range(len(headings))
    right = [all(not isinstance(row[at], str) or not row[at] for row in table) for at in columns]
    texts = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in table]
    wide = [max(len(row[at]) for row in [list(headings), *texts]) for at in columns]
    for place, row in enumerate([list(headings), *texts]):
        placed = [
            row[at].rjust(wide[at]) if right[at] else row[at].ljust(wide[at]) for at in columns
        ]
        yield Line((indent + _GAP.join(placed)).rstrip(), "" if place else DIM)
