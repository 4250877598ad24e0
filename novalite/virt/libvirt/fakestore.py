# SPDX-License-Identifier: Apache-2.0
"""What the fake hypervisor remembers, in one SQLite file outside the memory of the compute.

Only ``fakelibvirt`` calls it. Every write is on the file when its method returns, so guests
survive a kill of the compute as real ones do. No method waits for anything but the file: delays
that play a slow hypervisor happen outside, where no lock is held.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1
_SELECT_DOMAIN = "SELECT uuid, name, state, metadata FROM domains WHERE"
# Seconds to go on trying while another process (a test, an operator's shell) holds the file.
BUSY_TIMEOUT = 5.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS domains (
    uuid TEXT NOT NULL, node TEXT NOT NULL, name TEXT NOT NULL, state INTEGER NOT NULL,
    metadata TEXT NOT NULL, xml TEXT NOT NULL,
    PRIMARY KEY (uuid, node), UNIQUE (name, node));
CREATE TABLE IF NOT EXISTS pools (
    name TEXT NOT NULL, node TEXT NOT NULL, path TEXT NOT NULL,
    PRIMARY KEY (name, node)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS volumes (
    name TEXT NOT NULL, pool TEXT NOT NULL, node TEXT NOT NULL, capacity INTEGER NOT NULL,
    PRIMARY KEY (name, pool, node)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class DomainRow:
    """A domain without its definition; ``metadata`` maps a namespace to the element kept in it."""

    uuid: str
    name: str
    state: int
    metadata: dict[str, str]


class Store:
    """One file for all nodes of one compute process; safe to use from many threads."""

    def __init__(self, path: Path):
        """Open the file, or make it.

        :raises sqlite3.Error: it cannot be opened or is of another make
        :raises OSError: its directory cannot be made
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        # timeout=0: SQLite's own waiting sleeps in C and would stop every green thread.
        self._connection = sqlite3.connect(
            path, timeout=0, isolation_level=None, check_same_thread=False
        )
        self._run("PRAGMA journal_mode=WAL")
        self._run("PRAGMA synchronous=NORMAL")
        (version,) = self._run("PRAGMA user_version")[0]
        if version not in (0, SCHEMA_VERSION):
            raise sqlite3.DatabaseError(f"{path}: version {version}, expected {SCHEMA_VERSION}")
        for statement in filter(str.strip, _SCHEMA.split(";")):
            self._run(statement)
        if version != SCHEMA_VERSION:
            self._run(f"PRAGMA user_version={SCHEMA_VERSION}")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._execute(statement, values).fetchall()

    def _change(self, statement: str, values: Sequence[Any]) -> bool:
        """Run one statement; tell whether it changed a row."""
        with self._lock:
            return self._execute(statement, values).rowcount > 0

    def _execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        give_up = None
        while True:
            try:
                return self._connection.execute(statement, values)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                now = time.monotonic()
                give_up = give_up or now + BUSY_TIMEOUT
                if now >= give_up:
                    raise
            time.sleep(0.001)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._execute("BEGIN IMMEDIATE", ())
            try:
                yield
            except BaseException:
                self._connection.rollback()
                raise
            self._execute("COMMIT", ())

    # Domains

    def define(self, node: str, row: DomainRow, xml: str) -> None:
        """Add a domain, or give the one with this uuid a new definition; its state stays.

        :raises sqlite3.IntegrityError: another domain has that name
        """
        self._run(
            "INSERT INTO domains (uuid, node, name, state, metadata, xml)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (uuid, node) DO UPDATE SET"
            " name=excluded.name, metadata=excluded.metadata, xml=excluded.xml",
            (row.uuid, node, row.name, row.state, json.dumps(row.metadata), xml),
        )

    def domain(self, node: str, uuid: str) -> DomainRow | None:
        """Return one domain, or None."""
        rows = self._run(f"{_SELECT_DOMAIN} uuid=? AND node=?", (uuid, node))
        return _row(rows[0]) if rows else None

    def domains(self, node: str) -> list[DomainRow]:
        """Return all domains of the node."""
        rows = self._run(f"{_SELECT_DOMAIN} node=?", (node,))
        return [_row(found) for found in rows]

    def definition(self, node: str, uuid: str) -> tuple[str, dict[str, str], int] | None:
        """Return the definition, the metadata and the state of a domain, or None."""
        rows = self._run(
            "SELECT xml, metadata, state FROM domains WHERE uuid=? AND node=?", (uuid, node)
        )
        return (rows[0][0], json.loads(rows[0][1]), rows[0][2]) if rows else None

    def move(self, node: str, uuid: str, before: Sequence[int], after: int) -> bool:
        """Change the state from one of *before* to *after*; False when it was in none of them."""
        marks = ",".join("?" * len(before))
        return self._change(
            f"UPDATE domains SET state=? WHERE uuid=? AND node=? AND state IN ({marks})",
            (after, uuid, node, *before),
        )

    def set_metadata(self, node: str, uuid: str, namespace: str, text: str | None) -> bool:
        """Replace or (None) remove the element of one namespace; False: there is no domain."""
        with self._transaction():
            rows = self._execute(
                "SELECT metadata FROM domains WHERE uuid=? AND node=?", (uuid, node)
            ).fetchall()
            if not rows:
                return False
            kept = json.loads(rows[0][0])
            kept.pop(namespace, None)
            if text is not None:
                kept[namespace] = text
            self._execute(
                "UPDATE domains SET metadata=? WHERE uuid=? AND node=?",
                (json.dumps(kept), uuid, node),
            )
            return True

    def undefine(self, node: str, uuid: str) -> bool:
        """Remove a domain; False when there is none."""
        return self._change("DELETE FROM domains WHERE uuid=? AND node=?", (uuid, node))

    # Disks

    def add_pool(self, node: str, name: str, path: str) -> None:
        """Add a directory for disks.

        :raises sqlite3.IntegrityError: there is one of that name
        """
        self._run("INSERT INTO pools (name, node, path) VALUES (?, ?, ?)", (name, node, path))

    def pool_path(self, node: str, name: str) -> str | None:
        """Return the path of the directory, or None when it is not known."""
        rows = self._run("SELECT path FROM pools WHERE name=? AND node=?", (name, node))
        return rows[0][0] if rows else None

    def add_volume(self, node: str, pool: str, name: str, capacity: int) -> None:
        """Add a disk of *capacity* bytes.

        :raises sqlite3.IntegrityError: there is one of that name
        """
        self._run(
            "INSERT INTO volumes (name, pool, node, capacity) VALUES (?, ?, ?, ?)",
            (name, pool, node, capacity),
        )

    def volume_capacity(self, node: str, pool: str, name: str) -> int | None:
        """Return the size of a disk in bytes, or None."""
        rows = self._run(
            "SELECT capacity FROM volumes WHERE name=? AND pool=? AND node=?", (name, pool, node)
        )
        return rows[0][0] if rows else None

    def volumes(self, node: str, pool: str) -> list[tuple[str, int]]:
        """Return name and size in bytes of all disks of the pool."""
        return self._run("SELECT name, capacity FROM volumes WHERE pool=? AND node=?", (pool, node))

    def remove_volume(self, node: str, pool: str, name: str) -> bool:
        """Remove a disk; False when there is none."""
        return self._change(
            "DELETE FROM volumes WHERE name=? AND pool=? AND node=?", (name, pool, node)
        )


def _row(found: tuple[str, str, int, str]) -> DomainRow:
    uuid, name, state, metadata = found
    return DomainRow(uuid, name, state, json.loads(metadata))
