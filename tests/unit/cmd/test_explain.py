# SPDX-License-Identifier: Apache-2.0
"""The words of ``novalite explain``, and whose cloud they mean."""

import argparse
import json
import os

import pytest

from novalite.advisor import cloud
from novalite.cmd import explain
from novalite.cmd.cloud import main
from novalite.devcloud import state
from tests.unit.advisor.test_render import body


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What the command asked for: (state directory, cloud, server)."""
    found = []

    class Compute:
        def __init__(self, state_dir, name=None):
            self.words = [state_dir, name]

        def explain(self, server):
            found.append((*self.words, server))
            if server == "none":
                raise cloud.CloudError("No server with a name or id of 'none' exists.")
            return body()

        def why_not(self, server, host):
            found.append((server, host))
            return {"why_not": {"host_details": False, "summary": "because", "hosts": []}}

        def capacity(self, flavor, fields):
            found.append((flavor, fields))
            return {"capacity": {"summary": "7 more", "hosts": [], "picture_age": 0.0}}

    monkeypatch.setattr(cloud, "Compute", Compute)
    monkeypatch.setattr(state, "default_directory", lambda: tmp_path / "default")
    for name in ("OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "example.org")
    return found


def run(*words, command="explain"):
    with pytest.raises(SystemExit) as ended:
        main([command, *words])
    return ended.value.code


def test_prints_text_or_the_answer_itself(asked, capsys):
    assert run("web") == 0
    assert capsys.readouterr().out.startswith("web is in ERROR: ")
    assert run("web", "-f", "json") == 0
    assert json.loads(capsys.readouterr().out) == body()


def test_says_on_stderr_why_there_is_no_answer(asked, capsys):
    assert run("none") == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (
        "",
        "novalite: No server with a name or id of 'none' exists.\n",
    )


def test_the_words_win_over_the_environment_and_that_over_the_default(asked, monkeypatch, tmp_path):
    run("a")
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "clouds.yaml").write_text("clouds: {}")
    run("b")
    monkeypatch.setenv("OS_CLOUD", "mine")
    run("c")
    run("d", "--os-cloud", "other")
    run("e", "--state-dir", str(tmp_path))
    assert asked == [
        (None, None, "a"),
        (tmp_path / "default", None, "b"),
        (None, None, "c"),
        (None, "other", "d"),
        (tmp_path, None, "e"),
    ]


def test_a_cloud_of_this_machine_is_behind_no_proxy(asked, monkeypatch, tmp_path):
    explain.compute(tmp_path, None)
    assert os.environ["NO_PROXY"] == "127.0.0.1,example.org"


def test_needs_a_server():
    command = argparse.ArgumentParser(exit_on_error=False)
    explain.add_arguments(command)
    assert command.parse_args(["x"]).format == "text"
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        command.parse_args([])


def test_why_not_asks_for_a_host_or_for_all(asked, capsys):
    assert run("web", "h1", command="why-not") == 0
    assert capsys.readouterr().out.startswith("because\n")
    assert run("web", "-f", "json", command="why-not") == 0
    assert json.loads(capsys.readouterr().out)["why_not"]["summary"] == "because"
    assert asked == [("web", "h1"), ("web", None)]


def test_capacity_sends_what_was_typed_and_nothing_else(asked, capsys):
    assert run("--flavor", "f", command="capacity") == 0
    assert capsys.readouterr().out.startswith("7 more\n")
    words = ("--hosts", "h1", "h2", "--zone", "z", "--image", "i", "--volume-backed")
    assert run("--flavor", "f", *words, "-f", "json", command="capacity") == 0
    assert asked == [
        ("f", {}),
        (
            "f",
            {
                "hosts": ["h1", "h2"],
                "availability_zone": "z",
                "imageRef": "i",
                "volume_backed": True,
            },
        ),
    ]
    assert run("--hosts", "h1", command="capacity") == 2
