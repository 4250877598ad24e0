# SPDX-License-Identifier: Apache-2.0
"""What ``novalite`` says when it is asked for what cannot be."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from novalite.cmd import cloud
from novalite.devcloud.cloud import Status


def refused(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        cloud.main([str(word) for word in words])
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["up", "--computes", "0"], "'0' is not a number from 1 to 100"),
        (["up", "--transport-url", "http://u:secret@x"], "the URL must begin with rabbit://"),
        (["demo", "--transport-url", "x:secret"], "the URL must begin with rabbit://"),
        (["logs", "-n", "-3"], "'-3' is not a number of lines"),
    ],
)
def test_wrong_words(capsys, words, text):
    code, err = refused(capsys, *words)
    assert code == 2
    assert text in err
    assert "secret" not in err


def test_a_directory_without_a_cloud(capsys, tmp_path):
    nowhere = tmp_path / "nowhere"
    code, err = refused(capsys, "reload", "--state-dir", nowhere)
    assert (code, err) == (1, f"novalite: nothing runs in {nowhere}\n")
    code, err = refused(capsys, "logs", "--state-dir", nowhere)
    assert code == 1
    assert err.startswith("novalite: there are no logs")


def test_a_state_directory_that_cannot_be_made(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, err = refused(capsys, "up", "--state-dir", tmp_path / "file" / "state")
    assert code == 1
    assert err == (
        f"novalite: the state directory {tmp_path}/file/state cannot be made: Not a directory\n"
    )


def test_a_pipe_gets_one_line_for_each_service(tmp_path):
    url = "http://127.0.0.1:21133/"
    found = [Status("api", 7468, url, 0.0, 98000, "degraded: bus no answer within 2 s, " * 3)]
    devcloud = SimpleNamespace(
        statuses=lambda: found, services=SimpleNamespace(logs=tmp_path / "logs")
    )
    output = io.StringIO()
    assert cloud.print_statuses(devcloud, Console(file=output, width=80))
    heading, line, empty, logs = output.getvalue().splitlines()
    assert heading.split() == ["service", "pid", "health", "memory", "up", "for", "where"]
    assert line.startswith("api ") and line.rstrip().endswith(url)
    assert (empty, logs) == ("", f"Logs: {tmp_path}/logs")
