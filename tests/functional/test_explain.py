# SPDX-License-Identifier: Apache-2.0
"""``novalite explain``, ``capacity`` and ``why-not`` on a real cloud.

The outputs of docs/operators.md are those of these tests. Where the guide leaves out what differs
too much it has a line with three dots. With NOVALITE_TEST_OUTPUTS=FOLDER the outputs are written
there instead, to be pasted.

One cloud plays all of them, in this order; each test leaves the hosts as it found them.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from novalite.devcloud import configuration
from novalite.devcloud.services import find_program
from tests.functional import faults
from tests.functional.cloud import PASSWORDS, Cloud
from tests.functional.waiting import eventually

Make = Callable[..., Cloud]

HOSTS = ("compute1", "compute2", "compute3")
HOST = "OS-EXT-SRV-ATTR:host"
OUTPUTS = os.environ.get("NOVALITE_TEST_OUTPUTS")
DOCS = Path(__file__).parents[2] / "docs" / "operators.md"
# Everything that differs from run to run.
_MASKS = (
    (re.compile(r"req-[0-9a-f-]{36}"), "REQUEST"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}"), "UUID"),
    (re.compile(r"(?m)^ +\d+\.\d +(?:\d+\.\d +)?(?=api|conductor|compute|it )"), "T "),
    (re.compile(r"\b\d+(?:\.\d+)? (?:ms|s)\b"), "SECONDS"),
    (re.compile(r"compute[123]"), "HOST"),
    (re.compile(r"(?i)(picture|HOST) \d+\.\d+"), r"\1 N"),
    (re.compile(r" +"), " "),
)


def masked(text: str) -> str:
    """Return an output without what differs from run to run."""
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def documented(command: str) -> list[str]:
    """Return the output that the operators' guide shows for a command, in its pieces."""
    # Which of the hosts it was may differ.
    typed = re.sub(r"(?<= )compute\d$", r"compute\\d", f"novalite {command}")
    pattern = rf"(?m)^    \$ {typed}\n((?:    .*\n|\n(?=    ))+)"
    found = re.search(pattern, DOCS.read_text())
    assert found, f"docs/operators.md does not show `novalite {command}`"
    return [masked(piece) for piece in re.split(r"(?m)^ *\.\.\.\n", found[1]) if piece.strip()]


