# SPDX-License-Identifier: Apache-2.0
"""The one writer that SQLite allows, shared by the threads of a process.

:class:`novalite.db.engine.Database` gives it every transaction on SQLite. Whoever gets the turn
carries out what all others have brought meanwhile and commits once for them all: under load most
of a write is waiting for the file's lock, which every process of the cloud wants. Each work stands
in a savepoint of its own, so that one that fails takes nothing of the others along. No work may
block; nobody hears that a work is done before it is committed.
"""

import collections
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_config import cfg

from novalite import exception

LOG = logging.getLogger(__name__)
T = TypeVar("T")

# As many works share a commit at most; other processes wait for the lock that long.
_TOGETHER = 16


class _Job:
    """A work that waits for its turn, and then what came of it."""

    __slots__ = ("deadline", "done", "error", "result", "work")

    def __init__(self, work: Callable[[sa.Connection], Any], deadline: float):
        self.work = work
        self.deadline = deadline
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """End the work with this error, which takes the place of a result."""
        self.done, self.error = True, error


class SQLiteWriter:
    """Takes works of any thread and commits them in the order in which they come.

    :param engine: has the one connection that writes; it must never wait for the lock in C, which
        would stop every green thread and convoy native ones
    :param conf: its [database] lock_timeout is for how long a work waits while others have the lock
    """

    def __init__(self, engine: sa.Engine, conf: cfg.ConfigOpts):
        self.engine = engine
        self._conf = conf
        self._turn = threading.Lock()
        self._waiting: collections.deque[_Job] = collections.deque()

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Carry out *work* in a transaction and return its result once that is committed.

        :raises exception.DatabaseUnavailable: other processes had the lock for all of the time
        :raises sqlite3.Error: the file cannot be written
        """
        job = _Job(work, time.monotonic() + float(self._conf.database.lock_timeout))
        self._waiting.append(job)
        with self._turn:
            while not job.done:
                self._take_turn(job)
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def _take_turn(self, own: _Job) -> None:
        """Write what waits; when that fails nothing of it is stored, whosever error it was."""
        jobs: list[_Job] = []
        try:
            with self.engine.connect() as conn:
                raw: Any = conn.connection.driver_connection
                if not self._begin(raw, own):
                    return
                jobs = self._next()
                try:
                    _carry_out(jobs, conn, raw)
                    raw.execute("COMMIT")
                except BaseException:
                    if raw.in_transaction:
                        raw.execute("ROLLBACK")
                    raise
        except Exception as error:
            for job in jobs or self._next():
                job.fail(error)
        except BaseException:
            # This thread ends; the others only hear that their works are not stored.
            for job in jobs or self._next():
                job.fail(exception.DatabaseUnavailable())
            raise
        for job in jobs:
            job.done = True

    def _next(self) -> list[_Job]:
        return [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]

    def _begin(self, raw: Any, own: _Job) -> bool:
        """Take SQLite's lock, asking again every millisecond while another process has it.

        Works whose time is over meanwhile fail; False when that happened to *own*.
        """
        while not own.done:
            try:
                raw.execute("BEGIN IMMEDIATE")
                return True
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) and "busy" not in str(error):
                    raise
                self._give_up(error)
            time.sleep(0.001)
        return False

    def _give_up(self, error: Exception) -> None:
        now = time.monotonic()
        while self._waiting and self._waiting[0].deadline <= now:
            LOG.warning("Database is locked for %g s", self._conf.database.lock_timeout)
            unavailable = exception.DatabaseUnavailable()
            unavailable.__cause__ = error
            self._waiting.popleft().fail(unavailable)


def _carry_out(jobs: list[_Job], conn: sa.Connection, raw: Any) -> None:
    """Carry out each work, in a savepoint if there are several.

    :raises Exception: of the only work, or one that made SQLite give up the whole transaction
    """
    if len(jobs) == 1:
        jobs[0].result = jobs[0].work(conn)
        return
    for job in jobs:
        raw.execute("SAVEPOINT work")
        try:
            job.result = job.work(conn)
        except Exception as error:
            if not raw.in_transaction:
                raise
            raw.execute("ROLLBACK TO work")
            job.error = error
        raw.execute("RELEASE work")
