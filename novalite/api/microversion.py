# SPDX-License-Identifier: Apache-2.0
"""Microversions: which one a request asks for, and which ones a handler serves.

Only the minor number is kept; the major one is always 2. MAX is announced in the version
documents: raise it only when every body of every route here is right up to it.
"""

import functools
import re
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from novalite import exception

MIN = 1
MAX = 79

HEADER = "OpenStack-API-Version"
LEGACY_HEADER = "X-OpenStack-Nova-API-Version"
VARY = f"{HEADER}, {LEGACY_HEADER}"

# The attribute of a handler that says what between() was told.
SERVED = "served"

_FORM = re.compile(r"([1-9]\d{0,5})\.([1-9]\d{0,5}|0)\Z", re.ASCII)
Handler = TypeVar("Handler", bound=Callable[..., None])


class InvalidVersion(exception.Invalid):
    """The header is no version at all."""

    msg_fmt = (
        "API Version String %(version)s is of invalid format. Must be of format MajorNum.MinorNum."
    )


class VersionNotAcceptable(exception.NovaliteException):
    """The version is well-formed but not served."""

    msg_fmt: ClassVar[str] = (
        "Version %(version)s is not supported by the API. Minimum is "
        f"2.{MIN} and maximum is 2.{MAX}."
    )


def text(minor: int) -> str:
    """Return ``2.N``."""
    return f"2.{minor}"


def requested(header: str | None, legacy: str | None) -> int:
    """Return the minor version asked for by the two headers; without any it is 2.1.

    The general header may name several services; what it says for ``compute`` wins over the
    legacy header.

    :raises InvalidVersion: not of the form N.N
    :raises VersionNotAcceptable: below the minimum or above the maximum
    """
    wanted = _for_compute(header) or (legacy or "").strip()
    if not wanted:
        return MIN
    if wanted.lower() == "latest":
        return MAX
    found = _FORM.match(wanted)
    if found is None:
        raise InvalidVersion(version=wanted[:32])
    major, minor = int(found[1]), int(found[2])
    if major != 2 or not MIN <= minor <= MAX:
        raise VersionNotAcceptable(version=wanted)
    return minor


def _for_compute(header: str | None) -> str:
    for part in (header or "").split(","):
        service, _, version = part.strip().partition(" ")
        if service.lower() == "compute":
            return version.strip()
    return ""


def between(lowest: int, highest: int = MAX) -> Callable[[Handler], Handler]:
    """Decorator of a handler that exists from 2.*lowest* to 2.*highest*; else it is 404."""

    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        def checked(self: Any, req: Any, resp: Any, **params: str) -> None:
            version = req.state.version
            if not lowest <= version <= highest:
                raise exception.VersionNotFound(version=text(version))
            handler(self, req, resp, **params)

        checked.__dict__[SERVED] = (lowest, highest)
        return checked  # type: ignore[return-value]

    return decorate


def served(handler: Any) -> tuple[int, int]:
    """Return from which minor version to which one a handler exists."""
    found: tuple[int, int] = getattr(handler, SERVED, (MIN, MAX))
    return found


class Ranges:
    """Values that change with the microversion: pairs of (since which minor version, value)."""

    def __init__(self, *steps: tuple[int, Any]):
        self._steps = sorted(steps, key=lambda step: -step[0])

    def at(self, version: int) -> Any:
        """Return the value of the latest step that is not after *version*."""
        for since, value in self._steps:
            if since <= version:
                return value
        raise exception.VersionNotFound(version=text(version))

    def values(self) -> list[Any]:
        """Return all values."""
        return [value for _since, value in self._steps]
