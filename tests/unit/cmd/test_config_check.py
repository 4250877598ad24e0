# SPDX-License-Identifier: Apache-2.0
"""``novalite-status config``: words, exit codes, both formats."""

import json
import re
import textwrap
from pathlib import Path

import pytest

from novalite.cmd import status

DATA = Path(__file__).parents[2] / "data"
DOCS = Path(__file__).parents[3] / "docs" / "operators.md"


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        status.main(["config", *words])
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


@pytest.mark.parametrize(
    ("text", "code", "counts"),
    [
        ("[DEFAULT]\nmy_ip = 10.0.0.1\n", 0, "0 errors, 0 warnings in 1 setting of 1 file."),
        ("[DEFAULT]\nquota_ram = 512\n", 1, "0 errors, 1 warning in 1 setting of 1 file."),
        ("[quota]\nram = much\n", 2, "1 error, 0 warnings in 1 setting of 1 file."),
    ],
)
def test_exit_code_and_counts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, code: int, counts: str
) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(text)
    assert run("check", str(file)) == code
    assert capsys.readouterr().out.splitlines()[-1] == counts
    assert run("check", "--config-file", str(file)) == code


def test_no_such_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("check", str(tmp_path / "none")) == 255
    assert "cannot be read: No such file" in capsys.readouterr().err


def test_findings_as_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(DATA / "nova-compute.conf")
    assert run("check", file, "--all") == 2
    lines = capsys.readouterr().out.splitlines()
    assert f"{file}, line 14: warning: [DEFAULT] disk_allocation_ratio: 10 times" in lines[2]
    assert f"{file}, line 7: no effect: [DEFAULT] compute_driver is Nova's" in "\n".join(lines)
    assert run("check", file, "-f", "json") == 2
    body = json.loads(capsys.readouterr().out)
    assert len(body["findings"]) == 12
    assert body["exit_code"] == 2
    assert {"file": file, "line": 7, "option": "[DEFAULT] compute_driver"} in body["without_effect"]


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(DATA / "nova-controller.conf")
    assert run("explain", "quota.cores", file) == 0
    assert capsys.readouterr().out.startswith(f"[quota] cores = 400\n  from: {file}, line 27\n")
    assert run("explain", "cores", file, "-f", "json") == 0
    assert json.loads(capsys.readouterr().out)[0]["effect"] == [
        "a project may have 200 servers of 2 vcpus and 4096 MB by this limit alone"
    ]
    assert run("explain", "nonsense", file) == 255
    assert "neither novalite nor Nova" in capsys.readouterr().err


def test_the_host_of_the_words_is_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    file.write_text("[DEFAULT]\nreserved_host_cpus = 8\n")
    assert run("check", str(file)) == 0
    assert run("check", str(file), "--host-vcpus", "8") == 1
    assert "the host has 8" in capsys.readouterr().out


def test_the_guide_shows_what_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(DATA)
    pattern = r"(?m)^    \$ novalite-status config (.*)\n((?:    [^$].*\n)+)"
    shown = re.findall(pattern, DOCS.read_text())
    assert [words.split()[0] for words, _output in shown] == ["check", "explain", "explain"]
    for words, output in shown:
        run(*words.split())
        assert capsys.readouterr().out == textwrap.dedent(output)
