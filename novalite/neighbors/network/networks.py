# SPDX-License-Identifier: Apache-2.0
"""Rules of networks and subnets."""

import ipaddress
from typing import Any

from novalite.neighbors.http import Fault, not_found
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.network import addresses, base
from novalite.neighbors.network.base import Attr, Kind
from novalite.neighbors.store import Doc, Tx


class Networks(Kind):
    """A network is seen by its project, and by all when it is shared or external."""

    name = "network"
    noun = "Network"
    attrs = {
        "admin_state_up": Attr(bool, True),
        "shared": Attr(bool, False, admin=True),
        "router:external": Attr(bool, False, admin=True),
        "is_default": Attr(bool, False, admin=True),
        "mtu": Attr(int, 1450),
        "port_security_enabled": Attr(bool, True),
        "dns_domain": Attr(str, ""),
        "availability_zone_hints": Attr(list, list, put=False),
        "provider:network_type": Attr(str, "geneve", admin=True),
        "provider:physical_network": Attr(str, None, admin=True),
        "provider:segmentation_id": Attr(int, None, admin=True),
    }

    def new(self, caller: Caller, asked: Doc) -> Doc:
        doc = super().new(caller, asked)
        doc.update(status="ACTIVE", availability_zones=["nova"])
        return doc

    def visible(self, tx: Tx, caller: Caller, doc: Doc) -> bool:
        return base.owned(caller, doc) or doc["shared"] or doc["router:external"]

    def all(self, tx: Tx, caller: Caller) -> list[Doc]:
        return tx.find(self.name)

    def view(self, tx: Tx, caller: Caller, doc: Doc) -> Doc:
        shown = super().view(tx, caller, doc)
        rows = tx.run(
            "SELECT id FROM records WHERE parent = ? AND kind = 'subnet' AND parent != '' "
            "ORDER BY seq",
            doc["id"],
        )
        shown["subnets"] = [row[0] for row in rows]
        if not caller.is_admin:
            shown = {key: value for key, value in shown.items() if key[:9] != "provider:"}
        return shown

    def delete(self, tx: Tx, caller: Caller, doc: Doc) -> None:
        rows = tx.run(
            "SELECT id FROM records WHERE parent = ? AND kind = 'port' AND parent != '' LIMIT 10",
            doc["id"],
        ).fetchall()
        if rows:
            raise base.conflict(
                f"Unable to complete operation on network {doc['id']}. There are one or more "
                f"ports still in use on the network, id for these ports is "
                f"{', '.join(row[0] for row in rows)}.",
                "NetworkInUse",
            )
        for subnet in tx.find("subnet", parent=doc["id"]):
            remove_subnet(tx, subnet)
        super().delete(tx, caller, doc)


def remove_subnet(tx: Tx, subnet: Doc) -> None:
    """Delete a subnet and what is kept about its addresses."""
    addresses.forget_subnet(tx, subnet["id"])
    tx.remove("subnet", subnet["id"])


