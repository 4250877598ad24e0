# SPDX-License-Identifier: Apache-2.0
"""What POST /servers asks for, read from a body that already fits its schema.

Everything that can be refused by looking at the body alone is refused here; what needs the
database or a neighbour is in :mod:`novalite.api.operations`. A field is never ignored: it works,
or it is refused with a text that says so.
"""

import ipaddress
import re
import secrets
import string
from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg

from novalite import exception
from novalite.api import block_devices, paging, zones
from novalite.api.schemas import servers as schemas
from novalite.objects.request_spec import NetworkRequest

_PASSWORD_LENGTH = 12
_PASSWORD_LETTERS = "".join(
    char for char in string.ascii_letters + string.digits if char not in "0O1lI"
)


@dataclass(slots=True)
class ServerRequest:
    """One request for ``count`` equal servers, or as many as quotas allow but at least ``least``;
    ``networks`` None is "auto", [] "none"."""

    name: str
    flavor_id: str
    disks: block_devices.Disks
    zone: zones.Wanted
    least: int = 1
    count: int = 1
    networks: list[NetworkRequest] | None = None
    security_groups: list[str] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    hints: dict[str, Any] = field(default_factory=dict)
    key_name: str | None = None
    trusted_certs: list[str] | None = None
    host: str | None = None
    hypervisor_hostname: str | None = None
    description: str | None = None
    user_data: str | None = None
    config_drive: bool = False
    admin_password: str = ""
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    disk_config: str = "MANUAL"
    return_reservation_id: bool = False


def parse(conf: cfg.ConfigOpts, body: dict[str, Any], version: int) -> ServerRequest:
    """Read a create body.

    :raises exception.Invalid: something cannot be had
    """
    server = body["server"]
    _refuse_unsupported(server)
    least, count = _counts(server)
    request = ServerRequest(
        name=server["name"],
        flavor_id=str(server["flavorRef"]),
        disks=block_devices.parse(server, count),
        zone=zones.parse(server.get("availability_zone"), conf.default_schedule_zone),
        least=least,
        count=count,
        networks=_networks(server, count),
        security_groups=_security_groups(server),
        metadata=server.get("metadata", {}),
        tags=sorted(set(server.get("tags", ()))),
        hints=_hints(body),
        key_name=server.get("key_name"),
        trusted_certs=server.get("trusted_image_certificates"),
        host=server.get("host"),
        hypervisor_hostname=server.get("hypervisor_hostname"),
        description=server.get("description"),
        user_data=server.get("user_data") or None,
        config_drive=truth("config_drive", server.get("config_drive")),
        admin_password=server.get("adminPass") or _password(),
        disk_config=server.get("OS-DCF:diskConfig", "MANUAL"),
        return_reservation_id=truth("return_reservation_id", server.get("return_reservation_id")),
    )
    request.access_ip_v4 = address(server.get("accessIPv4"))
    request.access_ip_v6 = address(server.get("accessIPv6"))
    if version < 19:
        request.description = request.name
    return request


def _counts(server: dict[str, Any]) -> tuple[int, int]:
    """Return how many servers are wanted, at least and at best.

    :raises exception.InvalidInput: min_count is above max_count or above what one request may ask
    """
    least = int(server.get("min_count", 1))
    most = int(server.get("max_count", least))
    if least > most:
        raise exception.InvalidInput("min_count must be <= max_count")
    if least > schemas.MAX_COUNT:
        raise exception.InvalidInput(f"min_count must be <= {schemas.MAX_COUNT}")
    return least, min(most, schemas.MAX_COUNT)


def truth(name: str, value: Any) -> bool:
    """Read yes or no from a body; absent and null are no."""
    if isinstance(value, str):
        return paging.boolean(name, value)
    return bool(value)


def address(text: str | None) -> str | None:
    """Return an address in its shortest form (IPv6 compressed); "" is none."""
    return str(ipaddress.ip_address(text)) if text else None


def _refuse_unsupported(server: dict[str, Any]) -> None:
    if server.get("personality"):
        raise exception.InvalidInput("personality (file injection) is not supported by this cloud.")


def _networks(server: dict[str, Any], count: int) -> list[NetworkRequest] | None:
    asked = server.get("networks")
    if asked == "none":
        return []
    if asked == "auto" or not asked:
        # Up to 2.36 no networks, and an empty list too, mean whatever the project has; from 2.37
        # on an empty list means the same, only leaving the field out is refused.
        return None
    requests = []
    for entry in asked:
        port, fixed_ip = entry.get("port"), entry.get("fixed_ip")
        if port and fixed_ip:
            raise exception.InvalidInput(
                f"Specified Fixed IP '{fixed_ip}' cannot be used with port '{port}': the two "
                "cannot be specified together."
            )
        if not port and not entry.get("uuid"):
            raise exception.InvalidInput("Bad network format: missing 'uuid'")
        if count > 1 and port:
            raise exception.InvalidInput(
                "Unable to launch multiple instances with a single configured port ID. Please "
                "launch your instance one by one with different ports."
            )
        if count > 1 and fixed_ip:
            raise exception.InvalidInput(
                "Invalid fixed_ip: max_count cannot be greater than 1 if an fixed_ip is specified."
            )
        requests.append(
            NetworkRequest(
                network_id=None if port else entry["uuid"],
                port_id=port,
                fixed_ip=address(fixed_ip),
                tag=entry.get("tag"),
            )
        )
    ports = [request.port_id for request in requests if request.port_id]
    if len(ports) != len(set(ports)):
        raise exception.InvalidInput("One port cannot be used twice.")
    return requests


def _security_groups(server: dict[str, Any]) -> list[str]:
    names = [group["name"] for group in server.get("security_groups", ()) if group.get("name")]
    return list(dict.fromkeys(names)) or ["default"]


def _hints(body: dict[str, Any]) -> dict[str, Any]:
    return {**body.get("OS-SCH-HNT:scheduler_hints", {}), **body.get("os:scheduler_hints", {})}


def _password() -> str:
    """Return a password with a capital, a small letter and a digit, without look-alikes."""
    while True:
        # One draw for the whole word: each draw is a call of the system.
        number, letters = secrets.randbelow(len(_PASSWORD_LETTERS) ** _PASSWORD_LENGTH), []
        for _ in range(_PASSWORD_LENGTH):
            number, index = divmod(number, len(_PASSWORD_LETTERS))
            letters.append(_PASSWORD_LETTERS[index])
        word = "".join(letters)
        if re.search("[A-Z]", word) and re.search("[a-z]", word) and re.search("[0-9]", word):
            return word


def names(name: str, count: int) -> list[str]:
    """Return the display names: several servers are numbered from 1, cut to 255 characters."""
    if count == 1:
        return [name]
    tails = [f"-{number}" for number in range(1, count + 1)]
    return [name[: 255 - len(tail)] + tail for tail in tails]


def hostname(name: str, uuid: str) -> str:
    """Return a valid host name made from a display name, 63 characters at most."""
    text = name.encode("latin-1", "ignore").decode("latin-1")[:63]
    text = re.sub(r"[._\s]", "-", text)
    text = re.sub(r"[^\w-]+", "", text, flags=re.ASCII).lower().strip("-")
    return text or f"Server-{uuid}"
