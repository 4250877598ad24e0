# SPDX-License-Identifier: Apache-2.0
"""The thread backend is chosen from what stands in environment and files, before oslo.config."""

from pathlib import Path

import pytest

from novalite import concurrency


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(concurrency.ENVIRONMENT, raising=False)
    monkeypatch.setattr(concurrency, "DEFAULT_FILE", str(tmp_path / "default.conf"))


def write(path: Path, backend: str) -> str:
    path.write_text(f"[DEFAULT]\nconcurrency_backend = {backend}\n")
    return str(path)


def test_default() -> None:
    assert concurrency.wanted([]) == concurrency.AUTO


def test_auto_is_the_default(tmp_path: Path) -> None:
    path = write(tmp_path / "1.conf", "auto")
    assert concurrency.wanted(["--config-file", path]) == concurrency.AUTO


def test_last_file_wins(tmp_path: Path) -> None:
    first, last = write(tmp_path / "1.conf", "eventlet"), write(tmp_path / "2.conf", "threading")
    words = ["--config-file", first, f"--config-file={last}", "--debug"]
    assert concurrency.wanted(words) == "threading"
    assert concurrency.wanted([*words[2:], *words[:2]]) == "eventlet"


def test_directory(tmp_path: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    write(folder / "1.conf", "eventlet")
    write(folder / "2.conf", "threading")
    assert concurrency.wanted(["--config-dir", str(folder)]) == "threading"


def test_default_file_counts_only_without_another(tmp_path: Path) -> None:
    write(Path(concurrency.DEFAULT_FILE), "threading")
    other = write(tmp_path / "1.conf", "eventlet")
    assert concurrency.wanted([]) == "threading"
    assert concurrency.wanted(["--config-file", other]) == "eventlet"


def test_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(concurrency.ENVIRONMENT, "threading")
    path = write(tmp_path / "1.conf", "eventlet")
    assert concurrency.wanted(["--config-file", path]) == "threading"


def test_unknown_backend_names_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "1.conf", "gevent")
    with pytest.raises(concurrency.BackendError) as caught:
        concurrency.wanted(["--config-file", path])
    assert str(caught.value) == (
        f"{path}: [DEFAULT]: concurrency_backend = 'gevent' is not allowed; "
        "allowed: auto, eventlet, threading"
    )


def test_a_broken_file_is_left_to_the_check_of_all_options(tmp_path: Path) -> None:
    path = tmp_path / "1.conf"
    path.write_bytes(b"no section = \xff\n")
    words = ["--config-file", str(path), "--config-file", str(tmp_path / "absent.conf")]
    assert concurrency.wanted(words) == concurrency.AUTO


def test_check_refuses_another_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "_backend", "threading")
    concurrency.check("threading")
    with pytest.raises(concurrency.BackendError, match="started with threading"):
        concurrency.check("eventlet")
    monkeypatch.setenv(concurrency.ENVIRONMENT, "threading")
    concurrency.check("eventlet")
