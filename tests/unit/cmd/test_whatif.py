# SPDX-License-Identifier: Apache-2.0
"""``novalite whatif``: words, formats, exit codes."""

import json
from pathlib import Path

import pytest

from novalite.cmd import cloud

FLEET = "hosts: [{name: h, count: 3, memory_mb: 16384, vcpus: 8, local_gb: 200}]\n"
WORKLOAD = (
    "flavors: {big: {vcpus: 4, memory_mb: 8192, root_gb: 40}}\n"
    "requests: [{name: b, flavor: big, count: 6}]\n"
)


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    for name, text in (
        ("fleet.yaml", FLEET),
        ("workload.yaml", WORKLOAD),
        ("old.conf", "[DEFAULT]\nram_allocation_ratio = 2.0\n"),
        ("new.conf", "[DEFAULT]\nram_allocation_ratio = 1.0\n"),
    ):
        (tmp_path / name).write_text(text)
    found = [f"--config-file={tmp_path}/new.conf", f"--old-config-file={tmp_path}/old.conf"]
    return [*found, f"--fleet={tmp_path}/fleet.yaml", f"--workload={tmp_path}/workload.yaml"]


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        cloud.main(["whatif", *words])
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


def test_table_and_json(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert run(*words) == 0
    assert "[DEFAULT] ram_allocation_ratio  2    1" in capsys.readouterr().out
    assert run(*words, "-f", "json") == 0
    body = json.loads(capsys.readouterr().out)
    assert body["summary"]["old"]["placed"] == 6
    assert body["summary"]["new"]["placed"] == 3
    assert [each["host"] for each in body["hosts"]] == ["h01", "h02", "h03"]


def test_what_is_wrong_is_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "new.conf").write_text("[filter_scheduler]\nenabled_filters = NoSuchFilter\n")
    assert run(*words) == 1
    error = capsys.readouterr().err
    assert "NoSuchFilter" in error and "new.conf" in error
    (tmp_path / "fleet.yaml").write_text("hosts: 3\n")
    (tmp_path / "new.conf").write_text("")
    assert run(*words) == 1
    assert "hosts: 3 is not of type 'array'" in capsys.readouterr().err


def test_a_weigher_that_is_broken_is_one_line(
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "whatif_broken.py").write_text(
        "from novalite.scheduler.weights import base\n\n\n"
        "class Odd(base.Weigher):\n    def weigh(self, host, demand):\n        return 'much'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "new.conf").write_text("[filter_scheduler]\nweight_classes = whatif_broken:Odd\n")
    assert run(*words) == 1
    error = capsys.readouterr().err
    assert error.startswith("novalite: The scheduler could not decide: the weigher Odd is broken")
    assert error.count("\n") == 1


def test_either_a_fleet_or_the_cloud(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert run(*words, "--live") == 2
    assert "not allowed with" in capsys.readouterr().err
