# SPDX-License-Identifier: Apache-2.0
"""Whether the networks and ports of a request exist, are the project's to use, and are free.

Called by the API, through :class:`novalite.network.client.NetworkClient`, before a server is
accepted. Makes and changes nothing. The account that asks is an administrator's, so what the
project may see is decided here.
"""

import ipaddress

from novalite import context, exception
from novalite.network.neutron import Neutron, Record
from novalite.objects.request_spec import NetworkRequest


def validate(
    neutron: Neutron, ctxt: context.RequestContext, requested: list[NetworkRequest], count: int
) -> list[NetworkRequest]:
    """Return the requests, each with its network, in the order given."""
    _refuse_count(requested, count)
    ports: dict[str, Record] = {}
    for request in requested:
        if request.port_id is None:
            continue
        if request.port_id in ports:
            raise exception.PortInUse(port_id=request.port_id)
        ports[request.port_id] = _usable_port(neutron, ctxt, request.port_id)
    networks = _networks(neutron, ctxt, requested)
    made = []
    for request in requested:
        if request.port_id is not None:
            network_id = str(ports[request.port_id]["network_id"])
        else:
            network_id = str(request.network_id)
            _usable_network(ctxt, networks.get(network_id), network_id)
            if request.fixed_ip:
                _free_address(neutron, ctxt, network_id, request.fixed_ip)
        made.append(
            NetworkRequest(
                network_id=network_id,
                port_id=request.port_id,
                fixed_ip=request.fixed_ip,
                tag=request.tag,
            )
        )
    return made


def automatic(neutron: Neutron, ctxt: context.RequestContext) -> list[NetworkRequest]:
    """Return the one network that the project can use; nothing when it has none."""
    found = {}
    if ctxt.project_id:
        for network in neutron.list(ctxt, "network", project_id=ctxt.project_id):
            found[network["id"]] = network
    for network in neutron.list(ctxt, "network", shared=True):
        found[network["id"]] = network
    usable = [network for network in found.values() if not network.get("router:external")]
    if len(usable) > 1:
        raise exception.NetworkAmbiguous()
    for network in usable:
        _refuse_bare(network)
    return [NetworkRequest(network_id=network["id"]) for network in usable]


def _refuse_count(requested: list[NetworkRequest], count: int) -> None:
    for request in requested:
        if request.network_id is None and request.port_id is None:
            raise exception.InvalidInput(reason="each of networks must name a network or a port")
        if count > 1 and request.port_id is not None:
            raise exception.MultiplePortsNotApplicable(
                reason="Unable to launch multiple instances with a single configured port ID. "
                "Please launch your instance one by one with different ports."
            )
        if count > 1 and request.fixed_ip:
            raise exception.InvalidFixedIpAndMaxCountRequest(
                reason="max_count cannot be greater than 1 if an fixed_ip is specified."
            )


def visible(ctxt: context.RequestContext, record: Record) -> bool:
    """Tell whether a record belongs to the context's project, or it is an administrator's."""
    owner = record.get("project_id") or record.get("tenant_id")
    return bool(ctxt.is_admin) or (bool(ctxt.project_id) and owner == ctxt.project_id)


def _usable_port(neutron: Neutron, ctxt: context.RequestContext, port_id: str) -> Record:
    port = neutron.show(ctxt, "port", port_id)
    if port is None or not visible(ctxt, port):
        raise exception.PortInBodyNotFound(port_id=port_id)
    if port.get("device_id"):
        raise exception.PortInUse(port_id=port_id)
    if not port.get("fixed_ips"):
        raise exception.PortRequiresFixedIP(port_id=port_id)
    return port


def _networks(
    neutron: Neutron, ctxt: context.RequestContext, requested: list[NetworkRequest]
) -> dict[str, Record]:
    ids = {str(request.network_id) for request in requested if request.port_id is None}
    if not ids:
        return {}
    return {network["id"]: network for network in neutron.list(ctxt, "network", id=sorted(ids))}


def _usable_network(ctxt: context.RequestContext, network: Record | None, network_id: str) -> None:
    mine = network is not None and (visible(ctxt, network) or bool(network.get("shared")))
    if network is not None and network.get("router:external") and not mine:
        raise exception.ExternalNetworkAttachForbidden(network_id=network_id)
    if network is None or not mine:
        raise exception.NetworkInBodyNotFound(network_id=network_id)
    _refuse_bare(network)


def _refuse_bare(network: Record) -> None:
    if not network.get("subnets"):
        raise exception.NetworkRequiresSubnet(network_id=network["id"])


def _free_address(
    neutron: Neutron, ctxt: context.RequestContext, network_id: str, address: str
) -> None:
    wrong = exception.FixedIpInvalid(address=address, network_id=network_id)
    try:
        wanted = ipaddress.ip_address(address)
    except ValueError as error:
        raise wrong from error
    subnets = neutron.list(ctxt, "subnet", network_id=network_id)
    if not any(wanted in ipaddress.ip_network(subnet["cidr"]) for subnet in subnets):
        raise wrong
    taken = neutron.list(
        ctxt, "port", network_id=network_id, fixed_ips=f"ip_address={wanted}", fields="id"
    )
    if taken:
        raise exception.FixedIpAlreadyInUse(address=address)
