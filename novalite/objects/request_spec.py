# SPDX-License-Identifier: Apache-2.0
"""What was asked for: everything the scheduler and the compute need to know of a request."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from novalite.objects import base
from novalite.objects.flavor import Flavor


@base.register
@dataclass(slots=True)
class ImageMeta:
    """The image as it was when the server was asked for; ``properties`` are the free ones."""

    VERSION: ClassVar[str] = "1.0"

    id: str = ""
    name: str = ""
    min_ram: int = 0
    min_disk: int = 0
    size: int = 0
    disk_format: str = ""
    container_format: str = ""
    properties: dict[str, Any] = field(default_factory=dict)


@base.register
@dataclass(slots=True)
class NetworkRequest:
    """One wanted network interface; a port that the user brought is not deleted with the server."""

    VERSION: ClassVar[str] = "1.0"

    network_id: str | None = None
    port_id: str | None = None
    fixed_ip: str | None = None
    tag: str | None = None


@base.register
@dataclass(slots=True)
class InstanceGroup:
    """The server group of the asked-for server, as it is at the moment of asking for a host.

    ``placed`` are its other members that have a service host: uuid to host.
    """

    VERSION: ClassVar[str] = "1.0"

    uuid: str
    policy: str
    rules: dict[str, int] = field(default_factory=dict)
    placed: dict[str, str] = field(default_factory=dict)


@base.register
@dataclass(slots=True)
class RequestSpec:
    """One request for one server.

    ``force_host``/``force_node`` come from ``availability_zone=ZONE:HOST:NODE``: filters are
    skipped and no limits are set. ``requested_host``/``requested_node`` name the one place that
    may be chosen, if it passes all filters. ``ignore_hosts`` are the hosts where this server really
    failed. ``networks`` is None for "auto" (all networks of the project), [] for "none".
    The conductor fills in ``instance_group`` and ``hinted_hosts`` just before it asks for a host:
    the latter are the service hosts of the servers (uuid) that the hints same_host and
    different_host name.
    """

    VERSION: ClassVar[str] = "1.2"

    instance_uuid: str
    project_id: str
    user_id: str
    flavor: Flavor
    image: ImageMeta = field(default_factory=ImageMeta)
    volume_backed: bool = False
    availability_zone: str | None = None
    force_host: str | None = None
    force_node: str | None = None
    ignore_hosts: list[str] = field(default_factory=list)
    scheduler_hints: dict[str, Any] = field(default_factory=dict)
    networks: list[NetworkRequest] | None = field(default_factory=list)
    security_groups: list[str] = field(default_factory=list)
    requested_host: str | None = None
    requested_node: str | None = None
    instance_group: InstanceGroup | None = None
    hinted_hosts: dict[str, str] = field(default_factory=dict)


@base.register
@dataclass(slots=True)
class Generation:
    """Which picture of a host: the service's epoch and its report counter. Later is greater."""

    VERSION: ClassVar[str] = "1.0"

    epoch: int = 0
    counter: int = 0

    def newer_than(self, other: "Generation") -> bool:
        """Tell whether this picture was made after *other*."""
        return (self.epoch, self.counter) > (other.epoch, other.counter)

    def text(self) -> str:
        """Return it as it is shown: "epoch.counter"."""
        return f"{self.epoch}.{self.counter}"


@base.register
@dataclass(slots=True)
class Limits:
    """What the scheduler allows on the chosen host; None is unlimited.

    ``generation`` and ``age`` (seconds) tell from which picture of the host they were computed.
    """

    VERSION: ClassVar[str] = "1.0"

    memory_mb: float | None = None
    disk_gb: float | None = None
    vcpu: float | None = None
    generation: Generation = field(default_factory=Generation)
    age: float = 0.0

    def as_dict(self) -> dict[str, float]:
        """Return the set limits under Nova's names; ``{}`` when all are unlimited."""
        named = (("memory_mb", self.memory_mb), ("disk_gb", self.disk_gb), ("vcpu", self.vcpu))
        return {name: value for name, value in named if value is not None}


@base.register
@dataclass(slots=True)
class Selection:
    """One chosen host with the limits to be kept there."""

    VERSION: ClassVar[str] = "1.0"

    host: str
    node: str
    limits: Limits = field(default_factory=Limits)
    zone: str = ""
