# SPDX-License-Identifier: Apache-2.0
"""V21: hosts whose clocks are wrong by minutes are up while they live, and down when they died."""

import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional import faults
from tests.functional.api import Api
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

Make = Callable[..., Cloud]
DOWN_TIME = int(faults.DOWN_TIME)
SKEW = {"compute1": 300.0, "compute2": -300.0}
# Python runs this before the program: the wrong clock is everywhere in the process.
WRONG_CLOCK = """
    import sys
    import time

    for host, seconds in {skew!r}.items():
        if sys.orig_argv[-1].endswith("/" + host + ".conf"):
            time.time = lambda right=time.time, seconds=seconds: right() + seconds
"""


@pytest.fixture
def cloud(make_cloud: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """Two computes with wrong clocks."""
    code = textwrap.dedent(WRONG_CLOCK).format(skew=SKEW)
    (tmp_path / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return make_cloud(computes=2, config={"DEFAULT": {"service_down_time": DOWN_TIME}})


def state(api: Api, host: str) -> str:
    found = api.get(f"/os-services?binary=nova-compute&host={host}")["services"]
    return str(found[0]["state"])


def log_time(line: str) -> float:
    return time.mktime(time.strptime(line[:19], "%Y-%m-%d %H:%M:%S"))


def test_v21_a_wrong_clock_is_nobodys_death_and_nobodys_life(cloud: Cloud) -> None:
    api = cloud.api
    for host, skew in SKEW.items():
        line = cloud.wait_log(host, "is ready")
        assert abs(log_time(line) - time.time() - skew) < 100, line
    counter = "select host, report_count, last_seen_up from services where host = :host"

    def heard(host: str) -> int:
        return int(cloud.rows(counter, host=host)[0]["report_count"])

    for host in SKEW:
        before = heard(host)
        eventually(lambda host=host, before=before: heard(host) > before + 1, what="it reports")  # type: ignore[misc]
        assert state(api, host) == "up"
        row = cloud.rows(counter, host=host)[0]
        assert abs(row["last_seen_up"] - time.time()) < DOWN_TIME
    # Both are given servers, and what they do is in order by one clock.
    servers = api.boot_many(4)
    assert set(api.wait_settled(servers).values()) == {"ACTIVE"}
    assert {api.show(uuid)["OS-EXT-SRV-ATTR:host"] for uuid in servers} == set(SKEW)
    died = {host: time.monotonic() for host in SKEW}
    for host in SKEW:
        cloud.kill(host)
        died[host] = time.monotonic()
    for host in SKEW:
        eventually(lambda host=host: state(api, host) == "down", 2.0 * DOWN_TIME, "it is down")  # type: ignore[misc]
        # The ratio of the case: never up 70 s after the death with a limit of 60 s.
        assert time.monotonic() - died[host] < DOWN_TIME * 70 / 60 + 0.5
