# SPDX-License-Identifier: Apache-2.0
"""Transactions: one writer, repeated after a deadlock, and clean errors."""

import itertools
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from novalite import exception
from novalite.db import engine
from novalite.db.engine import Database
from tests.unit.db import books

TABLE = sa.table("numbers", sa.column("value", sa.Integer))


@pytest.fixture
def database(tmp_path: Path) -> Any:
    made = Database(books.make_conf(tmp_path, database__lock_timeout=0.3))
    made.transaction(lambda conn: conn.execute(sa.text("CREATE TABLE numbers (value INTEGER)")))
    yield made
    made.engine.dispose()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the engine slept, without sleeping."""
    seen: list[float] = []
    monkeypatch.setattr(engine.time, "sleep", seen.append)
    return seen


def add(value: int) -> Callable[[sa.Connection], None]:
    def work(conn: sa.Connection) -> None:
        conn.execute(sa.insert(TABLE).values(value=value))

    return work


def values(database: Database) -> list[int]:
    return database.read(lambda conn: list(conn.scalars(sa.select(TABLE.c.value))))


class _Deadlock(Exception):
    """An error of a MySQL driver: the number comes first."""


class _Serialization(Exception):
    """An error of psycopg."""

    sqlstate = "40001"


def errors() -> list[Any]:
    mysql = [
        kind("INSERT INTO secret_table", {}, _Deadlock(number, "try again"))
        for number in (1205, 1213, 1047)
        for kind in (sa.exc.OperationalError, sa.exc.InternalError)
    ]
    return [*mysql, sa.exc.OperationalError("INSERT", {}, _Serialization())]


@pytest.mark.parametrize("error", errors(), ids=lambda error: str(error.orig))
@pytest.mark.parametrize("times", [1, 2])
def test_v31_deadlock_once_or_twice(
    database: Database, waits: list[float], error: Exception, times: int
) -> None:
    left = itertools.count(times, -1)

    def work(conn: sa.Connection) -> str:
        add(7)(conn)
        if next(left) > 0:
            raise error
        return "done"

    assert database.transaction(work) == "done"
    assert values(database) == [7], "what was written before the deadlock is written once"
    assert len(waits) == times


def test_v31_deadlock_always(
    database: Database, waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    error = errors()[0]
    runs = []

    def work(conn: sa.Connection) -> None:
        runs.append(1)
        add(7)(conn)
        raise error

    with pytest.raises(exception.DatabaseUnavailable) as caught:
        database.transaction(work)
    assert len(runs) == 6, "max_retries = 5 repeats"
    assert values(database) == []
    assert "secret_table" not in caught.value.message()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "secret_table" not in caplog.text


def test_v31_waits_grow_and_differ(database: Database, waits: list[float]) -> None:
    def work(_conn: sa.Connection) -> None:
        raise errors()[0]

    rounds = []
    for _ in range(2):
        with pytest.raises(exception.DatabaseUnavailable):
            database.transaction(work)
        rounds.append(list(waits))
        waits.clear()
    assert rounds[0] != rounds[1], "two that collided must not collide again"
    for step, wait in enumerate(rounds[0], 1):
        assert 0.01 * 2**step <= wait <= 0.05 * 2**step


def test_integrity_error_is_the_callers(database: Database, waits: list[float]) -> None:
    def work(conn: sa.Connection) -> None:
        conn.execute(sa.text("CREATE UNIQUE INDEX one ON numbers (value)"))
        add(1)(conn)
        add(1)(conn)

    with pytest.raises(sa.exc.IntegrityError):
        database.transaction(work)
    assert waits == []


@pytest.mark.parametrize("kind", [sa.exc.ProgrammingError, sa.exc.DataError])
@pytest.mark.parametrize("way", ["read", "transaction"])
def test_a_bug_is_not_called_an_outage(
    database: Database, waits: list[float], way: str, kind: type[sa.exc.DBAPIError]
) -> None:
    def work(_conn: sa.Connection) -> None:
        raise kind("INSERT", {}, Exception("no such function"))

    with pytest.raises(kind):
        getattr(database, way)(work)
    assert waits == []


@pytest.mark.parametrize("step", ["BEGIN IMMEDIATE", "COMMIT"])
def test_trouble_at_the_ends_of_a_transaction_is_an_outage(
    database: Database, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    class Broken(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> Any:
            if sql == step:
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(sql, *values)

    database._writer.dispose()
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3.dbapi2, "connect", lambda *a, **k: connect(*a, **k, factory=Broken))
    with pytest.raises(exception.DatabaseUnavailable):
        database.transaction(add(1))
    assert values(database) == []


def test_the_text_of_an_error_holds_no_value(database: Database) -> None:
    def work(conn: sa.Connection) -> None:
        conn.execute(sa.text("INSERT INTO nowhere VALUES (:it)"), {"it": "a user's secret"})

    with pytest.raises(exception.DatabaseUnavailable) as caught:
        database.transaction(work)
    assert "a user's secret" not in str(caught.value.__cause__)


def test_any_error_rolls_back(database: Database) -> None:
    def work(conn: sa.Connection) -> None:
        add(1)(conn)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.transaction(work)
    add_two = database.transaction(add(2))
    assert add_two is None
    assert values(database) == [2]


def test_a_read_sees_the_last_commit_while_another_writes(database: Database) -> None:
    database.transaction(add(1))

    def work(conn: sa.Connection) -> list[int]:
        add(2)(conn)
        return values(database)

    assert database.transaction(work) == [1]
    assert values(database) == [1, 2]


def test_writers_of_one_process_queue(database: Database) -> None:
    def many() -> None:
        for _ in range(20):
            database.transaction(lambda conn: add(len(list(conn.execute(sa.select(TABLE)))))(conn))

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values(database) == list(range(80)), "each saw what the one before it had written"


def test_a_lock_of_another_process_is_waited_for(database: Database, tmp_path: Path) -> None:
    other = Database(books.make_conf(tmp_path))
    held, release = threading.Event(), threading.Event()

    def hold(conn: sa.Connection) -> None:
        add(1)(conn)
        held.set()
        release.wait(10)

    holder = threading.Thread(target=other.transaction, args=(hold,))
    holder.start()
    assert held.wait(10)
    began = time.monotonic()
    with pytest.raises(exception.DatabaseUnavailable):
        database.transaction(add(2))
    assert time.monotonic() - began >= 0.3, "lock_timeout"
    release.set()
    database.transaction(add(3))
    holder.join()
    assert values(database) == [1, 3]
    other.engine.dispose()


def test_new_connections_wait_for_a_file_that_is_being_switched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocker = sqlite3.connect(tmp_path / "novalite.db", isolation_level=None)
    blocker.execute("CREATE TABLE numbers (value INTEGER)")
    blocker.execute("BEGIN EXCLUSIVE")
    blocker.execute("INSERT INTO numbers VALUES (5)")
    # The other one is done when the engine waits for the first time.
    monkeypatch.setattr(engine.time, "sleep", lambda _seconds: blocker.execute("COMMIT"))
    database = Database(books.make_conf(tmp_path))
    assert values(database) == [5]
    database.engine.dispose()
    blocker.close()


def test_now_is_in_seconds(database: Database) -> None:
    shown = database.read(lambda conn: conn.execute(sa.select(engine.now())).scalar_one())
    assert abs(shown - time.time()) < 5


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [("postgresql", "clock_timestamp()"), ("mysql", "sysdate(6)"), ("sqlite", "julianday('now')")],
)
def test_now_is_the_clock_and_not_the_start_of_the_transaction(dialect: str, expected: str) -> None:
    made = sa.dialects.registry.load(dialect)()
    assert expected in str(sa.select(engine.now()).compile(dialect=made))


@pytest.mark.parametrize(
    "text", ["mysql+pymysql://", "postgresql+psycopg://"], ids=["mysql", "postgresql"]
)
def test_v38_password_is_decoded(tmp_path: Path, text: str) -> None:
    conf = books.make_conf(
        tmp_path, database__connection=f"{text}us%40er:p%40ss%2Fw%3Ard%23+%25%3D@host/name"
    )
    url = engine.url(conf)
    assert (url.username, url.password, url.host) == ("us@er", "p@ss/w:rd#+%=", "host")


def test_v38_nonsense_is_refused_without_the_password(tmp_path: Path) -> None:
    conf = books.make_conf(tmp_path, database__connection="mysql+pymysql:/u:geheim@host/name")
    with pytest.raises(exception.ConfigurationError) as caught:
        engine.url(conf)
    assert "geheim" not in caught.value.message()
    assert "percent-encoded" in caught.value.message()


def test_a_new_file_is_its_owners_alone(database: Database, tmp_path: Path) -> None:
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.glob("novalite.db*")}
    assert modes and set(modes.values()) == {0o600}


def test_default_is_a_file_in_state_path(tmp_path: Path) -> None:
    assert engine.url(books.make_conf(tmp_path)).database == str(tmp_path / "novalite.db")
