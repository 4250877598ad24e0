# SPDX-License-Identifier: Apache-2.0
"""The boot map: one boot through four processes, as its user, an administrator and the logs see it.

The steps are those of the table that opens ``conductor/tasks/build_instances.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from novalite.devcloud.client import Answer, Client, password_token
from novalite.objects import base
from novalite.objects.decision import Decision
from tests.functional import faults, history, lines
from tests.functional.cloud import PASSWORDS, Cloud
from tests.functional.waiting import eventually

Make = Callable[..., Cloud]
State = tuple[str, str | None]

# What a boot may show of itself, in this order; a state may be too short to be seen.
STATES: list[State] = [
    ("BUILD", "scheduling"),
    ("BUILD", None),
    ("BUILD", "networking"),
    ("BUILD", "spawning"),
    ("ACTIVE", None),
]
EVENTS = [
    "conductor_schedule_and_build_instances",
    "compute_claim",
    "compute__do_build_and_run_instance",
    "compute_network",
    "compute_spawn",
]
SPAWN_DELAY = 1.0


@dataclass
class Boot:
    """One boot of the user demo, watched until it was ACTIVE."""

    cloud: Cloud
    answer: Answer
    states: list[State] = field(default_factory=list)
    # The history as it was while the guest was being made.
    at_work: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        """The server."""
        return str(self.answer.body["server"]["id"])

    @property
    def request_id(self) -> str:
        """The request that made it."""
        return self.answer.headers["x-openstack-request-id"]

    def watch(self) -> None:
        """Note every state until the server is ACTIVE."""
        api = self.cloud.client("demo", "demo")

        def active() -> bool:
            self.server = api.show(self.uuid)
            state = (self.server["status"], self.server["OS-EXT-STS:task_state"])
            if not self.states or self.states[-1] != state:
                self.states.append(state)
            if state == ("BUILD", "spawning") and not self.at_work:
                self.at_work = api.action(self.uuid, self.request_id)
            return state == ("ACTIVE", None)

        eventually(active, 30.0, f"server {self.uuid} is ACTIVE")

    def ports(self) -> list[dict[str, Any]]:
        """Return the server's ports as the network service has them."""
        endpoints = self.cloud.endpoints
        token = password_token(endpoints.auth_url, "admin", PASSWORDS["admin"], "admin")
        client = Client(endpoints.network_url, {"X-Auth-Token": token})
        found: list[dict[str, Any]] = client.get(f"/v2.0/ports?device_id={self.uuid}")["ports"]
        return found


@pytest.fixture(scope="class")
def boot(make_class_cloud: Make) -> Boot:
    cloud = make_class_cloud(auth="keystone", config={"fake_libvirt": {"spawn_delay": SPAWN_DELAY}})
    demo = cloud.client("demo", "demo")
    answer = demo.create("web", networks="auto", metadata={"role": "web"})
    made = Boot(cloud, answer)
    made.watch()
    return made


