# SPDX-License-Identifier: Apache-2.0
"""Servers as JSON, for the microversion asked; made of rows of db/instance_queries.

One view serves one request and remembers what the servers of a page share (flavors, images,
hosts), because a page may have a thousand of them.
"""

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from novalite import context as context_module
from novalite.api import http, links, times
from novalite.api.views import volume_attachments
from novalite.objects import base
from novalite.objects.flavor import Flavor
from novalite.objects.instance import Instance, InstanceFault
from novalite.objects.states import STATUS, VMState

Json = dict[str, Any]

# Statuses that show how far something has come.
_PROGRESS = frozenset(("ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING"))
_STATUS: dict[str, str] = {state.value: status for state, status in STATUS.items()}
# API status, lower case -> the vm_states that show it; for the status filter.
STATES: dict[str, list[str]] = {}
for _state, _word in STATUS.items():
    STATES.setdefault(_word.lower(), []).append(_state.value)


def status(vm_state: str) -> str:
    """Return the API's word for the state of a server."""
    return _STATUS.get(vm_state, "UNKNOWN")


@functools.lru_cache(maxsize=4096)
def host_id(project_id: str, host: str) -> str:
    """Return the opaque name under which a project sees a host."""
    return hashlib.sha224(f"{project_id}{host}".encode()).hexdigest()


def addresses(network_info: str, *, extended: bool = True) -> dict[str, list[Json]]:
    """Return the fixed addresses by network name, from the column's text.

    The wire form is read as it is: making objects of it would be a third of a long list's time.
    """
    found: dict[str, list[Json]] = {}
    if network_info == "[]":
        return found
    for interface in json.loads(network_info):
        entries = found.setdefault(interface["network_name"], [])
        for fixed in interface["fixed_ips"]:
            text = str(fixed.get("ip_address", ""))
            entry: Json = {"version": 6 if ":" in text else 4, "addr": text}
            if extended:
                entry["OS-EXT-IPS:type"] = "fixed"
                entry["OS-EXT-IPS-MAC:mac_addr"] = interface["mac_address"]
            entries.append(entry)
    return found


def metadata(row: Any) -> dict[str, str]:
    """Return the metadata of a row."""
    found: dict[str, str] = {} if row.metadata == "{}" else json.loads(row.metadata)
    return found


def tags(row: Any) -> list[str]:
    """Return the tags of a row."""
    found: list[str] = [] if row.tags == "[]" else json.loads(row.tags)
    return found


