# SPDX-License-Identifier: Apache-2.0
"""Migrations on a database server; SQLite is covered by the unit tests."""

import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from novalite.db import migrate
from novalite.devcloud.services import find_program
from tests.functional import cloud


@pytest.fixture
def url() -> Iterator[str]:
    """A new, empty database on the server that the environment names."""
    named = cloud.database_url_from_environment()
    if named is None:
        pytest.skip("NOVALITE_TEST_DATABASE_URL names no server")
    name = f"novalite_{secrets.token_hex(6)}"
    server = sa.create_engine(named, isolation_level="AUTOCOMMIT")
    with server.connect() as conn:
        conn.execute(sa.text(f"CREATE DATABASE {name}"))
    yield sa.make_url(named).set(database=name).render_as_string(hide_password=False)
    with server.connect() as conn:
        conn.execute(sa.text(f"DROP DATABASE {name}"))
    server.dispose()


def test_syncs_at_once_lead_to_the_schema(url: str, tmp_path: Path) -> None:
    file = tmp_path / "novalite.conf"
    file.write_text(f"[database]\nconnection = {url}\n")
    command = [find_program("novalite-manage"), "--config-file", str(file), "db", "sync"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = sorted(process.communicate(timeout=60)[0].strip() for process in running)
    assert [process.returncode for process in running] == [0] * 4
    assert said == [
        *[f"The database is at revision {migrate.HEAD} already."] * 3,
        f"The database is now at revision {migrate.HEAD}; it was at none.",
    ]
    engine = sa.create_engine(url)
    with engine.connect() as conn:
        assert migrate.compare(conn) == []
    engine.dispose()
