# SPDX-License-Identifier: Apache-2.0
"""Works of several threads share a commit, and nothing else."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from novalite import exception
from novalite.db.sqlite_writer import SQLiteWriter
from tests.unit.db import books

Work = Callable[[sa.Connection], Any]


class Connection(sqlite3.Connection):
    """Notes every end of a transaction; ``broken`` statements fail."""

    ends: list[str]
    broken: set[str]

    def execute(self, sql: str, *values: Any) -> Any:
        if sql in self.broken:
            raise sqlite3.OperationalError("disk I/O error")
        if sql in ("COMMIT", "ROLLBACK"):
            self.ends.append(sql)
        return super().execute(sql, *values)


class File:
    """A SQLite file, its writer, and somebody else who can take its lock."""

    def __init__(self, path: Path):
        self.ends: list[str] = []
        self.broken: set[str] = set()
        self.path = path
        self.engine = sa.create_engine("sqlite://", creator=self._connect, poolclass=sa.QueuePool)
        self.conf = books.make_conf(path.parent, database__lock_timeout=30.0)
        self.writer = SQLiteWriter(self.engine, self.conf)
        self.other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.other.execute("CREATE TABLE numbers (value INTEGER UNIQUE)")
        self.other.execute("PRAGMA journal_mode=WAL")

    def _connect(self) -> Connection:
        made = sqlite3.connect(
            self.path, timeout=0, isolation_level=None, check_same_thread=False, factory=Connection
        )
        made.ends, made.broken = self.ends, self.broken
        return made

    def values(self) -> list[int]:
        return [row[0] for row in self.other.execute("SELECT value FROM numbers ORDER BY rowid")]

    def together(self, works: list[Work]) -> list[Future[Any]]:
        """Bring works while the lock is held, in this order; return when all are done."""
        self.other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(len(works)) as threads:
            futures = []
            for count, work in enumerate(works, 1):
                futures.append(threads.submit(self.writer.write, work))
                while len(self.writer._waiting) < count:
                    pass
            self.other.execute("COMMIT")
        return futures


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    made = File(tmp_path / "file.db")
    yield made
    made.engine.dispose()
    made.other.close()


def add(value: int) -> Work:
    def work(conn: sa.Connection) -> int:
        conn.execute(sa.text(f"INSERT INTO numbers VALUES ({value})"))
        return value

    return work


def test_works_that_wait_share_a_commit(file: File) -> None:
    futures = file.together([add(number) for number in range(10)])
    assert [future.result() for future in futures] == list(range(10))
    assert file.values() == list(range(10))
    assert file.ends == ["COMMIT"]


def test_one_that_fails_takes_nothing_of_the_others_along(file: File) -> None:
    def half(conn: sa.Connection) -> None:
        add(7)(conn)
        raise ZeroDivisionError

    futures = file.together([add(1), half, add(1), add(2)])
    assert futures[0].result() == 1
    assert futures[3].result() == 2
    assert isinstance(futures[1].exception(), ZeroDivisionError)
    assert isinstance(futures[2].exception(), sa.exc.IntegrityError)
    assert file.values() == [1, 2]


def test_more_than_a_turn_takes_are_written_by_the_next(file: File) -> None:
    futures = file.together([add(number) for number in range(40)])
    assert [future.result() for future in futures] == list(range(40))
    assert file.values() == list(range(40))
    assert file.ends == ["COMMIT"] * 3


def test_nobody_hears_of_success_when_the_commit_fails(file: File) -> None:
    file.broken.add("COMMIT")
    futures = file.together([add(1), add(2)])
    for future in futures:
        assert isinstance(future.exception(), sqlite3.OperationalError)
    file.broken.clear()
    file.writer.write(add(3))
    assert file.values() == [3]


def test_an_error_that_ends_the_whole_transaction_is_everybodys(file: File) -> None:
    def full(conn: sa.Connection) -> None:
        # As SQLite does by itself when the disk is full.
        raw: Any = conn.connection.driver_connection
        raw.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")

    futures = file.together([add(1), full, add(2)])
    assert ["full" in str(future.exception()) for future in futures] == [True] * 3
    assert file.values() == []


def test_who_began_a_work_is_the_one_that_ends_by_its_exit(file: File) -> None:
    def leave(_conn: sa.Connection) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        file.writer.write(leave)
    file.writer.write(add(1))
    assert file.values() == [1]


def test_a_turn_is_not_lost_when_the_file_cannot_be_opened(file: File) -> None:
    file.writer.write(add(1))
    file.broken.add("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError):
        file.writer.write(add(2))
    file.broken.clear()
    file.writer.write(add(3))
    assert file.values() == [1, 3], "what was told to have failed is not written later"


def test_all_give_up_when_their_time_is_over(file: File) -> None:
    file.conf.set_override("lock_timeout", 0.2, "database")
    file.other.execute("BEGIN IMMEDIATE")
    errors: list[Exception] = []

    def write() -> None:
        with pytest.raises(exception.DatabaseUnavailable) as caught:
            file.writer.write(add(1))
        errors.append(caught.value)

    threads = [threading.Thread(target=write) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file.other.execute("ROLLBACK")
    assert len(errors) == 5
    assert file.values() == []
    file.writer.write(add(2))
    assert file.values() == [2]
