# SPDX-License-Identifier: Apache-2.0
"""The ports of one server on one host: found again, made, bound, given back.

Called by the compute, through :class:`novalite.network.client.NetworkClient`, while it builds or
destroys a server. What an earlier attempt has made is listed first and used again, so an attempt
that was killed half-way leaves nothing behind. Ports that novalite made carry a mark in their
binding profile; everything else was brought by the user and is never deleted.
"""

import ipaddress
import logging
from collections.abc import Set
from typing import Any

from novalite import context, exception
from novalite.network.neutron import Neutron, Record
from novalite.objects.request_spec import NetworkRequest

LOG = logging.getLogger(__name__)

MARK_KEY = "created_by"
MARK_VALUE = "novalite"


def owned(port: Record, brought: Set[str]) -> bool:
    """Tell whether novalite made the port, and so deletes it."""
    profile = port.get("binding:profile") or {}
    return port["id"] not in brought and profile.get(MARK_KEY) == MARK_VALUE


class Allocation:
    """One call of ``allocate``: remembers what was there before, to take back only its own."""

    def __init__(
        self,
        neutron: Neutron,
        ctxt: context.RequestContext,
        instance_uuid: str,
        host: str,
        device_owner: str,
        groups: list[str],
    ):
        self._neutron = neutron
        self._ctxt = ctxt
        self._uuid = instance_uuid
        self._host = host
        self._device_owner = device_owner
        self._groups = groups
        self._before: set[str] = set()

    def run(self, requested: list[NetworkRequest]) -> list[tuple[NetworkRequest, Record]]:
        """Return a port for each request, all bound to the host.

        :raises exception.NovaliteException: one of them cannot be had; what this call made or
            bound is given back
        """
        brought = {request.port_id for request in requested if request.port_id}
        held = self._neutron.list(self._ctxt, "port", device_id=self._uuid)
        self._before = {port["id"] for port in held}
        reusable = [port for port in held if owned(port, brought)]
        ports = {port["id"]: port for port in held}
        try:
            made = [(request, self._port(request, reusable, ports)) for request in requested]
            for surplus in reusable:
                self._neutron.delete_port(self._ctxt, surplus["id"])
        except Exception:
            self._give_back(brought)
            raise
        return made

    def _port(
        self, request: NetworkRequest, reusable: list[Record], ports: dict[str, Record]
    ) -> Record:
        if request.port_id:
            port = ports.get(request.port_id) or self._free(request.port_id)
            return self._checked(self._bind(port))
        for port in reusable:
            if _fits(port, request):
                reusable.remove(port)
                return self._checked(self._bind(port))
        return self._checked(self._create(request))

    def _free(self, port_id: str) -> Record:
        port = self._neutron.show(self._ctxt, "port", port_id)
        if port is None:
            raise exception.PortInBodyNotFound(port_id=port_id)
        if port.get("device_id"):
            raise exception.PortInUse(port_id=port_id)
        return port

    def _bind(self, port: Record) -> Record:
        wanted = {
            "device_id": self._uuid,
            "device_owner": self._device_owner,
            "binding:host_id": self._host,
        }
        changes = {key: value for key, value in wanted.items() if port.get(key) != value}
        if not changes:
            return port
        bound = self._neutron.update_port(self._ctxt, port["id"], changes)
        if bound is None:
            raise exception.PortInBodyNotFound(port_id=port["id"])
        return bound

    def _create(self, request: NetworkRequest) -> Record:
        values: dict[str, Any] = {
            "network_id": request.network_id,
            "device_id": self._uuid,
            "device_owner": self._device_owner,
            "binding:host_id": self._host,
            "binding:profile": {MARK_KEY: MARK_VALUE},
            "admin_state_up": True,
        }
        if self._ctxt.project_id:
            values["project_id"] = self._ctxt.project_id
        if request.fixed_ip:
            values["fixed_ips"] = [{"ip_address": request.fixed_ip}]
        if self._groups:
            values["security_groups"] = self._groups
        return self._neutron.create_port(self._ctxt, values)

    def _checked(self, port: Record) -> Record:
        if port.get("binding:vif_type") == "binding_failed":
            raise exception.PortBindingFailed(port_id=port["id"])
        return port

    def _give_back(self, brought: Set[str]) -> None:
        """Undo this call: what it made is listed, since an answer may have been lost.

        A port that is bound elsewhere by now belongs to the attempt there.
        """
        try:
            for port in self._neutron.list(self._ctxt, "port", device_id=self._uuid):
                if port["id"] not in self._before and port.get("binding:host_id") == self._host:
                    release(self._neutron, self._ctxt, port, brought)
        except exception.NovaliteException as error:
            LOG.warning(
                "Ports of instance %s could not be given back now: %s", self._uuid, error.message()
            )


def _fits(port: Record, request: NetworkRequest) -> bool:
    if port["network_id"] != request.network_id:
        return False
    if not request.fixed_ip:
        return True
    wanted = ipaddress.ip_address(request.fixed_ip)
    return any(ipaddress.ip_address(ip["ip_address"]) == wanted for ip in port["fixed_ips"])


def release(
    neutron: Neutron, ctxt: context.RequestContext, port: Record, brought: Set[str]
) -> None:
    """Delete a port that novalite made, take the server off one that the user brought."""
    if owned(port, brought):
        neutron.delete_port(ctxt, port["id"])
    else:
        neutron.update_port(
            ctxt, port["id"], {"device_id": "", "device_owner": "", "binding:host_id": None}
        )
