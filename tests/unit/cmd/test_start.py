# SPDX-License-Identifier: Apache-2.0
"""The programs as the user meets them: help, one line for an error, exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
SERVICES = ("novalite-api", "novalite-compute", "novalite-conductor", "novalite-scheduler")


def run(program: str, *argv: str, backend: str | None = None, **extra: str) -> tuple[int, str, str]:
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    if backend is not None:
        environment["NOVALITE_CONCURRENCY_BACKEND"] = backend
    done = subprocess.run(
        [BIN / program, *argv],
        env=environment | extra,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "novalite.conf"
    path.write_text(f"[DEFAULT]\nstate_path = {tmp_path}\n{text}\n")
    return str(path)


@pytest.mark.parametrize(
    ("program", "backend"),
    [
        *((program, "eventlet") for program in SERVICES),
        # What differs with the backend is in the part that all services share.
        ("novalite-conductor", "threading"),
    ],
)
def test_help_prints_help_and_nothing_else(program: str, backend: str) -> None:
    code, out, err = run(program, "--help", backend=backend)
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: {program}")


def test_v36_one_line_and_exit_code(tmp_path: Path) -> None:
    program = "novalite-scheduler"
    path = write(tmp_path, "report_interval = ten")
    code, out, err = run(program, "--config-file", path)
    assert (code, out) == (1, "")
    assert err == (
        f"{program}: {path}: [DEFAULT] report_interval = ten: not valid; "
        "allowed: a whole number, 1 or more\n"
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["novalite.conf"]


def test_unknown_backend_in_the_environment() -> None:
    code, out, err = run("novalite-conductor", backend="gevent")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "NOVALITE_CONCURRENCY_BACKEND: concurrency_backend = 'gevent' is not allowed" in err


def test_unknown_backend_in_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, "concurrency_backend = gevent")
    code, _, err = run("novalite-conductor", "--config-file", path)
    assert (code, err.count("\n")) == (1, 1)
    assert f"{path}: [DEFAULT]" in err and "allowed: auto, eventlet, threading" in err


def test_missing_tables(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    code, _, err = run("novalite-conductor", "--config-file", path)
    assert code == 1
    assert "the database has no tables; run: novalite-manage db sync" in err
    assert "Traceback" not in err


def test_missing_tables_are_told_on_stderr_too_when_the_log_is_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, f"log_file = {tmp_path / 'conductor.log'}")
    code, _, err = run("novalite-conductor", "--config-file", path)
    line = "the database has no tables; run: novalite-manage db sync"
    assert (code, err) == (1, f"novalite-conductor: {line}\n")
    assert line in (tmp_path / "conductor.log").read_text()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("oracle://u:geheim@host/name", "oracle:// is not supported; allowed: sqlite, postgresql"),
        ("mysql+aiomysql://u:geheim@host/name", "[database] connection: "),
        ("sqlite:////proc/no/novalite.db", "/proc/no"),
    ],
)
def test_database_that_cannot_be(tmp_path: Path, url: str, expected: str) -> None:
    path = write(tmp_path, f"[database]\nconnection = {url}")
    code, _, err = run("novalite-conductor", "--config-file", path)
    assert code == 1
    assert expected in err
    assert "Traceback" not in err and "geheim" not in err


def test_a_compute_does_not_look_at_the_database_section(tmp_path: Path) -> None:
    """A shared file may name a database that a compute can neither read nor reach."""
    path = write(tmp_path, "report_interval = 60\n[database]\nconnection = oracle://a:b:c@d")
    code, _, err = run("novalite-compute", "--config-file", path)
    assert code == 1
    assert "report_interval = 60 must be less than" in err, "and not the database"
