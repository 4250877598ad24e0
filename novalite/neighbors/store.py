# SPDX-License-Identifier: Apache-2.0
"""The neighbours' memory: one SQLite file in WAL mode, and a folder for image data beside it.

Used by every request of the stand-ins. Readers each take a connection from a small pool; writers
go one at a time. Nothing here may wait for the network: a transaction is a few statements.
"""

import contextlib
import json
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from novalite.neighbors import schema

Doc = dict[str, Any]

# How long a writer waits for another process that has the file open, in seconds.
LOCK_TIMEOUT = 15.0

_INSERT = (
    "INSERT INTO records (kind, id, name, owner, parent, attached, doc) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_REPLACE = (
    "UPDATE records SET name = ?, owner = ?, parent = ?, attached = ?, doc = ? "
    "WHERE kind = ? AND id = ?"
)
_COLUMNS = ("id", "name", "owner", "parent", "attached")


class StoreLocked(Exception):
    """Another process held the file's write lock for too long."""


class Tx:
    """One connection, inside a transaction when it may write."""

    def __init__(self, conn: sqlite3.Connection):
        self._conn = conn

    def run(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Run one statement."""
        return self._conn.execute(sql, values)

    def one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """Return the first row or None."""
        row: tuple[Any, ...] | None = self._conn.execute(sql, values).fetchone()
        return row

    def get(self, kind: str, record_id: str) -> Doc | None:
        """Return the record or None."""
        row = self.one("SELECT doc FROM records WHERE kind = ? AND id = ?", kind, record_id)
        return None if row is None else json.loads(row[0])

    def find(self, kind: str, **columns: str | list[str]) -> list[Doc]:
        """Return the records whose columns (id, name, owner, parent, attached) have the values.

        A list means any of its values. The order is that of their making.
        """
        sql, values = _where(kind, columns)
        rows = self._conn.execute(f"SELECT doc FROM records WHERE {sql} ORDER BY seq", values)
        return [json.loads(row[0]) for row in rows]

    def count(self, kind: str, **columns: str | list[str]) -> int:
        """Return how many records :meth:`find` would return."""
        sql, values = _where(kind, columns)
        row = self._conn.execute(f"SELECT count(*) FROM records WHERE {sql}", values).fetchone()
        return int(row[0])

    def insert(self, kind: str, doc: Doc) -> Doc:
        """Add a record; it must have an ``id``.

        :raises sqlite3.IntegrityError: the id, or a name that must be unique, is taken
        """
        self._conn.execute(_INSERT, (kind, doc["id"], *_keys(kind, doc)))
        return doc

    def replace(self, kind: str, doc: Doc) -> Doc:
        """Write a changed record.

        :raises sqlite3.IntegrityError: a name that must be unique is taken
        """
        self._conn.execute(_REPLACE, (*_keys(kind, doc), kind, doc["id"]))
        return doc

    def remove(self, kind: str, record_id: str) -> bool:
        """Delete a record and tell whether it was there."""
        done = self.run("DELETE FROM records WHERE kind = ? AND id = ?", kind, record_id)
        return done.rowcount > 0


def _keys(kind: str, doc: Doc) -> tuple[str, str, str, str, str]:
    columns = schema.KINDS[kind]
    owner, parent, attached = (str(doc.get(key) or "") if key else "" for key in columns)
    return str(doc.get("name") or ""), owner, parent, attached, json.dumps(doc)


def _where(kind: str, columns: dict[str, str | list[str]]) -> tuple[str, list[str]]:
    parts, values = ["kind = ?"], [kind]
    for column, wanted in columns.items():
        if column not in _COLUMNS:
            raise ValueError(f"records have no column {column}")
        wanted = [wanted] if isinstance(wanted, str) else wanted
        parts.append(f"{column} IN ({', '.join('?' * len(wanted))})")
        values.extend(wanted)
        # Says to SQLite that the partial index holds the rows.
        if column in ("parent", "attached") and "" not in wanted:
            parts.append(f"{column} != ''")
    return " AND ".join(parts), values


class Store:
    """Opens the file and hands out transactions."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.files = self.path.with_name(self.path.stem + "-images")
        self.files.mkdir(mode=0o700, exist_ok=True)
        self._lock = threading.Lock()
        self._readers: deque[sqlite3.Connection] = deque()
        # The file holds password hashes: nobody else may read it.
        self.path.touch(mode=0o600)
        self._writer = self._connect()
        self._writer.execute("PRAGMA journal_mode=WAL")
        self._writer.executescript(schema.TABLES)

    def _connect(self) -> sqlite3.Connection:
        # Connections move between threads but are used by one at a time.
        conn = sqlite3.connect(
            self.path, timeout=1.0, isolation_level=None, check_same_thread=False
        )
        conn.execute("PRAGMA synchronous=NORMAL")
        return conn

    @contextlib.contextmanager
    def read(self) -> Iterator[Tx]:
        """Give a connection for reading; each statement sees what is committed by then."""
        try:
            conn = self._readers.pop()
        except IndexError:
            conn = self._connect()
        try:
            yield Tx(conn)
        finally:
            self._readers.append(conn)

    @contextlib.contextmanager
    def write(self) -> Iterator[Tx]:
        """Give the writer: committed at the end, rolled back on any error.

        :raises StoreLocked: another process kept the file locked
        """
        with self._lock:
            self._begin()
            try:
                yield Tx(self._writer)
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")

    def _begin(self) -> None:
        # busy_timeout would sleep in C and stop every green thread, so the waiting is done here.
        end = time.monotonic() + LOCK_TIMEOUT
        self._writer.execute("PRAGMA busy_timeout=0")
        while True:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                if time.monotonic() >= end:
                    raise StoreLocked(f"{self.path} is locked by another process") from error
            time.sleep(0.001)

    def close(self) -> None:
        """Close all connections that are not in use."""
        with self._lock:
            self._writer.close()
        while self._readers:
            self._readers.pop().close()
