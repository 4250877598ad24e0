# SPDX-License-Identifier: Apache-2.0
"""The revisions lead to the tables of schema.py, at once or not at all."""

import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from novalite import counters, exception
from novalite.db import migrate, schema
from novalite.db.engine import Database
from tests.unit.db import books


@pytest.fixture
def database(tmp_path: Path) -> Any:
    made = Database(books.make_conf(tmp_path))
    yield made
    made.engine.dispose()


def test_upgrade_leads_to_the_schema(database: Database) -> None:
    migrate.sync(database)
    with database.engine.connect() as conn:
        assert migrate.compare(conn) == []


def test_compare_sees_a_difference(database: Database) -> None:
    migrate.sync(database)
    with database.engine.begin() as conn:
        conn.execute(sa.text("ALTER TABLE services ADD COLUMN forgotten INTEGER"))
        conn.execute(sa.text("DROP INDEX ix_instances_host"))
        kinds = sorted(difference[0] for difference in migrate.compare(conn))
    assert kinds == ["add_index", "remove_column"]


def test_indexes_and_constraints_are_those_of_create_all(
    database: Database, tmp_path: Path
) -> None:
    migrate.sync(database)
    other = sa.create_engine("sqlite://")
    schema.metadata.create_all(other)

    def shape(engine: sa.Engine) -> dict[str, Any]:
        inspector = sa.inspect(engine)
        return {
            table: (
                sorted(str(index) for index in inspector.get_indexes(table)),
                sorted(str(unique) for unique in inspector.get_unique_constraints(table)),
                inspector.get_pk_constraint(table),
                # A column that came later is the last one in a table that was there.
                sorted(
                    (column["name"], str(column["type"]), column["nullable"])
                    for column in inspector.get_columns(table)
                ),
            )
            for table in schema.metadata.tables
        }

    assert shape(database.engine) == shape(other)


def test_head_is_the_newest_file() -> None:
    script = ScriptDirectory.from_config(migrate.config())
    assert script.get_heads() == [migrate.HEAD]


def test_second_sync_does_nothing(database: Database) -> None:
    assert migrate.sync(database) == (None, migrate.HEAD)
    statements = counters.snapshot()["sql_statements"]
    assert migrate.sync(database) == (migrate.HEAD, migrate.HEAD)
    assert counters.snapshot()["sql_statements"] - statements < 5


def test_two_syncs_at_once(tmp_path: Path) -> None:
    results: list[tuple[str | None, str]] = []
    gate = threading.Barrier(2)

    def sync() -> None:
        database = Database(books.make_conf(tmp_path))
        gate.wait()
        results.append(migrate.sync(database))
        database.engine.dispose()

    threads = [threading.Thread(target=sync) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(before or "" for before, _ in results) == ["", migrate.HEAD]


def test_a_failed_sync_leaves_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0

    def fail_late(_conn: Any, _cursor: Any, statement: str, *_args: Any) -> None:
        nonlocal seen
        seen += statement.lstrip().startswith("CREATE TABLE")
        if seen == 5:
            raise RuntimeError("power cut")

    sa.event.listen(sa.Engine, "before_cursor_execute", fail_late)
    with pytest.raises(RuntimeError, match="power cut"):
        migrate.sync(database)
    sa.event.remove(sa.Engine, "before_cursor_execute", fail_late)
    assert sa.inspect(database.engine).get_table_names() == []
    assert migrate.sync(database) == (None, migrate.HEAD)


def test_check(database: Database) -> None:
    with pytest.raises(exception.ConfigurationError, match="run: novalite-manage db sync"):
        migrate.check(database)
    migrate.sync(database)
    migrate.check(database)


def test_a_newer_database_is_refused_and_left_alone(database: Database) -> None:
    migrate.sync(database)
    with database.engine.begin() as conn:
        conn.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(exception.ConfigurationError, match="9999"):
        migrate.check(database)
    with pytest.raises(exception.ConfigurationError, match="revision 9999, which this program"):
        migrate.sync(database)
    assert migrate.version(database) == "9999"


def test_downgrade_removes_all(database: Database) -> None:
    from alembic import command

    migrate.sync(database)
    database.transaction(lambda conn: command.downgrade(migrate.config(conn), "base"))
    assert sa.inspect(database.engine).get_table_names() == ["alembic_version"]