class Subnets(Kind):
    """A subnet is seen by its project, and by all when its network is shared."""

    name = "subnet"
    noun = "Subnet"
    attrs = {
        "network_id": Attr(str, put=False),
        "ip_version": Attr(int, 4, put=False),
        "cidr": Attr(str, put=False),
        "gateway_ip": Attr(str),
        "allocation_pools": Attr(list),
        "enable_dhcp": Attr(bool, True),
        "dns_nameservers": Attr(list, list),
        "host_routes": Attr(list, list),
        "service_types": Attr(list, list),
        "dns_publish_fixed_ip": Attr(bool, False),
        "ipv6_address_mode": Attr(str, put=False),
        "ipv6_ra_mode": Attr(str, put=False),
        "subnetpool_id": Attr(str, put=False),
        "segment_id": Attr(str),
    }

    def __init__(self, networks: Networks):
        self._networks = networks

    def create(self, tx: Tx, caller: Caller, asked: Doc) -> Doc:
        asked = self.checked(caller, asked, new=True)
        if not asked.get("network_id"):
            raise base.bad_request(
                "Failed to parse request. Required attribute 'network_id' not specified",
                "HTTPBadRequest",
            )
        network = self._networks.get(tx, caller, asked["network_id"])
        if not base.owned(caller, network):
            raise not_found("Network", network["id"])
        cidr = _cidr(asked)
        no_gateway = "gateway_ip" in asked and asked["gateway_ip"] is None
        doc = self.new(caller, asked)
        doc.update(cidr=str(cidr), ip_version=cidr.version)
        _refuse_overlap(tx, doc, cidr)
        gateway = doc["gateway_ip"]
        doc["gateway_ip"] = None if no_gateway else _gateway(cidr, gateway)
        pools = doc["allocation_pools"]
        doc["allocation_pools"] = (
            addresses.default_pools(cidr, doc["gateway_ip"])
            if pools is None
            else addresses.checked_pools(cidr, pools)
        )
        return tx.insert(self.name, doc)

    def update(self, tx: Tx, caller: Caller, doc: Doc, changes: Doc) -> Doc:
        cidr = ipaddress.ip_network(doc["cidr"])
        if changes.get("gateway_ip"):
            changes["gateway_ip"] = _gateway(cidr, changes["gateway_ip"])
        if changes.get("allocation_pools") is not None:
            pools = addresses.checked_pools(cidr, changes["allocation_pools"])
            changes["allocation_pools"] = pools
            addresses.rewind(tx, doc["id"])
        return super().update(tx, caller, doc, changes)

    def delete(self, tx: Tx, caller: Caller, doc: Doc) -> None:
        if addresses.in_use(tx, doc["id"]):
            raise base.conflict(
                f"Unable to complete operation on subnet {doc['id']}: One or more ports have an "
                "IP allocation from this subnet.",
                "SubnetInUse",
            )
        remove_subnet(tx, doc)

    def visible(self, tx: Tx, caller: Caller, doc: Doc) -> bool:
        if base.owned(caller, doc):
            return True
        network = tx.get("network", doc["network_id"])
        return network is not None and (base.owned(caller, network) or network["shared"])

    def candidates(self, tx: Tx, caller: Caller, params: dict[str, list[str]]) -> list[Doc]:
        if "network_id" in params:
            return tx.find(self.name, parent=params["network_id"])
        return super().candidates(tx, caller, params)

    def all(self, tx: Tx, caller: Caller) -> list[Doc]:
        return tx.find(self.name)


def _cidr(asked: Doc) -> Any:
    text = asked.get("cidr")
    if not text:
        raise base.bad_request("Bad subnets request: a cidr must be given.")
    try:
        loose = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise base.invalid_input(f"'{text}' is not a valid IP subnet") from error
    if str(ipaddress.ip_interface(text).ip) != str(loose.network_address):
        raise base.invalid_input(
            f"'{text}' isn't a recognized IP subnet cidr, '{loose}' is recommended"
        )
    if "ip_version" in asked and asked["ip_version"] != loose.version:
        raise base.invalid_input(
            f"cidr '{text}' does not match the ip_version '{asked['ip_version']}'"
        )
    return loose


def _refuse_overlap(tx: Tx, doc: Doc, cidr: Any) -> None:
    """Addresses are unique in a network, and the subnets of one project never overlap."""
    near = tx.find("subnet", parent=doc["network_id"])
    near += tx.find("subnet", owner=doc["project_id"])
    for other in near:
        found = ipaddress.ip_network(other["cidr"])
        if found.version == cidr.version and cidr.overlaps(found):
            raise base.invalid_input(
                f"Requested subnet with cidr: {cidr} for network: {doc['network_id']} overlaps "
                f"with another subnet (cidr {found}, id {other['id']})"
            )


def _gateway(cidr: Any, asked: str | None) -> str:
    if asked is None:
        return str(cidr.network_address + (1 if cidr.num_addresses > 2 else 0))
    try:
        address = ipaddress.ip_address(asked)
    except ValueError as error:
        raise base.invalid_input(f"'{asked}' is not a valid IP address") from error
    # As network v2.0 has it, the gateway may lie outside of the subnet.
    if address.version != cidr.version:
        raise Fault(400, f"Gateway {asked} is not valid on subnet {cidr}.", "GatewayNotValid")
    return str(address)
