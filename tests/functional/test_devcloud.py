# SPDX-License-Identifier: Apache-2.0
"""``novalite up``, ``ps``, ``logs``, ``down`` as a user runs them."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from novalite.devcloud import ports, processes
from novalite.devcloud.client import Client, password_token
from novalite.devcloud.services import find_program
from tests.functional.waiting import eventually


class User:
    """Types commands."""

    def __init__(self, directory: Path):
        self.directory = directory

    def command(self, *words: str) -> list[str]:
        verb, *rest = words
        return [find_program("novalite"), verb, "--state-dir", str(self.directory), *rest]

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=150)

    def success(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def openstack(self, *words: str) -> list[dict[str, Any]]:
        environment = {name: value for name, value in os.environ.items() if name[:3] != "OS_"}
        environment["OS_CLIENT_CONFIG_FILE"] = str(self.directory / "clouds.yaml")
        command = [find_program("openstack"), "--os-cloud", "novalite", *words, "-f", "json"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def api(self, cloud: str, port: str) -> Client:
        """Return a client with the account of clouds.yaml, for one of the cloud's ports."""
        auth = yaml.safe_load((self.directory / "clouds.yaml").read_text())["clouds"][cloud]["auth"]
        token = password_token(
            auth["auth_url"], auth["username"], auth["password"], auth["project_name"]
        )
        number = json.loads((self.directory / "cloud.json").read_text())[port]
        return Client(f"http://127.0.0.1:{number}", {"X-Auth-Token": token})

    def marked(self) -> list[int]:
        """Return all processes that use the directory, whoever started them."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    line = (entry / "cmdline").read_bytes().decode(errors="replace")
                except OSError:
                    continue
                if str(self.directory) in line:
                    found.append(int(entry.name))
        return found


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    made = User(tmp_path / "state")
    yield made
    made.run("down")


def test_a_cloud_comes_up_is_used_and_goes(user: User) -> None:
    shown = user.success("up", "--computes", "2")
    for name in ("rabbitmq", "conductor", "scheduler", "compute1", "compute2", "neighbors", "api"):
        assert name in shown
    assert "openstack server create" in shown

    again = user.success("up")
    assert "is up already" in again

    assert "compute2" in user.success("ps")
    flavors = user.openstack("flavor", "list")
    assert {(f["Name"], f["VCPUs"], f["RAM"], f["Disk"]) for f in flavors} == {
        ("m1.nano", 1, 64, 1),
        ("m1.tiny", 1, 512, 1),
        ("m1.small", 1, 2048, 20),
    }
    images = user.api("novalite", "image_port").get("/v2/images")["images"]
    assert [image["visibility"] for image in images] == ["public", "public"]
    networks = user.api("novalite-demo", "network_port").get("/v2.0/networks")["networks"]
    assert {network["name"] for network in networks} == {"private", "public"}

    assert re.search(r"(?m)^conductor .*novalite-conductor is ready", user.success("logs"))
    assert "rabbitmq" not in user.success("logs", "conductor")

    for file in ("cloud.json", "clouds.yaml", "openrc", "etc/novalite.conf", "etc/api.conf"):
        assert stat.S_IMODE((user.directory / file).stat().st_mode) == 0o600

    used = json.loads((user.directory / "cloud.json").read_text())
    assert user.marked()
    assert "Stopped: " in user.success("down")
    assert user.marked() == []
    for name in ("api_port", "identity_port", "image_port", "network_port"):
        assert ports.is_free(used[name]) and not ports.answers(used[name])
    assert user.run("ps").returncode == 3
    assert "Nothing runs" in user.success("down")

    # What was made is still there after the next start, and nothing is made twice.
    user.success("up")
    names = user.api("novalite", "api_port").get("/v2.1/flavors")["flavors"]
    assert {flavor["name"] for flavor in names} == {flavor["Name"] for flavor in flavors}


@pytest.mark.timeout(600)
def test_more_of_each_and_another_cloud_beside_it(user: User, tmp_path: Path) -> None:
    words = ("--conductors", "2", "--schedulers", "2", "--api-workers", "2")
    shown = user.success("up", *words)
    for name in ("conductor1", "conductor2", "scheduler1", "scheduler2", "api"):
        assert name in shown
    assert "is up already" in user.success("up", *words)
    assert "is up already" in user.success("up")
    refused = user.run("up", "--conductors", "3")
    assert refused.returncode == 1
    assert "runs with conductors: 2; stop it first with: novalite down" in " ".join(
        refused.stderr.split()
    )
    assert "novalite-conductor is ready" in user.success("logs", "conductor2")
    assert "is ready with 2 workers" in user.success("logs", "api")
    other = User(tmp_path / "other")
    try:
        other.success("up")
        names = {
            item["host"]
            for item in user.api("novalite", "api_port").get("/v2.1/os-services")["services"]
        }
        assert names == {"controller1", "controller2", "compute1"}
        assert "Stopped: " in other.success("down")
        assert other.marked() == []
    finally:
        other.run("down")
    assert user.run("ps").returncode == 0
    told = user.success("reload")
    assert "Told: api, compute1, conductor1, conductor2, neighbors, scheduler1, scheduler2" in told
    assert "Told: api;" in user.success("reload", "api")
    assert user.run("reload", "nobody").returncode == 1
    user.success("down")
    assert user.marked() == []


def test_a_dead_service_is_shown_and_started_again(user: User) -> None:
    user.success("up")
    run = user.directory / "run"
    victim = processes.Process("scheduler", run, user.directory / "logs" / "scheduler.log")
    victim.kill()
    shown = user.run("ps")
    assert shown.returncode == 1
    assert re.search(r"scheduler +dead", shown.stdout)
    others = {name: user_pid(run, name) for name in ("api", "conductor")}
    user.success("up")
    assert user.run("ps").returncode == 0
    assert {name: user_pid(run, name) for name in others} == others


def user_pid(run: Path, name: str) -> int | None:
    return processes.Process(name, run, run / "log").pid


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--database-url", "postgresql+psycopg://u:secret@127.0.0.1:{port}/x"), "db-sync"),
        (("--transport-url", "rabbit://u:secret@127.0.0.1:{port}/x"), "--transport-url"),
    ],
)
def test_a_failed_start_says_why_and_cleans_up(
    user: User, words: tuple[str, str], expected: str
) -> None:
    port = ports.free(1)[0]
    done = user.run("up", *(word.format(port=port) for word in words))
    assert done.returncode == 1
    assert expected in done.stderr
    assert "secret" not in done.stderr + done.stdout
    assert user.marked() == []
    assert processes.recorded(user.directory / "run") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_cleans_up(user: User, number: int) -> None:
    child = subprocess.Popen(
        user.command("up"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A shell that runs the tests in the background lets its children ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    eventually(lambda: processes.recorded(user.directory / "rabbitmq" / "run"))
    child.send_signal(number)
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert user.marked() == []


def test_a_broker_that_is_missing_is_told(user: User) -> None:
    script = (
        "from novalite.cmd import cloud\n"
        "from novalite.devcloud import broker\n"
        "broker.PROGRAMS = ('/no/such/rabbitmq-server',)\n"
        "cloud.main()\n"
    )
    command = [sys.executable, "-c", script, *user.command("up")[1:]]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "apt-get install --no-install-recommends rabbitmq-server" in done.stderr
    assert "Traceback" not in done.stderr
