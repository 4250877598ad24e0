# SPDX-License-Identifier: Apache-2.0
"""V31 in real processes: deadlocks and lock waits in writes of services, nodes, servers, quotas."""

import time
from collections.abc import Callable

from tests.functional import faults
from tests.functional.cloud import Cloud

Make = Callable[..., Cloud]

TWICE = "services:1213:2,compute_nodes:1205:2,instances:1213:2,instance_actions:1205:1"
PROGRAMS = ("api", "conductor")


def played(text: str) -> dict[str, dict[str, object]]:
    return {"testing": {"database_faults": text}, "DEFAULT": {"debug": True}}


def test_v31_once_or_twice_is_nothing(make_cloud: Make) -> None:
    own = {"conductor": played(TWICE), "api": played("quota_locks:1213:2,instances:1205:1")}
    cloud = make_cloud(own=own)
    api = cloud.api
    uuid = api.boot()
    api.wait(uuid)
    assert len(cloud.assert_books().servers) == 1
    for name in PROGRAMS:
        assert cloud.grep(name, r"DEBUG .*Transaction is repeated"), name
        assert not cloud.grep(name, r" ERROR |Traceback"), name
    api.delete(uuid)
    api.wait_gone(uuid)
    cloud.assert_books()


def test_v31_always_is_a_clean_no_and_ends_with_it(make_cloud: Make, table: faults.Table) -> None:
    cloud = make_cloud()
    api = cloud.api
    # What is asked for cannot be written: 503 at once, without a word of SQL.
    cloud.configure(played("quota_locks:1213:0,instances:1213:0"), "api")
    cloud.restart("api")
    began = time.monotonic()
    answer = api.create("refused")
    took = time.monotonic() - began
    assert answer.status == 503, answer
    assert "INSERT" not in str(answer.body) and "1213" not in str(answer.body)
    table.add("deadlock always, POST", "503", took)
    assert api.servers() == []
    cloud.configure({"testing": {"database_faults": None}}, "api")
    cloud.restart("api")
    # What is asked for is written, but nobody can build: it waits.
    cloud.configure(played("compute_nodes:1213:0"), "conductor")
    cloud.restart("conductor")
    uuid = api.boot("waits")
    faults.wait_action(cloud, uuid, 20.0, step="started")
    cloud.wait_log("conductor", "Database is not available: .*1213", 30.0)
    for name in PROGRAMS:
        assert not cloud.grep(name, r"Traceback"), name
    assert api.show(uuid)["status"] == "BUILD"
    cloud.configure({"testing": {"database_faults": None}}, "conductor")
    cloud.restart("conductor")
    with faults.stopwatch() as taken:
        api.wait(uuid, timeout=faults.PROMISE)
    table.add("deadlock always, begin", "ACTIVE when it is over", taken[0])
    assert len(cloud.assert_books(faults.PROMISE).servers) == 1
