# SPDX-License-Identifier: Apache-2.0
"""FLEET.yaml and WORKLOAD.yaml: the examples, and mistakes with their place."""

from pathlib import Path

import pytest

from novalite.advisor.whatif import files, settings
from novalite.advisor.whatif.files import WrongFile

EXAMPLES = Path(__file__).parents[4] / "etc" / "novalite" / "whatif"


def test_the_examples_are_good() -> None:
    hosts = files.fleet(str(EXAMPLES / "fleet.yaml"))
    requests = files.workload(str(EXAMPLES / "workload.yaml"))
    assert len(hosts) == 1000
    assert sum(request.servers for request in requests) == 5000
    # Mixed: no kind is done before the others have begun.
    assert {request.kind for request in requests[:500]} == {
        "web", "worker", "batch", "database", "quorum"
    }  # fmt: skip
    assert hosts[-1].aggregates[1].metadata == {"ssd": "true"}
    assert settings.load([str(EXAMPLES / "new.conf")]).explicit == {
        "ram_allocation_ratio": 1.0,
        "reserved_host_memory_mb": 2048.0,
    }


_BODY = "hosts: [{name: h, memory_mb: 1, vcpus: 1, local_gb: 1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hosts: [{name: h}]", r"hosts\[0\]: 'memory_mb' is a required property"),
        (_BODY + ", cpus: 3}]", r"hosts\[0\]: .*'cpus' was unexpected"),
        (_BODY + ", up: maybe}]", r"hosts\[0\].up: 'maybe' is not of type 'boolean'"),
        (_BODY + ", aggregates: [x]}]", r"hosts\[0\]: there is no aggregate x"),
        (_BODY + "}, {name: h, memory_mb: 1, vcpus: 1, local_gb: 1}]", "two hosts h"),
        ("hosts: [", "not YAML"),
        ("hosts: []", "hosts"),
    ],
)
def test_a_wrong_fleet_is_told_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(text)
    with pytest.raises(WrongFile, match=words):
        files.fleet(str(file))


def test_a_wrong_workload_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text("flavors: {}\nrequests: [{name: a, flavor: b}]\n")
    with pytest.raises(WrongFile, match=r"requests\[0\]: there is no flavor b"):
        files.workload(str(file))
    with pytest.raises(WrongFile, match="cannot be read: No such file"):
        files.workload(str(tmp_path / "none"))


def test_requests_in_the_given_order(tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text(
        "order: given\nflavors: {f: {vcpus: 1, memory_mb: 1, extra_specs: {ssd: true}}}\n"
        "requests: [{name: a, flavor: f, count: 2}, {name: b, flavor: f}]\n"
    )
    requests = files.workload(str(file))
    assert [request.kind for request in requests] == ["a", "a", "b"]
    assert requests[0].flavor.extra_specs == {"ssd": "true"}
