# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that need a database."""

import pytest

from novalite.db import schema
from novalite.db.engine import Database
from tests.unit.db import books as books_module


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory):
    """A SQLite file with all tables; copied for each test."""
    directory = tmp_path_factory.mktemp("template")
    database = Database(books_module.make_conf(directory))
    schema.metadata.create_all(database.engine)
    with database.engine.connect() as conn:
        conn.connection.driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.engine.dispose()
    return directory / "novalite.db"


@pytest.fixture
def books(tmp_path, empty_file):
    """An empty database on a clock of the test's own."""
    made = books_module.open_books(books_module.make_conf(tmp_path), tmp_path, empty_file)
    yield made
    made.database.engine.dispose()
