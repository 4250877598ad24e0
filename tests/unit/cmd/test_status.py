# SPDX-License-Identifier: Apache-2.0
"""``novalite-status upgrade check``: each finding, the table and the exit codes."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_config import cfg

import novalite.conf
from novalite import concurrency
from novalite.cmd import manage, status
from novalite.db import migrate, schema, services
from novalite.db.engine import Database
from tests.unit.db import books
from tests.unit.db.books import Books


@pytest.fixture(autouse=True)
def own_conf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(novalite.conf, "CONF", cfg.ConfigOpts())
    monkeypatch.setattr(concurrency, "DEFAULT_FILE", str(tmp_path / "none.conf"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "novalite.conf"
    path.write_text(
        f"[DEFAULT]\nstate_path = {tmp_path}\n[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n"
    )
    return path


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = Database(books.make_conf(tmp_path))
    migrate.sync(made)
    return made


@pytest.fixture
def check(file: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run() -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            status.main(["upgrade", "check", "--config-file", str(file)])
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), out, err

    return run


def result(out: str, name: str) -> str:
    """Return result and details of one check."""
    block = out[out.index(f"Check: {name} ") :].split("+--")[0]
    text = " ".join(line.strip("| ") for line in block.splitlines())
    return text.partition("Result: ")[2]


def register(database: Database, version: int, binary: str = "nova-conductor") -> None:
    database.transaction(lambda conn: services.register(conn, "h1", binary, "x", "", version))


def test_all_is_well(check: Any, database: Database) -> None:
    register(database, 1)
    code, out, err = check()
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1].startswith("| Upgrade Check Results ")
    assert len({len(line) for line in lines}) == 1
    assert out.count("Result: Success") == out.count("Check: ") == 7
    assert out.count("Details: None") == 7


def test_no_tables(check: Any) -> None:
    code, out, _err = check()
    assert code == 2
    assert "Failure" in result(out, "Database Revision")
    assert "run: novalite-manage db sync" in result(out, "Database Revision")
    assert "Older Services" not in out


def test_services_that_run_an_older_program(check: Any, database: Database) -> None:
    register(database, 0)
    code, out, _err = check()
    assert code == 2
    assert "nova-conductor on h1 (version 0)" in result(out, "Older Services")
    table = schema.services
    database.transaction(lambda conn: conn.execute(sa.update(table).values(last_seen_up=1.0)))
    code, out, _err = check()
    assert code == 1
    assert result(out, "Older Services").startswith("Warning")


def test_a_host_without_a_picture(check: Any, database: Database) -> None:
    register(database, 1, "nova-compute")
    code, out, _err = check()
    assert code == 1
    assert "get no servers: h1" in result(out, "Compute Nodes")


@pytest.mark.parametrize(
    ("text", "code", "found"),
    [
        ("x: [", 2, "Failure"),
        ("os_compute_api:servers:nosuch: role:admin", 1, "Warning"),
        ("os_compute_api:servers:show: role:reader", 0, "Success"),
    ],
)
def test_the_policy_file(
    check: Any, database: Database, tmp_path: Path, text: str, code: int, found: str
) -> None:
    (tmp_path / "policy.yaml").write_text(text)
    got, out, _err = check()
    assert (got, result(out, "Policy File").split()[0]) == (code, found)


def test_a_policy_file_of_json(check: Any, database: Database, file: Path) -> None:
    file.write_text(file.read_text().replace("policy.yaml", "policy.json"))
    code, out, _err = check()
    assert code == 2
    assert "must be YAML" in result(out, "Policy File")


def test_times_that_are_too_close(check: Any, database: Database, file: Path) -> None:
    file.write_text("[DEFAULT]\nservice_down_time = 20\n" + file.read_text()[10:])
    code, out, _err = check()
    assert code == 1
    assert "less than 4 times report_interval" in result(out, "Service Times")


def test_wrong_options_are_no_result(check: Any, file: Path) -> None:
    file.write_text("[DEFAULT]\nservice_down_time = 5\n" + file.read_text()[10:])
    code, out, err = check()
    assert (code, out) == (255, "")
    assert err.count("\n") == 1


def test_a_database_that_cannot_be_read(check: Any, tmp_path: Path) -> None:
    (tmp_path / "novalite.db").write_text("nothing of ours" * 100)
    code, out, err = check()
    assert (code, out) == (255, "")
    assert err.count("\n") == 1


class TestWork:
    """Open actions and what projects have."""

    @pytest.fixture
    def cloud(self, database: Database, tmp_path: Path) -> Books:
        return Books(books.make_conf(tmp_path), database, books.Clock())

    def test_open_actions_go_on(self, check: Any, cloud: Books) -> None:
        cloud.create(books.new_server())
        code, out, _err = check()
        assert code == 0
        assert "create (1) open" in result(out, "Open Actions")

    def test_open_actions_that_nobody_drives(
        self, check: Any, cloud: Books, database: Database
    ) -> None:
        cloud.create(books.new_server())
        table = schema.instance_actions
        database.transaction(lambda conn: conn.execute(sa.update(table).values(deadline=1.0)))
        code, out, _err = check()
        assert code == 1
        assert "past their deadline" in result(out, "Open Actions")

    def test_open_actions_of_an_unknown_kind_are_drained_first(
        self,
        check: Any,
        cloud: Books,
        database: Database,
        file: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        cloud.create(books.new_server())
        table = schema.instance_actions
        database.transaction(lambda conn: conn.execute(sa.update(table).values(action="warp")))
        code, out, _err = check()
        assert code == 2
        assert "warp (1)" in result(out, "Open Actions")
        with pytest.raises(SystemExit) as caught:
            manage.main(["db", "sync", "--config-file", str(file)])
        assert caught.value.code == 1
        assert "warp (1); let the conductors" in capsys.readouterr().err

    def test_projects_over_quota(self, check: Any, cloud: Books, file: Path) -> None:
        cloud.create(books.new_server())
        cloud.create(books.new_server())
        file.write_text(file.read_text() + "[quota]\ninstances = 1\n")
        code, out, _err = check()
        assert code == 1
        assert "instances 2 of 1" in result(out, "Quota Usage")
