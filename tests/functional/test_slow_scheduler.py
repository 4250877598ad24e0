# SPDX-License-Identifier: Apache-2.0
"""V18: the scheduler answers after its caller has given up and asked again."""

from collections.abc import Callable

import pytest

from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.bus

Make = Callable[..., Cloud]
SERVERS = 10
# Seconds a conductor waits for a scheduler.
PATIENCE = 2


def test_v18_a_late_selection_is_nobodys(make_cloud: Make) -> None:
    cloud = make_cloud(config={"DEFAULT": {"long_rpc_timeout": PATIENCE}})
    api = cloud.api
    cloud.pause("scheduler")
    servers = api.boot_many(SERVERS)
    gave_up = "No scheduler answers"
    eventually(lambda: len(cloud.grep("conductor", gave_up)) > 1, 30.0, "it is asked again")
    cloud.resume("scheduler")
    assert set(api.wait_settled(servers, 30.0).values()) == {"ACTIVE"}
    cloud.wait_log("conductor", r"INFO .*The answer to \w+ in reply_\w+ came too late")
    # Each was selected, claimed and made once, and the books show no more than that.
    for uuid in servers:
        [action] = cloud.rows(
            "select attempt, failures from instance_actions where instance_uuid = :u", u=uuid
        )
        assert action["attempt"] == 1, action
    assert len(cloud.assert_books().servers) == SERVERS
    [node] = api.get("/os-hypervisors/detail")["hypervisors"]
    assert (node["vcpus_used"], node["running_vms"]) == (SERVERS, SERVERS)
    assert not cloud.grep("scheduler", "Traceback")