class ServerView:
    """Shows servers to one request.

    :param extended: show what only administrators see (host, instance name, ...)
    :param host_states: host -> UP, DOWN or MAINTENANCE, or None if not to be shown
    :param extra_specs: show the extra specs of flavors
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        req: http.Request,
        *,
        extended: bool = False,
        host_states: Mapping[str, str] | None = None,
        extra_specs: bool = True,
    ):
        self._extra_specs = extra_specs
        self._version = req.state.version
        self._context: context_module.RequestContext = req.state.context
        self._links = links.Links(conf, req)
        self._extended = extended
        self._host_states = host_states
        self._zone = str(conf.default_availability_zone)
        self._flavors: dict[str, Json] = {}
        self._images: dict[str, Any] = {"": ""}
        self._groups: dict[str, Any] = {}

    def summary(self, row: Any) -> Json:
        """Return a server as in GET /servers."""
        return {
            "id": row.uuid,
            "name": row.display_name,
            "links": self._links.pair("servers", row.uuid),
        }

    def created(self, instance: Instance, admin_password: str | None) -> Json:
        """Return the answer to a create."""
        server: Json = {
            "id": instance.uuid,
            "links": self._links.pair("servers", instance.uuid),
            "OS-DCF:diskConfig": instance.disk_config,
            "security_groups": [{"name": name} for name in instance.security_groups],
        }
        if admin_password is not None:
            server["adminPass"] = admin_password
        return server

    def updated(
        self, row: Any, fault: InstanceFault | None = None, group: str | None = None
    ) -> Json:
        """Return what PUT answers with: a reduced server up to 2.74, then the whole one."""
        if self._version >= 75:
            return self.single(row, fault, group)
        server = self._basic(row, fault, extended_addresses=False)
        return self._with_group(server, group)

    def single(
        self, row: Any, fault: InstanceFault | None = None, group: str | None = None
    ) -> Json:
        """Return the whole server with its group, which lists do not show (from 2.71 on)."""
        return self._with_group(self.detail(row, fault), group)

    def _with_group(self, server: Json, group: str | None) -> Json:
        if self._version >= 71:
            server["server_groups"] = [group] if group else []
        return server

    def detail(self, row: Any, fault: InstanceFault | None = None) -> Json:
        """Return the whole server."""
        server = self._basic(row, fault, extended_addresses=True)
        server["OS-EXT-AZ:availability_zone"] = row.availability_zone or (
            self._zone if row.host else ""
        )
        server["config_drive"] = "True" if row.config_drive else ""
        server["key_name"] = row.key_name
        server["OS-SRV-USG:launched_at"] = times.micro(row.launched_at)
        server["OS-SRV-USG:terminated_at"] = times.micro(row.terminated_at)
        server["OS-EXT-STS:task_state"] = row.task_state
        server["OS-EXT-STS:vm_state"] = row.vm_state
        server["OS-EXT-STS:power_state"] = row.power_state
        server["os-extended-volumes:volumes_attached"] = self._volumes(row)
        groups = self._security_groups(row.security_groups)
        if groups:
            server["security_groups"] = groups
        if self._extended:
            self._add_extended(server, row)
        if self._version >= 16 and self._host_states is not None:
            state = self._host_states.get(row.host, "UNKNOWN") if row.host else ""
            server["host_status"] = state
        return server

    def _basic(self, row: Any, fault: InstanceFault | None, *, extended_addresses: bool) -> Json:
        word = _STATUS.get(row.vm_state, "UNKNOWN")
        server: Json = {
            "id": row.uuid,
            "name": row.display_name,
            "status": word,
            "tenant_id": row.project_id,
            "user_id": row.user_id,
            "metadata": metadata(row),
            "hostId": host_id(row.project_id, row.host) if row.host else "",
            "image": self._image(row.image_ref),
            "flavor": self._flavor(row.flavor),
            "created": times.zulu(row.created_at),
            "updated": times.zulu(row.updated_at or row.created_at),
            "addresses": addresses(row.network_info, extended=extended_addresses),
            "accessIPv4": row.access_ip_v4 or "",
            "accessIPv6": row.access_ip_v6 or "",
            "links": self._links.pair("servers", row.uuid),
            "OS-DCF:diskConfig": row.disk_config,
        }
        if word in _PROGRESS:
            server["progress"] = 0
        if self._version >= 9:
            server["locked"] = bool(row.locked)
        if self._version >= 19:
            server["description"] = row.display_description
        if self._version >= 26:
            server["tags"] = tags(row)
        if self._version >= 63:
            certificates = row.trusted_certs
            server["trusted_image_certificates"] = certificates and json.loads(certificates)
        if self._version >= 73:
            server["locked_reason"] = row.locked_reason
        if fault is not None and row.vm_state == VMState.ERROR:
            server["fault"] = self._fault(fault)
        return server

    def _add_extended(self, server: Json, row: Any) -> None:
        server["OS-EXT-SRV-ATTR:host"] = row.host
        server["OS-EXT-SRV-ATTR:instance_name"] = f"instance-{row.id:08x}"
        server["OS-EXT-SRV-ATTR:hypervisor_hostname"] = row.node
        if self._version >= 3:
            server["OS-EXT-SRV-ATTR:reservation_id"] = row.reservation_id
            server["OS-EXT-SRV-ATTR:launch_index"] = row.launch_index
            server["OS-EXT-SRV-ATTR:hostname"] = row.hostname
            server["OS-EXT-SRV-ATTR:kernel_id"] = ""
            server["OS-EXT-SRV-ATTR:ramdisk_id"] = ""
            server["OS-EXT-SRV-ATTR:root_device_name"] = row.root_device_name
            server["OS-EXT-SRV-ATTR:user_data"] = row.user_data

    def _flavor(self, text: str) -> Json:
        shown = self._flavors.get(text)
        if shown is None:
            shown = self._flavors[text] = self._show_flavor(base.decode(json.loads(text)))
        return shown

    def _show_flavor(self, flavor: Flavor) -> Json:
        if self._version < 47:
            links_ = self._links.bookmark("flavors", flavor.flavorid)
            return {"id": flavor.flavorid, "links": links_}
        shown: Json = {
            "vcpus": flavor.vcpus,
            "ram": flavor.memory_mb,
            "disk": flavor.root_gb,
            "ephemeral": flavor.ephemeral_gb,
            "swap": flavor.swap_mb,
            "original_name": flavor.name,
        }
        if self._extra_specs:
            shown["extra_specs"] = flavor.extra_specs
        return shown

    def _image(self, image_ref: str) -> Any:
        shown = self._images.get(image_ref)
        if shown is None:
            links_ = self._links.bookmark("images", image_ref)
            shown = self._images[image_ref] = {"id": image_ref, "links": links_}
        return shown

    def _volumes(self, row: Any) -> list[Json]:
        if self._version < 3:
            return [{"id": each["volume_id"]} for each in volume_attachments.attached(row)]
        return [
            {
                "id": each["volume_id"],
                "delete_on_termination": bool(each.get("delete_on_termination")),
            }
            for each in volume_attachments.attached(row)
        ]

    def _security_groups(self, text: str) -> Any:
        shown = self._groups.get(text)
        if shown is None:
            shown = self._groups[text] = [{"name": name} for name in json.loads(text)]
        return shown

    def _fault(self, fault: InstanceFault) -> Json:
        shown: Json = {
            "code": fault.code,
            "created": times.zulu(fault.created_at),
            "message": fault.message,
        }
        if fault.details and (self._context.is_admin or fault.code != 500):
            shown["details"] = fault.details
        return shown
