# SPDX-License-Identifier: Apache-2.0
"""Query parameters that every list has in common: limit, marker, sort keys, yes and no."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oslo_config import cfg

from novalite import exception
from novalite.api import http

TRUE = frozenset(("1", "t", "true", "on", "y", "yes"))
FALSE = frozenset(("0", "f", "false", "off", "n", "no"))
_SHOWN = 100
# Each may become a condition or a sort key of one query.
MAX_VALUES = 500


@dataclass(slots=True)
class Page:
    """What part of a list is wanted: at most *limit* items after the one named *marker*."""

    limit: int
    marker: str | None = None


def refuse(name: str, value: str, why: str) -> exception.ValidationError:
    """Return the error for a wrong query parameter."""
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
    return exception.ValidationError(
        detail=f"Invalid input for query parameters {name}. Value: {shown}. '{shown}' {why}"
    )


def values(req: http.Request) -> dict[str, list[str]]:
    """Return all query parameters, each with all its values.

    :raises exception.ValidationError: too many, or a NUL character, which no database takes
    """
    found: dict[str, list[str]] = {}
    count = 0
    for name, value in req.params.items():
        items = value if isinstance(value, list) else [value]
        count += len(items)
        if count > MAX_VALUES:
            raise exception.ValidationError(
                detail=f"Invalid input for query parameters: more than {MAX_VALUES} values"
            )
        if any("\0" in item for item in items):
            raise refuse(name, "", "contains a NUL character")
        found[name] = items
    return found


def last(query: Mapping[str, list[str]], name: str) -> str | None:
    """Return the last value of a parameter, or None."""
    items = query.get(name)
    return items[-1] if items else None


def refuse_unknown(
    query: Mapping[str, list[str]], version: int, *names: str, since: int = 75
) -> None:
    """Refuse any other parameter than *names* from 2.*since* on; before, it is ignored.

    :raises exception.ValidationError: naming what is not known
    """
    others = sorted(set(query) - set(names)) if version >= since else []
    if others:
        shown = ", ".join(repr(name[:_SHOWN]) for name in others[:5])
        raise exception.ValidationError(
            detail="Invalid input for query parameters: Additional properties are not allowed "
            f"({shown} {'was' if len(others) == 1 else 'were'} unexpected)"
        )


def page(conf: cfg.ConfigOpts, query: Mapping[str, list[str]]) -> Page:
    """Read limit and marker; a limit above max_limit is cut to it, 0 asks for an empty list.

    :raises exception.ValidationError: the limit is no whole number or negative
    """
    most = int(conf.api.max_limit)
    text = last(query, "limit")
    if text is None:
        limit = most
    elif not (text.isascii() and text.isdigit()):
        raise refuse("limit", text, "does not match '^[0-9]+$'")
    else:
        # More digits than this are above any max_limit, whatever they say.
        limit = most if len(text.lstrip("0")) > 9 else min(int(text), most)
    return Page(limit, last(query, "marker"))


def offset(conf: cfg.ConfigOpts, query: Mapping[str, list[str]]) -> tuple[int, int]:
    """Read offset and limit of a list without markers; a limit of 0 is the greatest one there.

    :raises exception.ValidationError: one of them is no whole number or negative
    """
    most = int(conf.api.max_limit)
    found = {}
    for name in ("offset", "limit"):
        text = last(query, name) or "0"
        if not (text.isascii() and text.isdigit()):
            raise refuse(name, text, "does not match '^[0-9]+$'")
        found[name] = 10**9 if len(text.lstrip("0")) > 9 else int(text)
    return found["offset"], min(found["limit"] or most, most)


def boolean(name: str, text: str) -> bool:
    """Read yes or no in the words that Nova takes.

    :raises exception.ValidationError: it is neither
    """
    word = text.strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise refuse(name, text, "is neither true nor false")


def number(name: str, text: str, lowest: int = 0, highest: int = 2**31 - 1) -> int:
    """Read a whole number.

    :raises exception.ValidationError: it is none, or out of bounds
    """
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10:
        raise refuse(name, text, "is not a whole number")
    value = int(text)
    if not lowest <= value <= highest:
        raise refuse(name, text, f"is not between {lowest} and {highest}")
    return value


def sorting(
    query: Mapping[str, list[str]], allowed: Iterable[str], default: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Read sort_key and sort_dir, which may be repeated; return (key, direction) pairs.

    :raises exception.ValidationError: an unknown key or direction
    """
    known = frozenset(allowed)
    keys = query.get("sort_key", [])
    directions = query.get("sort_dir", [])
    for key in keys:
        if key not in known:
            raise refuse("sort_key", key, f"is not one of {sorted(known)}")
    for direction in directions:
        if direction not in ("asc", "desc"):
            raise refuse("sort_dir", direction, "is not one of ['asc', 'desc']")
    if len(directions) > max(len(keys), 1):
        raise exception.InvalidInput("Sort direction array length exceeds sort key array length.")
    if not keys:
        if directions:
            return [(key, directions[0]) for key, _direction in default]
        return default
    first = directions[0] if directions else "desc"
    directions = directions + [first] * (len(keys) - len(directions))
    return list(zip(keys, directions, strict=True))
