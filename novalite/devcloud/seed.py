# SPDX-License-Identifier: Apache-2.0
"""What ``novalite up`` asks of the running cloud: are all services up, and the first flavors.

Goes through the Compute API, as any user does.
"""

import time
from collections.abc import Iterable

from novalite.devcloud.client import Client
from novalite.devcloud.errors import ClientError

# name, id, vcpus, memory in MB, disk in GB
FLAVORS = (
    ("m1.nano", "42", 1, 64, 1),
    ("m1.tiny", "1", 1, 512, 1),
    ("m1.small", "2", 1, 2048, 20),
)


def wait_services_up(
    compute: Client, wanted: Iterable[tuple[str, str]], timeout: float
) -> list[tuple[str, str]]:
    """Wait until the API shows each (binary, host) as up; return those that stay away."""
    end = time.monotonic() + timeout
    while True:
        listed = compute.get("/os-services")["services"]
        up = {(item["binary"], item["host"]) for item in listed if item["state"] == "up"}
        missing = [service for service in wanted if service not in up]
        if not missing or time.monotonic() > end:
            return missing
        time.sleep(0.05)


def create_flavors(compute: Client) -> list[str]:
    """Create those of the first flavors that are not there; return their names."""
    there = {item["name"] for item in compute.get("/flavors")["flavors"]}
    created = []
    for name, flavor_id, vcpus, memory, disk in FLAVORS:
        if name in there:
            continue
        flavor = {"name": name, "id": flavor_id, "vcpus": vcpus, "ram": memory, "disk": disk}
        answer = compute.request("POST", "/flavors", {"flavor": flavor})
        # 409: the id is used by a flavor of another name, which its owner wants to keep.
        if answer.status >= 400 and answer.status != 409:
            raise ClientError(f"flavor {name} was refused with {answer.status}: {answer.body}")
        created.append(name)
    return created
