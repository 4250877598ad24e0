# SPDX-License-Identifier: Apache-2.0
"""Statements compiled once do what SQLAlchemy's execute() does."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from novalite.db import (
    actions,
    allocations,
    attempts,
    builds,
    compute_nodes,
    instances,
    schema,
    services,
)
from novalite.db.prepared import Prepared, _Form

TABLE = sa.Table(
    "samples",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(9)),
    sa.Column("flag", sa.Boolean),
    sa.Column("data", schema.Json),
    sa.Column("rest", schema.Json, default=list),
)
ROW = {"name": "a", "flag": True, "data": {"b": [1]}, "rest": None}
UPDATE = (
    sa.update(TABLE)
    .where(TABLE.c.id == sa.bindparam("id_"), TABLE.c.name == "a")
    .values(data=sa.bindparam("data_"), rest=["x"])
)
MODULES = (actions, allocations, attempts, builds, compute_nodes, instances, services)
ALL = {
    f"{module.__name__}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, Prepared)
}


@pytest.fixture
def conn() -> Iterator[sa.Connection]:
    engine = sa.create_engine("sqlite://")
    TABLE.metadata.create_all(engine)
    with engine.connect() as connection:
        yield connection


def rows(conn: sa.Connection) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in conn.execute(sa.select(TABLE).order_by(TABLE.c.id))]


def test_insert_returns_the_id(conn: sa.Connection) -> None:
    statement = Prepared(sa.insert(TABLE))
    assert [statement.insert(conn, ROW), statement.insert(conn, {**ROW, "data": None})] == [1, 2]
    assert rows(conn) == [(1, "a", True, {"b": [1]}, None), (2, "a", True, None, None)]


def test_update_with_what_stands_in_it(conn: sa.Connection) -> None:
    Prepared(sa.insert(TABLE).inline()).execute_many(conn, [ROW, {**ROW, "name": "b"}])
    statement = Prepared(UPDATE)
    counts = [
        statement.execute(conn, {"id_": key, "data_": [key], "more": 0}).rowcount for key in (1, 2)
    ]
    assert counts == [1, 0]
    assert rows(conn)[0] == (1, "a", True, [1], ["x"])


def test_no_rows_are_no_statement(conn: sa.Connection) -> None:
    Prepared(sa.insert(TABLE)).execute_many(conn, [])
    assert rows(conn) == []


def test_what_is_missing_is_no_null(conn: sa.Connection) -> None:
    """A value that is not given must not become NULL, nor a default be forgotten."""
    statement = Prepared(UPDATE)
    statement.execute(conn, {"id_": 1, "data_": None})
    with pytest.raises(KeyError):
        statement.execute(conn, {"id_": 1})
    with pytest.raises(TypeError, match="default"):
        Prepared(sa.insert(TABLE)).insert(conn, {"name": "a"})


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dialect", [sqlite.dialect, postgresql.dialect, mysql.dialect])
def test_every_statement_compiles(name: str, dialect: Any) -> None:
    """No list is left to be expanded, on no database."""
    statement = ALL[name]._statement
    values: dict[str, Any]
    if statement.is_insert:
        values = {column.name: None for column in statement.table.c if column.name != "id"}
        values["lease"] = 1.0
    else:
        values = dict.fromkeys(statement.compile().params, 1)
    assert "POSTCOMPILE" not in _Form(statement, dialect(), values).text
