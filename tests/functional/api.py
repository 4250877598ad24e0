# SPDX-License-Identifier: Apache-2.0
"""The Compute API as the tests use it: what a user does, in few words."""

from typing import Any

from novalite.devcloud.client import Answer, Client
from tests.functional.waiting import eventually

ADMIN = "admin:admin"
FLAVOR = {"name": "m1.nano", "id": "42", "vcpus": 1, "ram": 64, "disk": 1}
NANO = "42"
# Believed as it is where no image service is configured.
IMAGE = "11111111-2222-4333-8444-555555555555"


class Api(Client):
    """A client with a token and a microversion.

    With noauth2 the token USER:PROJECT is believed; the user ``admin`` is an administrator.
    """

    def __init__(
        self, url: str, token: str = ADMIN, microversion: str = "2.53", image: str = IMAGE
    ):
        super().__init__(url, {"X-Auth-Token": token})
        self.image = image
        self.microversion(microversion)

    def microversion(self, number: str) -> None:
        """Ask for this microversion from now on."""
        self.headers["OpenStack-API-Version"] = f"compute {number}"

    def flavor(self, name: str, *, vcpus: int = 1, ram: int = 64, disk: int = 1) -> str:
        """Create a flavor and return its id."""
        body = {"flavor": {"name": name, "vcpus": vcpus, "ram": ram, "disk": disk}}
        return str(self.post("/flavors", body)["flavor"]["id"])

    def create(self, name: str = "vm", *, flavor: str = NANO, **fields: Any) -> Answer:
        """POST /servers and return the answer; *fields* go into the server."""
        server = {
            "name": name,
            "flavorRef": flavor,
            "imageRef": self.image,
            "networks": "none",
            **fields,
        }
        return self.request("POST", "/servers", {"server": server})

    def boot(self, name: str = "vm", *, flavor: str = NANO, **fields: Any) -> str:
        """Ask for a server and return its uuid."""
        answer = self.create(name, flavor=flavor, **fields)
        assert answer.status == 202, answer
        return str(answer.body["server"]["id"])

    def boot_many(self, count: int, **fields: Any) -> list[str]:
        """Ask for *count* servers in one request and return their uuids."""
        fields = {"min_count": count, "max_count": count, "return_reservation_id": True, **fields}
        answer = self.create(**fields)
        assert answer.status == 202, answer
        reservation = answer.body["reservation_id"]
        found = self.get(f"/servers?reservation_id={reservation}")["servers"]
        return [server["id"] for server in found]

    def show(self, uuid: str) -> dict[str, Any]:
        """Return the server."""
        server: dict[str, Any] = self.get(f"/servers/{uuid}")["server"]
        return server

    def servers(self, query: str = "") -> list[dict[str, Any]]:
        """Return all servers with details."""
        found: list[dict[str, Any]] = self.get(f"/servers/detail{query}")["servers"]
        return found

    def delete(self, uuid: str) -> None:
        """Ask for the server's end."""
        answer = self.request("DELETE", f"/servers/{uuid}")
        assert answer.status == 204, answer

    def actions(self, uuid: str) -> list[dict[str, Any]]:
        """Return the server's history, the latest action first."""
        found: list[dict[str, Any]] = self.get(f"/servers/{uuid}/os-instance-actions")[
            "instanceActions"
        ]
        return found

    def action(self, uuid: str, request_id: str) -> dict[str, Any]:
        """Return one action with its events."""
        path = f"/servers/{uuid}/os-instance-actions/{request_id}"
        found: dict[str, Any] = self.get(path)["instanceAction"]
        return found

    def services(self) -> dict[tuple[str, str], str]:
        """Return (binary, host): up or down."""
        found = self.get("/os-services")["services"]
        return {(item["binary"], item["host"]): item["state"] for item in found}

    def wait(self, uuid: str, status: str = "ACTIVE", timeout: float = 30.0) -> dict[str, Any]:
        """Wait for a status and return the server; ERROR ends the wait for anything else."""

        def reached() -> dict[str, Any] | None:
            server = self.show(uuid)
            if server["status"] == "ERROR" and status != "ERROR":
                raise RuntimeError(f"server {uuid} is in ERROR: {server.get('fault')}")
            at_rest = server["OS-EXT-STS:task_state"] is None
            return server if server["status"] == status and at_rest else None

        return eventually(reached, timeout, f"server {uuid} is {status}") or {}

    def wait_gone(self, uuid: str, timeout: float = 30.0) -> None:
        """Wait until the server is unknown."""
        eventually(
            lambda: self.request("GET", f"/servers/{uuid}").status == 404,
            timeout,
            f"{uuid} is gone",
        )

    def wait_settled(self, uuids: list[str], timeout: float = 60.0) -> dict[str, str]:
        """Wait until no server is being built; return uuid: status."""

        def settled() -> dict[str, str] | None:
            found = {server["id"]: server["status"] for server in self.servers()}
            chosen = {uuid: found.get(uuid, "DELETED") for uuid in uuids}
            return None if "BUILD" in chosen.values() else chosen

        return eventually(settled, timeout, "no server is in BUILD") or {}
