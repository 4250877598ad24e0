# SPDX-License-Identifier: Apache-2.0
"""Connections and transactions; api, conductor and scheduler use it, computes never do.

Work is a function that takes a connection. :meth:`Database.transaction` may run it several times
(deadlock, lock wait), so it must only touch the database: no bus call, HTTP call or sleep inside.
"""

import logging
import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy import event, exc
from sqlalchemy.ext import compiler
from sqlalchemy.sql import functions

from novalite import counters, exception, health
from novalite.db import drivers, faults
from novalite.db.sqlite_writer import SQLiteWriter

LOG = logging.getLogger(__name__)
T = TypeVar("T")

# Errors that the same transaction may not meet again: MySQL/MariaDB and Galera by number,
# PostgreSQL by SQLSTATE.
_MYSQL_RETRY = {1205, 1213, 1047, 3572}
_POSTGRES_RETRY = {"40001", "40P01", "55P03"}
# A bug, or for the caller to explain; everything else means that the database cannot be used now.
_CALLERS = (exc.ProgrammingError, exc.DataError, exc.IntegrityError, exc.NotSupportedError)
# Seconds for which a new connection to SQLite waits for others that switch the file to WAL.
_WAL_WAIT = 5.0


class now(functions.GenericFunction[float]):
    """The database's clock as seconds since the epoch, the only clock that leases compare with."""

    type = sa.Double()
    inherit_cache = True
    name = "novalite_now"


