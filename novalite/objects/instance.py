# SPDX-License-Identifier: Apache-2.0
"""A server."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from novalite.objects import base
from novalite.objects.block_device import BlockDevice
from novalite.objects.flavor import Flavor
from novalite.objects.states import PowerState, TaskState, VMState


@base.register
@dataclass(slots=True)
class NetworkInfo:
    """One interface of a server as the API shows it and the hypervisor plugs it."""

    VERSION: ClassVar[str] = "1.0"

    port_id: str
    network_id: str
    network_name: str
    mac_address: str
    fixed_ips: list[dict[str, Any]] = field(default_factory=list)
    vif_type: str = "ovs"
    owned: bool = True
    tag: str | None = None


@base.register
@dataclass(slots=True)
class InstanceFault:
    """Why a server is in ERROR; ``details`` is shown to administrators only."""

    VERSION: ClassVar[str] = "1.0"

    code: int
    message: str
    details: str = ""
    host: str | None = None
    created_at: float = 0.0


@base.register
@dataclass(slots=True)
class Instance:
    """One server; times are seconds since the epoch, UTC.

    ``action_id`` is the one open action or None. ``id`` orders servers as they were asked for.
    ``trusted_certs`` are the ids of image certificates that were asked for, or None.
    """

    VERSION: ClassVar[str] = "1.2"

    uuid: str
    project_id: str
    user_id: str
    display_name: str
    flavor: Flavor
    id: int | None = None
    hostname: str = ""
    display_description: str | None = None
    vm_state: VMState = VMState.BUILDING
    task_state: TaskState | None = TaskState.SCHEDULING
    power_state: PowerState = PowerState.NOSTATE
    host: str | None = None
    node: str | None = None
    availability_zone: str | None = None
    image_ref: str = ""
    key_name: str | None = None
    user_data: str | None = None
    config_drive: bool = False
    reservation_id: str = ""
    launch_index: int = 0
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    disk_config: str = "MANUAL"
    root_device_name: str | None = None
    locked: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    security_groups: list[str] = field(default_factory=list)
    network_info: list[NetworkInfo] = field(default_factory=list)
    created_at: float = 0.0
    updated_at: float | None = None
    launched_at: float | None = None
    terminated_at: float | None = None
    deleted_at: float | None = None
    deleted: bool = False
    action_id: int | None = None
    fault: InstanceFault | None = None
    trusted_certs: list[str] | None = None
    block_devices: list[BlockDevice] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the domain on the hypervisor."""
        return f"instance-{self.id or 0:08x}"
