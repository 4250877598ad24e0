# SPDX-License-Identifier: Apache-2.0
"""Run by alembic for each command; :mod:`novalite.db.migrate` passes the connection."""

from typing import Any, Literal

import sqlalchemy as sa
from alembic import context

from novalite.db import schema


def _render(kind: str, value: Any, autogen_context: Any) -> str | Literal[False]:
    """Write our own type as what it is in the database, so that a revision is fixed for ever."""
    if kind == "type" and isinstance(value, schema.Json):
        autogen_context.imports.add("from sqlalchemy.dialects import mysql")
        return 'sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")'
    return False


def _run(conn: sa.Connection) -> None:
    # Begins a transaction as far as SQLAlchemy knows, so that alembic leaves the commit to us.
    conn.execute(sa.select(1))
    context.configure(
        connection=conn,
        target_metadata=schema.metadata,
        compare_type=True,
        render_item=_render,
    )
    with context.begin_transaction():
        context.run_migrations()


_run(context.config.attributes["connection"])
