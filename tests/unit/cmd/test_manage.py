# SPDX-License-Identifier: Apache-2.0
"""``novalite-manage`` prints what it did, and one line when it cannot."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from oslo_config import cfg

import novalite.conf
from novalite import concurrency
from novalite.cmd import manage
from novalite.db import migrate, schema, services
from novalite.db.engine import Database
from tests.unit.db import books


@pytest.fixture(autouse=True)
def own_conf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(novalite.conf, "CONF", cfg.ConfigOpts())
    monkeypatch.setattr(concurrency, "DEFAULT_FILE", str(tmp_path / "none.conf"))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "novalite.conf"
    path.write_text(f"[DEFAULT]\nstate_path = {tmp_path}\n")
    return str(path)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = Database(books.make_conf(tmp_path))
    migrate.sync(made)
    return made


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as caught:
        manage.main(list(argv))
    out, err = capsys.readouterr()
    assert (caught.value.code, out, err.count("\n")) == (1, "", 1)
    return err.strip()


def test_sync_and_version(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    head = migrate.HEAD
    for words in (["db", "version"], ["db", "sync"], ["db", "sync"], ["db", "version"]):
        manage.main(["--config-file", file, *words])
    assert capsys.readouterr().out.splitlines() == [
        f"none (this program needs {head})",
        f"The database is now at revision {head}; it was at none.",
        f"The database is at revision {head} already.",
        f"{head} (this program needs {head})",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["--config-file", "FILE", "db", "sync"],
        ["db", "sync", "--config-file", "FILE"],
        ["db", "sync", "--config-file=FILE"],
        ["--config-dir", "DIR", "db", "sync"],
        ["--config-file", "FILE", "db", "sync", "--config-dir", "DIR"],
    ],
)
def test_files_may_stand_before_and_after_the_command(
    words: list[str], file: str, tmp_path: Path
) -> None:
    replaced = [word.replace("FILE", file).replace("DIR", str(tmp_path)) for word in words]
    manage.main(replaced)
    assert (tmp_path / "novalite.db").exists()


def test_services(file: str, database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    def work(conn: sa.Connection) -> None:
        services.register(conn, "control", "nova-conductor", "conductor", "")
        lost = services.register(conn, "compute1", "nova-compute", "compute", "an-identity")
        services.update(conn, lost.id, disabled=True, last_seen_up=1_700_000_000.25)

    database.transaction(work)
    manage.main(["--config-file", file, "service", "list", "-f", "json"])
    first, second = json.loads(capsys.readouterr().out)
    assert first.pop("Updated_At").startswith("20")
    assert first == {
        "Binary": "nova-conductor",
        "Host": "control",
        "Zone": "internal",
        "Status": "enabled",
        "State": "up",
    }
    assert second == {
        "Binary": "nova-compute",
        "Host": "compute1",
        "Zone": "nova",
        "Status": "disabled",
        "State": "down",
        "Updated_At": "2023-11-14T22:13:20.250000",
    }
    manage.main(["--config-file", file, "service", "list"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Binary", "Host", "Zone", "Status", "State", "Updated_At"]
    assert lines[2].split()[:5] == ["nova-compute", "compute1", "nova", "disabled", "down"]
    assert lines[1].index("control") == lines[2].index("compute1")


def test_services_without_tables(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys, "--config-file", file, "service", "list") == (
        "novalite-manage: the database has no tables; run: novalite-manage db sync"
    )


def test_sync_of_a_newer_database(
    file: str, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with database.engine.begin() as conn:
        conn.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    text = refusal(capsys, "--config-file", file, "db", "sync")
    assert "revision 9999, which this program does not know" in text
    with database.engine.connect() as conn:
        conn.execute(sa.select(schema.services.c.id))


def test_wrong_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "novalite.conf"
    path.write_text("[database]\nmax_pool_size = 0\n")
    assert refusal(capsys, "--config-file", str(path), "db", "sync").startswith(
        f"novalite-manage: {path}: [database] max_pool_size = 0: not valid"
    )


def test_database_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "novalite.conf"
    path.write_text("[database]\nconnection = mysql+pymysql://u:geheim@127.0.0.1:1/x\n")
    text = refusal(capsys, "--config-file", str(path), "db", "version")
    assert "currently unavailable" in text and "127.0.0.1" in text
    assert "geheim" not in text


@pytest.mark.parametrize("words", [[], ["db"], ["db", "drop"], ["service", "list", "-f", "xml"]])
def test_wrong_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        manage.main(words)
    assert caught.value.code == 2


def test_openapi_needs_no_database(capsys: pytest.CaptureFixture[str]) -> None:
    for words, version in (([], "2.79"), (["--microversion", "2.52"], "2.52")):
        manage.main(["api", "openapi", *words])
        made = json.loads(capsys.readouterr().out)
        assert (made["openapi"], made["info"]["version"]) == ("3.1.0", version)
        search = "/v2.1/os-hypervisors/{hypervisor_id}/search"
        assert (search in made["paths"]) == (version == "2.52")


@pytest.mark.parametrize("version", ["2.80", "3.1", "x", "2.0"])
def test_openapi_of_what_is_not_served(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        manage.main(["api", "openapi", "--microversion", version])
    assert caught.value.code == 2
    assert version in capsys.readouterr().err
