# SPDX-License-Identifier: Apache-2.0
"""Where servers may go: server groups under parallel creates, zones, forced hosts."""

import json
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import pytest

from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

Make = Callable[..., Cloud]

HOSTS = ("compute1", "compute2", "compute3")
DECIDERS = ("scheduler1", "scheduler2", "conductor1", "conductor2")
HOST = "OS-EXT-SRV-ATTR:host"
ZONE = "OS-EXT-AZ:availability_zone"
LEFT = {"availability_zone": "left"}
FORCED_CODES = ["host_disabled", "wrong_zone", "larger_than_host_memory"]
# Schedulers that know nothing of groups: what they decide is for the last check alone to mend.
BLIND = {"filter_scheduler": {"enabled_filters": "ComputeFilter,RetryFilter"}}


@pytest.fixture(scope="class")
def running(make_class_cloud: Make) -> Cloud:
    """Two schedulers, neither of which knows what the other has just selected."""
    quota = {"quota": {"server_groups": -1}}
    return make_class_cloud(computes=3, conductors=2, schedulers=2, config=quota)


@pytest.fixture
def cloud(running: Cloud) -> Iterator[Cloud]:
    """The cloud, which each test leaves without servers."""
    yield running
    api = running.api
    for server in api.servers():
        api.delete(server["id"])
    eventually(lambda: not api.servers(), 30.0, "all servers are gone")
    running.assert_books()


def new_group(cloud: Cloud, policy: str = "anti-affinity") -> str:
    body = {"server_group": {"name": "g", "policies": [policy]}}
    return str(cloud.api.post("/os-server-groups", body)["server_group"]["id"])


def join(cloud: Cloud, group: str, **fields: Any) -> str:
    """Ask for a member, perhaps on a host (2.74), and return its uuid."""
    api = cloud.api
    api.microversion("2.74" if "host" in fields else "2.53")
    server = {"name": "m", "flavorRef": "42", "imageRef": api.image, "networks": "none", **fields}
    body = {"server": server, "os:scheduler_hints": {"group": group}}
    return str(api.post("/servers", body)["server"]["id"])


