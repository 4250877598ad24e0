# SPDX-License-Identifier: Apache-2.0
"""Brings the tables of a database to the present form (``novalite-manage db sync``).

alembic runs programmatically, without an ini file, inside a transaction of
:class:`novalite.db.engine.Database`: of two syncs at the same time the second waits and finds
nothing to do. Services never call :func:`sync`; they only ask :func:`check`, which is one query.

``python -m novalite.db.migrate MESSAGE`` writes a new revision from the difference between the
revisions and ``schema.py``; for developers.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from novalite import exception
from novalite.db import engine, schema

T = TypeVar("T")

SCRIPTS = Path(__file__).parent / "migrations"
# The newest revision. A test compares it with the files in migrations/versions.
HEAD = "0003"
# Any number will do, so long as nothing else on the server takes an advisory lock of this name.
_NUMBER = 5641302
_MYSQL = (f"SELECT GET_LOCK('novalite{_NUMBER}', 60)", f"SELECT RELEASE_LOCK('novalite{_NUMBER}')")
_LOCKS = {
    "postgresql": (
        f"SELECT pg_advisory_lock({_NUMBER})",
        f"SELECT pg_advisory_unlock({_NUMBER})",
    ),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
}
_VERSION = sa.table("alembic_version", sa.column("version_num", sa.String))


def sync(database: engine.Database) -> tuple[str | None, str]:
    """Upgrade to :data:`HEAD`; return the revisions before and after.

    :raises exception.ConfigurationError: the database is newer than this program
    :raises exception.DatabaseUnavailable: the database cannot be reached
    """

    def work(conn: sa.Connection) -> tuple[str | None, str]:
        before = _version(conn)
        if before != HEAD:
            _upgrade(conn, before)
        return before, HEAD

    if database.is_sqlite:
        return database.transaction(work)  # which is exclusive
    return database.read(lambda guard: _alone(guard, lambda: database.transaction(work)))


def version(database: engine.Database) -> str | None:
    """Return the revision of the database; None if it has no tables of ours.

    :raises exception.DatabaseUnavailable: the database cannot be reached
    """
    return database.read(_version)


def check(database: engine.Database) -> None:
    """Tell whether the tables have the form that this program works with.

    :raises exception.ConfigurationError: they have not; the text says what to do
    :raises exception.DatabaseUnavailable: the database cannot be reached
    """
    found = version(database)
    if found is None:
        raise exception.ConfigurationError(
            reason="the database has no tables; run: novalite-manage db sync"
        )
    if found != HEAD:
        raise exception.ConfigurationError(
            reason=f"the database is at revision {found} and this program needs {HEAD}; "
            "run: novalite-manage db sync"
        )


def config(conn: sa.Connection | None = None) -> Any:
    """Return alembic's configuration, working on *conn*."""
    # Only a sync needs alembic; services, which import this module to check, do without it.
    from alembic.config import Config

    made = Config()
    made.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    made.attributes["connection"] = conn
    return made


def _version(conn: sa.Connection) -> str | None:
    if not sa.inspect(conn).has_table("alembic_version"):
        return None
    found = conn.execute(sa.select(_VERSION.c.version_num)).scalar()
    return None if found is None else str(found)


def _upgrade(conn: sa.Connection, before: str | None) -> None:
    from alembic import command, util

    try:
        command.upgrade(config(conn), "head")
    except util.CommandError as error:
        raise exception.ConfigurationError(
            reason=f"the database is at revision {before}, which this program does not know; "
            f"its newest is {HEAD}"
        ) from error


def _alone(guard: sa.Connection, work: Callable[[], T]) -> T:
    """Keep other syncs out: the lock is on a connection of its own, since it has to last until the
    transaction of *work* is committed, and with MySQL each DDL commits by itself."""
    lock, unlock = _LOCKS[guard.dialect.name]
    guard.execute(sa.text(lock))
    try:
        return work()
    finally:
        guard.execute(sa.text(unlock))


def revise(message: str, rev_id: str) -> None:
    """Write a revision that leads from the revisions on disk to ``schema.py``."""
    from alembic import command

    with sa.create_engine("sqlite://").connect() as conn:
        made = config(conn)
        command.upgrade(made, "heads")
        command.revision(made, message, autogenerate=True, rev_id=rev_id)


def compare(conn: sa.Connection) -> list[Any]:
    """Return the differences between the tables in the database and ``schema.py``."""
    from alembic import autogenerate
    from alembic.runtime.migration import MigrationContext

    options = {"compare_type": True, "target_metadata": schema.metadata}
    context = MigrationContext.configure(conn, opts=options)
    return list(autogenerate.compare_metadata(context, schema.metadata))


if __name__ == "__main__":
    count = len(list((SCRIPTS / "versions").glob("[0-9]*.py")))
    revise(" ".join(sys.argv[1:]), f"{count + 1:04d}")