class Operator:
    """Types ``novalite explain`` as the administrator or as the user demo."""

    def __init__(self, cloud: Cloud):
        self.cloud = cloud
        self.api = cloud.client()
        accounts = {user: (user, user, PASSWORDS[user]) for user in ("admin", "demo")}
        file = cloud.directory / "clouds.yaml"
        file.write_text(configuration.clouds_yaml(cloud.endpoints, accounts))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        self._environment = kept | {
            "OS_CLIENT_CONFIG_FILE": str(file),
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def run(
        self, *words: str, user: str = "admin", command: str = "explain"
    ) -> "subprocess.CompletedProcess[str]":
        done = self.type(command, *words, "--os-cloud", user)
        if OUTPUTS and user == "admin":
            shown = f"$ novalite {command} {' '.join(words)}\n{done.stdout}{done.stderr}\n"
            with open(f"{OUTPUTS}/outputs.txt", "a") as file:
                file.write(shown)
        return done

    def type(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run ``novalite`` with these words."""
        command = [find_program("novalite"), *words]
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=60
        )

    def explain(self, *words: str, user: str = "admin") -> str:
        """Return what the command prints; it must succeed."""
        return self.ask("explain", *words, user=user)

    def ask(self, command: str, *words: str, user: str = "admin") -> str:
        """Return what a command prints; it must succeed."""
        done = self.run(*words, user=user, command=command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def boot(self, name: str, wanted: str, **fields: Any) -> str:
        """Boot a server to this status and return what explains it."""
        uuid = self.api.boot(name, **fields)
        self.api.wait(uuid, wanted)
        return self.explain(name)


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    return make_class_cloud(auth="keystone", computes=3)


@pytest.fixture(scope="class")
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


@pytest.fixture(scope="class")
def flavor(operator: Operator) -> str:
    """A flavor of which one server fits a host, although more memory is promised than is there."""
    return operator.api.flavor("large", ram=16000)


def fitting(operator: Operator, flavor: str) -> dict[str, int]:
    """Return how many more fit, by host."""
    asked = {"capacity": {"flavorRef": flavor}}
    told = operator.api.post("/novalite/capacity", asked)["capacity"]
    found = {each["host"]: each["count"] for each in told["hosts"]}
    assert told["total"] == sum(found.values())
    return found


@pytest.fixture
def empty(cloud: Cloud) -> Iterator[Cloud]:
    """The cloud, which has no server before and after."""
    yield cloud
    faults.remove_all(cloud)


def check(command: str, output: str) -> None:
    """The guide shows this output, or pieces of it in their order; the first is its beginning."""
    if OUTPUTS:
        return
    left = masked(output)
    pieces = documented(command)
    if len(pieces) == 1:
        assert left == pieces[0]
    assert left.startswith(pieces[0]), output
    for piece in pieces:
        assert piece in left, f"{piece}\n\nis not in\n\n{left}"
        left = left.partition(piece)[2]


class TestExplain:
    def test_a_success(self, operator: Operator, empty: Cloud) -> None:
        output = operator.boot("web", "ACTIVE")
        check("explain web", output)
        assert output.startswith("web is ACTIVE on compute")
        body = json.loads(operator.explain("web", "-f", "json"))["explanation"]
        assert body["server"]["host"] in HOSTS
        assert body["actions"][0]["attempts"][0]["outcome"] == "succeeded"

    def test_no_memory_anywhere(self, operator: Operator, empty: Cloud, flavor: str) -> None:
        for uuid in [operator.api.boot("filler", flavor=flavor) for _ in HOSTS]:
            operator.api.wait(uuid)
        check("explain big", operator.boot("big", "ERROR", flavor=flavor))
        uuids = operator.api.boot_many(2, name="two", flavor=flavor)
        operator.api.wait_settled(uuids)
        output = operator.explain(uuids[0])
        assert "2 servers were asked for in one request, all or none" in output
        # The user demo is told the counts and no host.
        demo = operator.cloud.client("demo", "demo")
        demo.wait(demo.boot("mine", flavor=flavor), "ERROR")
        output = operator.explain("mine", user="demo")
        assert output.startswith(
            "mine is in ERROR: no host can take it: all 3 hosts have too little memory left.\n"
        )
        assert not re.search(r"compute[123]|127\.0|16384|24576|controller", output)
        assert "compute1" in operator.explain("mine")
        done = operator.run("big", user="demo")
        assert (done.returncode, done.stdout) == (1, "")
        assert "No server with a name or id of 'big' exists." in done.stderr

    def test_other_settings_for_the_hosts_as_they_are(
        self, operator: Operator, empty: Cloud, tmp_path: Path
    ) -> None:
        """``novalite whatif --live``: fill and places are those that the scheduler would make."""
        api = operator.api
        flavor = api.flavor("most", ram=16000)
        api.wait(api.boot("filler", flavor=flavor))
        workload, new = tmp_path / "workload.yaml", tmp_path / "new.conf"
        workload.write_text(
            "flavors: {most: {vcpus: 1, memory_mb: 16000}}\n"
            "requests: [{name: more, flavor: most, count: 3}]\n"
        )
        new.write_text("[DEFAULT]\nreserved_host_memory_mb = 4096\nram_allocation_ratio = 1.0\n")
        done = operator.type(
            *("whatif", "--live", "--os-cloud", "admin", "-f", "json"),
            *(f"--config-file={new}", f"--workload={workload}"),
        )
        assert done.returncode == 0, done.stderr
        body = json.loads(done.stdout)
        assert body["notes"] == []
        # 16384 x 1.5 - 512 = 24064 MB a host: one more on each of the two that are empty.
        assert body["summary"]["old"]["placed"] == 2
        assert body["summary"]["new"]["placed"] == 0
        assert sorted(each["old"]["memory_percent"] for each in body["hosts"]) == [67.2] * 3
        # (4096 + 16000) / 16384, and 4096 / 16384 where nothing fits any more.
        assert sorted(each["new"]["memory_percent"] for each in body["hosts"]) == [25, 25, 122.7]
        # The cloud says the same of itself.
        uuids = [api.boot("more", flavor=flavor) for _ in HOSTS]
        api.wait_settled(uuids)
        states = sorted(server["status"] for server in api.servers() if server["name"] == "more")
        assert states == ["ACTIVE", "ACTIVE", "ERROR"]

    def test_the_four_questions(self, operator: Operator, empty: Cloud, flavor: str) -> None:
        """How is counted, why may free be negative, why does it boot still, why not here."""
        api = operator.api
        command = "capacity --flavor large --hosts compute1"
        check(command, operator.ask(*command.split()))
        for uuid in [api.boot("filler", flavor=flavor) for _ in HOSTS]:
            api.wait(uuid)
        small = api.flavor("small", ram=2048)
        assert fitting(operator, small) == dict.fromkeys(HOSTS, 3)
        command = "capacity --flavor small --hosts compute1"
        check(command, operator.ask(*command.split()))
        more = api.boot("more", flavor=small)
        api.wait(more)
        check("explain more", operator.explain("more"))
        big = api.boot("big", flavor=flavor)
        api.wait(big, "ERROR")
        free = next(host for host in HOSTS if host != api.show(more)[HOST])
        check("why-not big compute1", operator.ask("why-not", "big", free))
        named = operator.boot("named", "ACTIVE", flavor=flavor, availability_zone=f"nova:{free}")
        check("explain named", named)
        # What the answers said is what the books say, and all hosts are told once.
        hypervisors = api.get("/os-hypervisors/detail")["hypervisors"]
        [books] = [each for each in hypervisors if each["hypervisor_hostname"] == free]
        assert books["free_ram_mb"] == 16384 - 512 - 2 * 16000
        everywhere = api.get(f"/servers/{big}/why-not")["why_not"]["hosts"]
        assert sorted(each["host"] for each in everywhere) == list(HOSTS)

    def test_as_many_fit_as_capacity_says(self, operator: Operator, empty: Cloud) -> None:
        flavor = operator.api.flavor("quarter", ram=6000)
        assert fitting(operator, flavor) == dict.fromkeys(HOSTS, 4)
        made = [operator.api.boot(f"q{number}", flavor=flavor) for number in range(13)]
        operator.api.wait_settled(made)
        states = sorted(operator.api.show(uuid)["status"] for uuid in made)
        assert states == ["ACTIVE"] * 12 + ["ERROR"]
        assert fitting(operator, flavor) == dict.fromkeys(HOSTS, 0)

    def test_a_disabled_host(self, operator: Operator, empty: Cloud) -> None:
        operator.api.microversion("2.11")
        for host in HOSTS:
            body = {"host": host, "binary": "nova-compute", "disabled_reason": "new disks"}
            path = "/os-services/disable-log-reason"
            assert operator.api.request("PUT", path, body).status == 200
        operator.api.microversion("2.53")
        check("explain nowhere", operator.boot("nowhere", "ERROR"))
        for host in HOSTS:
            faults.enable(empty, host)

    def test_max_attempts(self, operator: Operator, empty: Cloud) -> None:
        faults.play(empty, *HOSTS, fail_spawn=1)
        check("explain unlucky", operator.boot("unlucky", "ERROR"))
        faults.play(empty, *HOSTS, fail_spawn=0)
        # What is deleted is explained too.
        [uuid] = [server["id"] for server in operator.api.servers()]
        operator.api.delete(uuid)
        operator.api.wait_gone(uuid)
        output = operator.explain("unlucky")
        assert re.match(r"unlucky was deleted .* ago, after its build had failed\.\n", output)

    def test_a_cpu_that_the_hosts_do_not_have(self, operator: Operator, empty: Cloud) -> None:
        empty.configure({"fake_libvirt": {"nested": "vmx"}}, *HOSTS)
        empty.reload(*HOSTS)
        check("explain modern", operator.boot("modern", "ERROR"))
        # What is advised helps.
        empty.configure({"libvirt": {"cpu_mode": "none"}}, *HOSTS)
        empty.reload(*HOSTS)
        operator.api.wait(operator.api.boot("plain"))

    def test_a_lost_compute(self, operator: Operator, cloud: Cloud) -> None:
        cloud.stop("compute2", "compute3")
        down = {("nova-compute", "compute2"): "down", ("nova-compute", "compute3"): "down"}
        eventually(lambda: down.items() <= operator.api.services().items(), what="two are down")
        faults.play(cloud, "compute1", spawn_delay=60)
        uuid = operator.api.boot("lost")
        faults.wait_spawning(cloud, "compute1", uuid)
        output = operator.explain("lost")
        assert re.match(
            r"lost is being built, since .*: attempt 1, compute1 builds it \(spawning\)\.\n", output
        )
        cloud.kill("compute1")
        operator.api.wait(uuid, "ERROR")
        check("explain lost", operator.explain("lost"))
