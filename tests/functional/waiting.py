# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition the way a user would: looking again until it holds."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T], timeout: float = 20.0, what: str = "") -> T:
    """Return the first true value of *condition*; an AssertionError in it counts as not yet.

    :param what: said when *timeout* seconds have passed
    """
    began = time.monotonic()
    while True:
        value: T | None = None
        last: AssertionError | None = None
        try:
            value = condition()
        except AssertionError as error:
            last = error
        if value:
            return value
        waited = time.monotonic() - began
        if waited > timeout:
            raise AssertionError(f"not within {timeout:.0f} s: {what or last or value!r}") from last
        # What comes soon is seen soon; a long wait leaves the machine to those who work.
        time.sleep(min(0.02 + waited / 20, 0.15))
