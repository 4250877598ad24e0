# SPDX-License-Identifier: Apache-2.0
"""Plays errors of a database server where ``[testing] database_faults`` asks for them.

For tests of what deadlocks do to the real processes; without the option nothing here is called.
"""

import re
import threading
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

_WRITES = re.compile(r"\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)", re.IGNORECASE)


class _ServerError(Exception):
    """What a MySQL driver raises: the number comes first."""


class Faults:
    """Errors that wait for writes to tables.

    :param text: ``TABLE:NUMBER:TIMES`` with commas between; TIMES 0 is always
    """

    def __init__(self, text: str):
        self._lock = threading.Lock()
        self._left: dict[str, tuple[int, int | None]] = {}
        for word in text.split(","):
            table, number, times = word.strip().split(":")
            self._left[table] = (int(number), int(times) or None)

    def listen(self, engine: sa.Engine) -> None:
        """Play them on the connections of an engine."""
        event.listen(engine, "before_cursor_execute", self._before)

    def _before(self, _conn: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        found = _WRITES.match(statement)
        number = self._take(found[1]) if found else None
        if number is not None:
            error = _ServerError(number, "played by [testing] database_faults")
            raise exc.OperationalError(statement, {}, error, hide_parameters=True)

    def _take(self, table: str) -> int | None:
        with self._lock:
            number, times = self._left.get(table, (0, 0))
            if times == 0:
                return None
            if times is not None:
                self._left[table] = (number, times - 1)
            return number
