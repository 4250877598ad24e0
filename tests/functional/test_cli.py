# SPDX-License-Identifier: Apache-2.0
"""What an unmodified ``openstack`` client does with a cloud and its neighbours, with real tokens.

Each command is a process that takes a second or two of the machine, so there are no more than
needed, and those that only look run side by side.
"""

import json
import os
import subprocess
from collections.abc import Callable
from concurrent import futures
from typing import Any

import pytest

from novalite.devcloud import configuration
from novalite.devcloud.errors import ServiceError
from novalite.devcloud.services import find_program
from tests.functional.cloud import PASSWORDS, Cloud

Make = Callable[..., Cloud]

NAME = "web"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN1uKmuHJochoaji53iDlBgUKicsU6Ee9sY3cUCZKyXl demo@box"
FINGERPRINT = "d3:f3:71:29:de:36:c4:6c:94:99:d6:ae:ea:ff:6f:9f"


class Client:
    """The real command as the administrator or as the user demo."""

    def __init__(self, cloud: Cloud):
        try:
            self._program = find_program("openstack")
        except ServiceError as error:
            pytest.skip(str(error))
        accounts = {user: (user, user, PASSWORDS[user]) for user in ("admin", "demo")}
        file = cloud.directory / "clouds.yaml"
        file.write_text(configuration.clouds_yaml(cloud.endpoints, accounts))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        self._environment = kept | {
            "OS_CLIENT_CONFIG_FILE": str(file),
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def text(self, command: str, user: str = "demo") -> str:
        """Run a command that must succeed and return what it prints."""
        done = subprocess.run(
            [self._program, "--os-cloud", user, *command.split()],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def data(self, command: str, user: str = "demo") -> Any:
        """Run a command that must succeed and return its JSON."""
        return json.loads(self.text(f"{command} -f json", user))

    def look(self, *commands: str, user: str = "demo") -> dict[str, Any]:
        """Run several commands side by side and return the JSON of each."""
        with futures.ThreadPoolExecutor(2) as pool:
            found = pool.map(lambda command: self.data(command, user), commands)
            return dict(zip(commands, found, strict=True))


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    return make_class_cloud(auth="keystone", computes=2)


@pytest.fixture(scope="class")
def client(cloud: Cloud) -> Client:
    return Client(cloud)


@pytest.fixture(scope="class")
def before(client: Client, cloud: Cloud) -> dict[str, Any]:
    """What demo makes before the server, by command: a key pair and a server group."""
    file = cloud.directory / "mine.pub"
    file.write_text(f"{KEY}\n")
    made = client.look(
        f"keypair create --public-key {file} mine",
        "server group create --policy anti-affinity webs",
    )
    return {" ".join(command.split()[:2]): answer for command, answer in made.items()}


@pytest.fixture(scope="class")
def server(client: Client, before: dict[str, Any]) -> dict[str, Any]:
    """A server of demo on the network with a key pair and in a group, made as a user does it."""
    made: dict[str, Any] = client.data(
        "server create --image cirros --flavor m1.nano --network private --key-name mine "
        f"--hint group={before['server group']['id']} --wait {NAME}"
    )
    return made


@pytest.fixture(scope="class")
def seen(client: Client, server: dict[str, Any]) -> dict[str, Any]:
    """What demo sees while the server runs, by command."""
    return client.look(
        "server list --long",
        f"server show {NAME}",
        f"server event list {NAME}",
        "keypair list",
        "server group show webs",
        "usage show",
        "availability zone list --compute",
    )


@pytest.fixture(scope="class")
def overview(client: Client, cloud: Cloud) -> dict[str, Any]:
    """What an administrator sees after the service of compute1 was disabled, by command."""
    disable = "compute service set --disable --disable-reason disk compute1 nova-compute"
    client.text(disable, "admin")
    return client.look(
        "flavor create --ram 128 --vcpus 2 --disk 3 m1.micro",
        "flavor list",
        "hypervisor list",
        "hypervisor stats show",
        "compute service list --long",
        user="admin",
    )


class TestClient:
    """What demo does, from the first server to its end, and then an administrator."""

    def test_create(self, server: dict[str, Any]) -> None:
        assert (server["name"], server["status"]) == (NAME, "ACTIVE")
        assert server["OS-EXT-STS:power_state"] in ("Running", 1)
        assert list(server["addresses"]) == ["private"]

    def test_list_long(self, seen: dict[str, Any], server: dict[str, Any]) -> None:
        (row,) = seen["server list --long"]
        assert (row["ID"], row["Name"], row["Status"]) == (server["id"], NAME, "ACTIVE")
        assert (row["Task State"], row["Image Name"]) == (None, "cirros")
        assert row["Power State"] in ("Running", 1)
        assert row["Networks"] == server["addresses"]

    def test_show(self, seen: dict[str, Any], server: dict[str, Any]) -> None:
        shown = seen[f"server show {NAME}"]
        assert (shown["id"], shown["status"]) == (server["id"], "ACTIVE")
        assert shown["addresses"] == server["addresses"]

    def test_its_history(self, client: Client, seen: dict[str, Any]) -> None:
        (action,) = seen[f"server event list {NAME}"]
        assert action["Action"] == "create"
        event = client.data(f"server event show {NAME} {action['Request ID']}")
        assert (event["action"], event["request_id"]) == ("create", action["Request ID"])
        names = [step["event"] for step in event["events"]]
        assert names[0] == "conductor_schedule_and_build_instances"
        assert "compute__do_build_and_run_instance" in names

    def test_console_log(self, client: Client, server: dict[str, Any]) -> None:
        text = client.text(f"console log show --lines 3 {NAME}")
        assert text.rstrip().endswith("login:")
        assert len(text.rstrip().splitlines()) <= 3

    def test_zones(self, seen: dict[str, Any]) -> None:
        zones = seen["availability zone list --compute"]
        assert zones == [{"Zone Name": "nova", "Zone Status": "available"}]

    def test_key_pair(self, before: dict[str, Any], seen: dict[str, Any]) -> None:
        assert before["keypair create"]["fingerprint"] == FINGERPRINT
        (row,) = seen["keypair list"]
        assert (row["Name"], row["Fingerprint"], row["Type"]) == ("mine", FINGERPRINT, "ssh")
        assert seen[f"server show {NAME}"]["key_name"] == "mine"

    def test_server_group(self, server: dict[str, Any], seen: dict[str, Any]) -> None:
        group = seen["server group show webs"]
        assert (group["policy"], group["members"]) == ("anti-affinity", [server["id"]])

    def test_usage(self, server: dict[str, Any], seen: dict[str, Any]) -> None:
        (one,) = seen["usage show"]["Servers"]
        assert (one["instance_id"], one["memory_mb"], one["ended_at"]) == (server["id"], 64, None)
        assert seen["usage show"]["RAM MB-Hours"] == pytest.approx(64 * one["hours"])
        assert 0 < one["hours"] < 1

    def test_delete(self, cloud: Cloud, client: Client, server: dict[str, Any]) -> None:
        client.text(f"server delete --wait {NAME}")
        assert cloud.assert_books().servers == {}
        assert client.data("server group show webs")["members"] == []
        client.text("keypair delete mine")

    def test_boot_from_a_volume(self, cloud: Cloud, client: Client) -> None:
        made = client.data(
            "server create --image cirros --boot-from-volume 1 --flavor m1.nano "
            "--network private --wait durable"
        )
        assert (made["status"], made["image"]) == ("ACTIVE", "N/A (booted from volume)")
        (volume,) = client.data("volume list")
        assert (volume["Status"], volume["Size"]) == ("in-use", 1)
        assert [each["id"] for each in made["volumes_attached"]] == [volume["ID"]]
        assert [each["device"] for each in volume["Attached to"]] == ["/dev/vda"]
        books = cloud.assert_books()
        assert list(books.servers) == [made["id"]]
        client.text("server delete --wait durable")
        assert cloud.assert_books().servers == {}
        # It was made without delete_on_termination, so it is the user's now.
        assert client.data("volume list")[0]["Status"] == "available"
        client.text(f"volume delete {volume['ID']}")

    def test_services(self, overview: dict[str, Any]) -> None:
        rows = overview["compute service list --long"]
        found = {(row["Binary"], row["Host"]): row for row in rows}
        assert set(found) == {
            ("nova-conductor", "controller"),
            ("nova-scheduler", "controller"),
            ("nova-compute", "compute1"),
            ("nova-compute", "compute2"),
        }
        assert {row["State"] for row in rows} == {"up"}
        first = found["nova-compute", "compute1"]
        assert (first["Status"], first["Disabled Reason"]) == ("disabled", "disk")
        assert found["nova-compute", "compute2"]["Status"] == "enabled"

    def test_hypervisors(self, overview: dict[str, Any]) -> None:
        rows = overview["hypervisor list"]
        found = [(row["Hypervisor Hostname"], row["Hypervisor Type"], row["State"]) for row in rows]
        assert sorted(found) == [("compute1", "QEMU", "up"), ("compute2", "QEMU", "up")]
        sums = overview["hypervisor stats show"]
        assert (sums["count"], sums["vcpus"], sums["memory_mb"]) == (1, 8, 16384)

    def test_flavors(self, overview: dict[str, Any]) -> None:
        made = overview["flavor create --ram 128 --vcpus 2 --disk 3 m1.micro"]
        assert (made["ram"], made["vcpus"], made["disk"]) == (128, 2, 3)
        rows = {row["Name"]: row for row in overview["flavor list"]}
        assert (rows["m1.nano"]["RAM"], rows["m1.nano"]["VCPUs"]) == (64, 1)

    def test_a_named_host_without_a_network(
        self, cloud: Cloud, client: Client, overview: dict[str, Any]
    ) -> None:
        # compute1 is disabled; naming it is stronger.
        command = (
            "server create --image cirros --flavor m1.nano --nic none "
            "--availability-zone nova:compute1 --wait forced"
        )
        made = client.data(command, "admin")
        assert made["status"] == "ACTIVE"
        assert made["OS-EXT-SRV-ATTR:host"] == "compute1"
        assert made["addresses"] == {}
        assert len(cloud.assert_books().servers) == 1