def join_at_once(cloud: Cloud, group: str, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ask for members by separate requests at the same time; return them when they are at rest."""
    with futures.ThreadPoolExecutor(len(wanted)) as pool:
        uuids = list(pool.map(lambda fields: join(cloud, group, **fields), wanted))
    cloud.api.wait_settled(uuids)
    return [cloud.api.show(uuid) for uuid in uuids]


def play_v08(cloud: Cloud, rounds: int) -> str:
    """Create three members at once on three hosts, time and again; return the last group."""
    group = ""
    for number in range(rounds):
        group = new_group(cloud)
        servers = join_at_once(cloud, group, [{}] * 3)
        assert [s["status"] for s in servers] == ["ACTIVE"] * 3, (number, servers)
        assert sorted(s[HOST] for s in servers) == list(HOSTS), number
        if number < rounds - 1:
            for server in servers:
                cloud.api.delete(server["id"])
    return group


def failed_builds(cloud: Cloud) -> list[int]:
    """Return what each host's picture says of builds that failed by its fault."""
    rows = cloud.rows("select picture from compute_nodes order by host")
    stats = [json.loads(row["picture"]).get("stats", {}) for row in rows]
    return [int(each.get("failed_builds", 0)) for each in stats]


def act(cloud: Cloud, key: int, action: str, **values: str) -> None:
    """Do something to an aggregate."""
    cloud.api.post(f"/os-aggregates/{key}/action", {action: values})


def remove(host: str) -> dict[str, Any]:
    return {"remove_host": {"host": host}}


def service(cloud: Cloud, host: str) -> dict[str, Any]:
    found = cloud.api.get(f"/os-services?binary=nova-compute&host={host}")["services"]
    assert len(found) == 1, found
    return dict(found[0])


def switch(cloud: Cloud, host: str, status: str) -> None:
    path = f"/os-services/{service(cloud, host)['id']}"
    assert cloud.api.request("PUT", path, {"status": status}).status == 200


def nodes_of(cloud: Cloud, host: str) -> list[dict[str, Any]]:
    found = cloud.api.get("/os-hypervisors/detail")["hypervisors"]
    return [node for node in found if node["service"]["host"] == host]


class TestPlacement:
    def test_parallel_creates_keep_the_policy_v08(self, cloud: Cloud) -> None:
        group = play_v08(cloud, 3)
        server = cloud.api.wait(join(cloud, group), "ERROR")
        assert server["fault"]["message"].startswith("No valid host was found."), server["fault"]

    @pytest.mark.drill
    def test_many_parallel_creates_v08(self, cloud: Cloud, rounds: range) -> None:
        play_v08(cloud, max(20, len(rounds)))

    def test_the_very_next_request_sees_a_zone(self, cloud: Cloud) -> None:
        api = cloud.api
        key = api.post("/os-aggregates", {"aggregate": {"name": "a", **LEFT}})["aggregate"]["id"]
        for host in HOSTS:
            act(cloud, key, "add_host", host=host)
            server = api.wait(api.boot(availability_zone="left"))
            assert (server[HOST], server[ZONE]) == (host, "left")
            refused = api.request("POST", f"/os-aggregates/{key}/action", remove(host))
            assert refused.status == 409, refused
            api.delete(server["id"])
            api.wait_gone(server["id"])
            act(cloud, key, "remove_host", host=host)
            assert api.create(availability_zone="left").status == 400
        server = api.wait(api.boot(availability_zone="nova"))
        assert server[ZONE] == "nova"
        assert api.request("DELETE", f"/os-aggregates/{key}").status == 200

    def test_a_forced_host_is_taken_against_the_filters_v10(self, cloud: Cloud) -> None:
        api = cloud.api
        huge = api.flavor("huge", ram=10**6)
        switch(cloud, "compute2", "disabled")
        refused = cloud.client("eve", "p").create(availability_zone="nova:undefined")
        assert refused.status == 403 and "forced_host" in str(refused.body)
        server = api.wait(api.boot(flavor=huge, availability_zone="mars:COMPUTE2"))
        assert (server[HOST], server[ZONE]) == ("compute2", "nova")
        told = api.get(f"/servers/{server['id']}/explain")["explanation"]
        [line] = [line for line in told["more"] if "was named in the request" in line]
        for words in (
            "ComputeFilter: the host is disabled",
            "AvailabilityZoneFilter: ",
            "RamFilter: ",
        ):
            assert words in line
        violated = told["actions"][-1]["attempts"][0]["decision"]["violated"]
        assert [each["code"] for each in violated] == FORCED_CODES
        server = api.wait(api.boot(availability_zone="nova:undefined"), "ERROR")
        assert server["fault"]["message"].endswith("Host undefined was not found.")
        switch(cloud, "compute2", "enabled")

    def test_a_compute_that_was_forgotten_comes_back_empty_v23(self, cloud: Cloud) -> None:
        api = cloud.api
        key = api.post("/os-aggregates", {"aggregate": {"name": "b"}})["aggregate"]["id"]
        act(cloud, key, "add_host", host="compute3")
        server = api.wait(api.boot(availability_zone="nova:compute3"))
        former = service(cloud, "compute3")
        nodes = nodes_of(cloud, "compute3")
        path = f"/os-services/{former['id']}"
        assert api.request("DELETE", path).status == 409
        assert (service(cloud, "compute3")["id"], nodes_of(cloud, "compute3")) == (
            former["id"],
            nodes,
        )
        api.delete(server["id"])
        api.wait_gone(server["id"])
        cloud.kill("compute3")
        assert api.request("DELETE", path).status == 204
        assert nodes_of(cloud, "compute3") == []
        assert api.get(f"/os-aggregates/{key}")["aggregate"]["hosts"] == []
        cloud.start("compute3")
        [node] = eventually(lambda: nodes_of(cloud, "compute3"), 20.0, "the node is back") or []
        assert service(cloud, "compute3")["id"] != former["id"] and node["id"] != nodes[0]["id"]
        assert (node["memory_mb_used"], node["local_gb_used"], node["vcpus_used"]) == (512, 0, 0)
        api.wait(api.boot(availability_zone="nova:compute3"))

    def test_the_last_check_alone_keeps_the_policy_v08(self, cloud: Cloud) -> None:
        """The last test: from here on the schedulers are blind, and every round is a collision."""
        cloud.configure(BLIND, "scheduler1", "scheduler2")
        cloud.reload("scheduler1", "scheduler2")
        servers = join_at_once(cloud, new_group(cloud), [{}] * 3)
        assert sorted(s[HOST] for s in servers) == list(HOSTS), servers
        one_attempt = {"scheduler": {"max_attempts": 1}}
        cloud.configure(one_attempt)
        cloud.reload(*DECIDERS)
        both = [{"host": "compute1"}, {"host": "compute1"}]
        check_pair(cloud, "anti-affinity", both)
        check_pair(cloud, "affinity", [{"host": "compute1"}, {"host": "compute2"}])
        assert failed_builds(cloud) == [0, 0, 0], "no host was at fault"
        assert any(cloud.grep(name, "re-scheduled: ") for name in HOSTS)


def check_pair(cloud: Cloud, policy: str, wanted: list[dict[str, Any]]) -> None:
    """Of two members that cannot both be where they are asked for one wins, whichever."""
    servers = join_at_once(cloud, new_group(cloud, policy), wanted)
    assert sorted(s["status"] for s in servers) == ["ACTIVE", "ERROR"], servers
    [loser] = [s for s in servers if s["status"] == "ERROR"]
    assert loser["fault"]["message"].endswith(
        f"was re-scheduled: {policy.capitalize()} instance group policy was violated."
    )
    told = cloud.api.get(f"/servers/{loser['id']}/explain")["explanation"]
    assert "not allowed by the policy of its server group" in told["summary"], told