@compiler.compiles(now, "sqlite")
def _now_sqlite(_element: Any, _compiler: Any, **_kw: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiler.compiles(now, "postgresql")
def _now_postgresql(_element: Any, _compiler: Any, **_kw: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"


@compiler.compiles(now, "mysql")
@compiler.compiles(now, "mariadb")
def _now_mysql(_element: Any, _compiler: Any, **_kw: Any) -> str:
    return "cast(unix_timestamp(sysdate(6)) as double)"


def _without_rows(record: logging.LogRecord) -> bool:
    """Drop the lines in which SQLAlchemy, at DEBUG, shows what it has read."""
    return record.levelno > logging.DEBUG


class Database:
    """One process's engine."""

    def __init__(self, conf: cfg.ConfigOpts, *, patient: bool = False):
        """Make the engine; nothing is sent yet.

        :param patient: for migrations, whose statements may take as long as they need
        """
        self._conf = conf
        self.url = url(conf)
        self._patient = patient
        played = conf.testing.database_faults
        self._faults = faults.Faults(played) if played else None
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._engine = self._make_engine(int(conf.database.max_pool_size), 1.0)
        self._writer = self._make_engine(1, 0.0) if self.is_sqlite else self._engine
        self._sqlite = SQLiteWriter(self._writer, conf)

    def _make_engine(self, size: int, busy_timeout: float) -> sa.Engine:
        # The values of statements are the users': they must not be in the text of an error.
        options: dict[str, Any] = {
            "pool_size": size,
            "max_overflow": size,
            "hide_parameters": True,
        }
        if self.is_sqlite:
            if self.url.database and self.url.database != ":memory:":
                file = Path(self.url.database)
                file.parent.mkdir(parents=True, exist_ok=True)
                if not file.exists():
                    # It holds what users keep in user data and metadata.
                    file.touch(mode=0o600)
            # Readers of a WAL file meet a lock only while it is recovered or truncated. The writer
            # never waits in C: that would stop every green thread and convoy native ones.
            options["connect_args"] = {"timeout": busy_timeout}
            options["poolclass"] = sa.QueuePool
        else:
            options["pool_pre_ping"] = True
            options["isolation_level"] = "READ COMMITTED"
            # Who finds no free connection must not wait longer than for an answer.
            options["pool_timeout"] = float(self._conf.database.answer_timeout)
        engine = self._bare_engine(**options)
        event.listen(engine, "before_cursor_execute", self._count)
        if self._faults is not None:
            self._faults.listen(engine)
        return engine

    def _bare_engine(self, **options: Any) -> sa.Engine:
        """Return an engine whose connections are as they have to be, whatever the pool is."""
        backend = self.url.get_backend_name()
        given = drivers.arguments(backend, self._conf.database, patient=self._patient)
        own = {**given, **options.pop("connect_args", {})}
        engine = sa.create_engine(self.url, connect_args=own, **options)
        logging.getLogger("sqlalchemy.engine.Engine").addFilter(_without_rows)
        if self.is_sqlite:
            event.listen(engine, "connect", _sqlite_connect)
        if self.url.get_driver_name() == "psycopg" and not self._patient:
            connect = drivers.bounded_psycopg(float(self._conf.database.answer_timeout))
            event.listen(
                engine, "do_connect", lambda _dialect, _record, args, kw: connect(*args, **kw)
            )
        return engine

    @staticmethod
    def _count(*_args: Any) -> None:
        counters.add("sql_statements")

    @property
    def engine(self) -> sa.Engine:
        """The engine, for migrations."""
        return self._engine

    def check(self) -> health.Check:
        """Return the test of this database: by its pool, and by a new connection."""
        return health.Check("database", lambda: self.read(_look), self._look_directly)

    def _look_directly(self) -> None:
        engine = self._bare_engine(poolclass=sa.NullPool)
        try:
            with engine.connect() as conn:
                _look(conn)
        finally:
            engine.dispose()

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run *work* on a connection that reads.

        :raises exception.DatabaseUnavailable: the database cannot be reached
        """
        try:
            with self._engine.connect() as conn:
                return work(conn)
        except _CALLERS:
            raise
        except (exc.DBAPIError, exc.TimeoutError) as error:
            raise _unavailable(error) from error

    def transaction(self, work: Callable[[sa.Connection], T]) -> T:
        """Run *work* in a transaction, again after a deadlock or a lock wait.

        :raises exception.DatabaseUnavailable: out of tries, or the database cannot be reached
        """
        attempt = 0
        while True:
            try:
                counters.add("sql_transactions")
                return self._sqlite.write(work) if self.is_sqlite else self._server_write(work)
            except _CALLERS:
                raise
            except exc.DBAPIError as error:
                attempt += 1
                if not _may_retry(error) or attempt > int(self._conf.database.max_retries):
                    raise _unavailable(error) from error
                LOG.debug("Transaction is repeated (%d): %s", attempt, error.orig)
                time.sleep(random.uniform(0.01, 0.05) * 2**attempt)
            except (exc.TimeoutError, sqlite3.Error) as error:
                # The latter is of our own BEGIN or COMMIT: a full disk, a file that cannot be read.
                raise _unavailable(error) from error

    def _server_write(self, work: Callable[[sa.Connection], T]) -> T:
        with self._engine.begin() as conn:
            return work(conn)


def _look(conn: sa.Connection) -> None:
    """Read something that is always there, so that not the driver alone answers."""
    conn.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()


def url(conf: cfg.ConfigOpts) -> sa.URL:
    """Return the database's URL.

    :raises exception.ConfigurationError: without the password, if it cannot be parsed
    """
    text = conf.database.connection
    if not text:
        return sa.URL.create("sqlite", database=str(Path(conf.state_path) / "novalite.db"))
    try:
        parsed = sa.make_url(text)
    except (exc.ArgumentError, ValueError) as error:
        raise exception.ConfigurationError(
            reason="[database] connection cannot be parsed; it must be a SQLAlchemy URL, and "
            "special characters must be percent-encoded"
        ) from error
    return parsed


def _sqlite_connect(connection: Any, _record: Any) -> None:
    # Transactions are begun by us, not by the driver's guess.
    connection.isolation_level = None
    _use_wal(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _use_wal(connection: Any) -> None:
    """Switch a new file to WAL. That needs the file alone for a moment, and SQLite does not wait
    for it whatever the time-out says."""
    end = time.monotonic() + _WAL_WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= end:
                raise
            time.sleep(0.001)


def _may_retry(error: exc.DBAPIError) -> bool:
    original = error.orig
    if getattr(original, "sqlstate", None) in _POSTGRES_RETRY:
        return True
    args = getattr(original, "args", ())
    if args and args[0] in _MYSQL_RETRY:
        return True
    return error.connection_invalidated


def _unavailable(error: Exception) -> exception.DatabaseUnavailable:
    # Drivers word some errors over several lines; a log has one line for each.
    words = " ".join(str(getattr(error, "orig", None) or error).split())
    LOG.warning("Database is not available: %s", words)
    return exception.DatabaseUnavailable()
