# SPDX-License-Identifier: Apache-2.0
"""The small language of requirements in flavor extra specs: ``>= 4``, ``s== Intel``, ``<in> aes``.

Filters ask :func:`match`. Pure.

    = N             at least N (for history's sake)      s==, s!=, s<, s<=, s>, s>=   as text
    ==, !=, <=, >=  as numbers                           <in> X      X is part of the value
    <all-in> X Y    all are parts of the value           <or> X <or> Y   is one of them
    anything else   the value is exactly that text
"""

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

_NUMBERS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}
_TEXTS: dict[str, Callable[[str, str], bool]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
    "<in>": operator.contains,
}
_AT_LEAST = ("=", ">=")


class Requirement(NamedTuple):
    """One requirement, taken apart: the operator ("" for none) and its words."""

    text: str
    operator: str
    words: tuple[str, ...]


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Requirement:
    """Take a requirement apart."""
    words = text.split()
    if not words or words[0] not in (*_NUMBERS, *_TEXTS, "<all-in>", "<or>"):
        return Requirement(text, "", ())
    kind, rest = words[0], words[1:]
    return Requirement(text, kind, tuple(rest[::2] if kind == "<or>" else rest))


def match(value: str, text: str) -> bool:
    """Tell whether a value meets a requirement; what is no number meets none of numbers."""
    _text, kind, words = parse(text)
    if not kind:
        return value == text
    if not words:
        return False
    if kind == "<or>":
        return value in words
    if kind == "<all-in>":
        return all(word in value for word in words)
    if kind in _TEXTS:
        return _TEXTS[kind](value, words[0])
    mine, theirs = number(value), number(words[0])
    return mine is not None and theirs is not None and _NUMBERS[kind](mine, theirs)


def at_least(text: str) -> float | None:
    """Return the number that a requirement wants at least; None if it is of another kind."""
    _text, kind, words = parse(text)
    return number(words[0]) if kind in _AT_LEAST and words else None


def number(text: str) -> float | None:
    """Return a text as a number, None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None