class TestBoot:
    """One server comes, is looked at from all sides, and goes."""

    def test_the_answer(self, boot: Boot) -> None:
        server = boot.answer.body["server"]
        assert boot.answer.status == 202
        assert boot.answer.headers["location"] == server["links"][0]["href"]
        assert boot.answer.headers["x-compute-request-id"] == boot.request_id

    def test_every_step_is_in_the_logs_under_one_request_id(self, boot: Boot) -> None:
        found = [line for line in lines.read(boot.cloud) if line.request == boot.request_id]
        assert lines.steps(found) == [
            (1, "api"),
            (2, "conductor"),
            (3, "scheduler"),
            (4, "conductor"),
            (5, "compute1"),
        ]
        told = [line for line in found if line.text.startswith("step=")]
        assert {line.instance for line in told} == {boot.uuid}
        server = boot.server
        owner = [server["user_id"], server["tenant_id"], "-"]
        assert [line.columns.split()[:3] for line in told] == [owner] * 5

    def test_states_while_it_is_built(self, boot: Boot) -> None:
        assert boot.states == [state for state in STATES if state in boot.states]
        assert ("BUILD", "spawning") in boot.states

    def test_events_while_it_is_built(self, boot: Boot) -> None:
        events = {event["event"]: event for event in boot.at_work["events"]}
        assert list(events) == EVENTS
        unfinished = [name for name, event in events.items() if event["finish_time"] is None]
        assert unfinished == ["compute__do_build_and_run_instance", "compute_spawn"]
        assert {events[name]["result"] for name in unfinished} == {None}

    def test_its_history(self, boot: Boot) -> None:
        admin, demo = boot.cloud.api, boot.cloud.client("demo", "demo")
        (action,) = demo.actions(boot.uuid)
        assert (action["action"], action["request_id"]) == ("create", boot.request_id)
        for api, more in ((demo, set()), (admin, {"traceback"})):
            events = api.action(boot.uuid, boot.request_id)["events"]
            assert [event["event"] for event in events] == EVENTS
            assert {event["result"] for event in events} == {"Success"}
            assert all(event["start_time"] <= event["finish_time"] for event in events)
            for event in events:
                assert set(event) == {"event", "start_time", "finish_time", "result"} | more

    def test_why_it_came_to_this_host_is_kept(self, boot: Boot) -> None:
        events = history.events(boot.cloud, boot.uuid)
        assert {event.name: event.host for event in events} == {
            name: "controller" if name.startswith("conductor") else "compute1" for name in EVENTS
        }
        details = {event.name: event.details for event in events}
        decision = base.decode(details[EVENTS[0]]["decision"])
        assert isinstance(decision, Decision)
        assert (decision.hosts, decision.survivors, decision.host) == (1, 1, "compute1")
        assert decision.need == (64, 1, 1)
        assert details["compute_claim"]["memory"] == {
            "requested": 64,
            "total": 16384,
            "used": 512,
            "limit": 24576.0,
        }

    def test_what_its_user_sees(self, boot: Boot) -> None:
        server = boot.server
        assert server["name"] == "web" and server["metadata"] == {"role": "web"}
        assert server["OS-EXT-STS:power_state"] == 1
        assert server["OS-EXT-AZ:availability_zone"] == "nova"
        assert server["flavor"]["original_name"] == "m1.nano"
        assert server["hostId"] and server["OS-SRV-USG:launched_at"]
        assert "fault" not in server
        assert not [key for key in server if key.startswith("OS-EXT-SRV-ATTR:")]
        (address,) = server["addresses"]["private"]
        assert address["version"] == 4

    def test_what_an_administrator_sees(self, boot: Boot) -> None:
        server = boot.cloud.api.show(boot.uuid)
        seen = {key.partition(":")[2]: value for key, value in server.items() if "ATTR" in key}
        assert (seen["host"], seen["hypervisor_hostname"]) == ("compute1", "compute1")
        assert seen["instance_name"] == "instance-00000001"
        assert seen["root_device_name"] == "/dev/vda"

    def test_its_port(self, boot: Boot) -> None:
        (port,) = boot.ports()
        (address,) = boot.server["addresses"]["private"]
        assert port["binding:host_id"] == "compute1"
        assert port["mac_address"] == address["OS-EXT-IPS-MAC:mac_addr"]
        assert [ip["ip_address"] for ip in port["fixed_ips"]] == [address["addr"]]

    def test_the_books(self, boot: Boot) -> None:
        rows = boot.cloud.rows("select consumer, node, resource_class, used from allocations")
        assert {(row["resource_class"], row["used"]) for row in rows} == {
            ("VCPU", 1),
            ("MEMORY_MB", 64),
            ("DISK_GB", 1),
        }
        assert {(row["consumer"], row["node"]) for row in rows} == {(boot.uuid, "compute1")}
        boot.cloud.assert_books()

    @pytest.mark.parametrize(("length", "count"), [(None, None), (2, 2), (0, 0)])
    def test_console_output(self, boot: Boot, length: int | None, count: int | None) -> None:
        body = {"os-getConsoleOutput": {} if length is None else {"length": length}}
        api = boot.cloud.client("demo", "demo")
        output = api.post(f"/servers/{boot.uuid}/action", body)["output"]
        if count is None:
            assert boot.uuid in output and output.rstrip().endswith("login:")
        else:
            assert len(output.splitlines()) == count

    def test_delete_leaves_only_the_history(self, boot: Boot) -> None:
        cloud, demo = boot.cloud, boot.cloud.client("demo", "demo")
        answer = demo.request("DELETE", f"/servers/{boot.uuid}")
        assert (answer.status, answer.body) == (204, None)
        demo.wait_gone(boot.uuid)
        assert cloud.assert_books().servers == {}
        assert cloud.rows("select * from allocations") == []
        assert faults.hosts_of(cloud, boot.uuid) == []
        assert boot.ports() == []
        left = [
            path for path in (cloud.directory / "compute1").rglob("*") if boot.uuid in str(path)
        ]
        assert left == []
        names = [(action["action"], action["request_id"]) for action in demo.actions(boot.uuid)]
        deleting = answer.headers["x-openstack-request-id"]
        assert names == [("delete", deleting), ("create", boot.request_id)]
        demo.microversion("2.20")
        assert demo.request("GET", f"/servers/{boot.uuid}/os-instance-actions").status == 404
