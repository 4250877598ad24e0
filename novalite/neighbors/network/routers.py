# SPDX-License-Identifier: Apache-2.0
"""Rules of routers and floating IPs; both hold their addresses through ports like anyone else."""

import ipaddress
from typing import Any

from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.network import base
from novalite.neighbors.network.base import Attr, Kind
from novalite.neighbors.network.networks import Networks, Subnets
from novalite.neighbors.network.ports import Ports
from novalite.neighbors.store import Doc, Tx

INTERFACE = "network:router_interface"
GATEWAY = "network:router_gateway"
FLOATING = "network:floatingip"


class _WithPorts(Kind):
    """A record that has ports of its own."""

    def __init__(self, networks: Networks, subnets: Subnets, ports: Ports):
        self._networks = networks
        self._subnets = subnets
        self._ports = ports

    def _plug(
        self, tx: Tx, network: Doc, device: Doc, owner: str, fixed_ips: list[Doc] | None = None
    ) -> Doc:
        """Make a port for the record, past what a client may ask for."""
        asked: Doc = {"network_id": network["id"], "device_id": device["id"]}
        asked.update(device_owner=owner, fixed_ips=fixed_ips, port_security_enabled=False)
        system = Caller("", "", (), (), 0.0, 0.0, roles=frozenset({"admin"}))
        if owner == INTERFACE:
            asked["project_id"] = device["project_id"]
        return self._ports.create(tx, system, asked)

    def _external(self, tx: Tx, caller: Caller, network_id: Any) -> Doc:
        network = self._networks.get(tx, caller, str(network_id))
        if not network["router:external"]:
            raise base.bad_request(
                f"Bad {self.name} request: Network {network['id']} is not an external network."
            )
        return network

    def _unplug(self, tx: Tx, device_id: str, owner: str) -> None:
        for port in tx.find("port", attached=device_id):
            if port["device_owner"] == owner:
                self._ports.remove(tx, port)


class Routers(_WithPorts):
    name = "router"
    noun = "Router"
    attrs = {
        "admin_state_up": Attr(bool, True),
        "external_gateway_info": Attr(dict),
        "routes": Attr(list, list),
        "distributed": Attr(bool, False, admin=True),
        "ha": Attr(bool, False, admin=True),
        "availability_zone_hints": Attr(list, list, put=False),
        "enable_ndp_proxy": Attr(bool),
    }

    def create(self, tx: Tx, caller: Caller, asked: Doc) -> Doc:
        doc = self.new(caller, self.checked(caller, asked, new=True))
        doc.update(status="ACTIVE", availability_zones=["nova"], flavor_id=None)
        gateway = doc["external_gateway_info"]
        doc["external_gateway_info"] = self._gateway(tx, caller, doc, gateway)
        return tx.insert(self.name, doc)

    def update(self, tx: Tx, caller: Caller, doc: Doc, changes: Doc) -> Doc:
        if "external_gateway_info" in changes:
            self._unplug(tx, doc["id"], GATEWAY)
            gateway = changes["external_gateway_info"]
            changes["external_gateway_info"] = self._gateway(tx, caller, doc, gateway)
        return super().update(tx, caller, doc, changes)

    def _gateway(self, tx: Tx, caller: Caller, doc: Doc, asked: Doc | None) -> Doc | None:
        if not asked:
            return None
        network = self._external(tx, caller, asked.get("network_id"))
        fixed_ips = asked.get("external_fixed_ips") or None
        port = self._plug(tx, network, doc, GATEWAY, fixed_ips)
        return {
            "network_id": network["id"],
            "enable_snat": bool(asked.get("enable_snat", True)),
            "external_fixed_ips": port["fixed_ips"],
        }

    def delete(self, tx: Tx, caller: Caller, doc: Doc) -> None:
        if self._interfaces(tx, doc):
            raise base.conflict(f"Router {doc['id']} still has ports", "RouterInUse")
        self._unplug(tx, doc["id"], GATEWAY)
        super().delete(tx, caller, doc)

    def _interfaces(self, tx: Tx, doc: Doc) -> list[Doc]:
        ports = tx.find("port", attached=doc["id"])
        return [port for port in ports if port["device_owner"] == INTERFACE]

    def add_interface(self, tx: Tx, caller: Caller, doc: Doc, asked: Doc) -> Doc:
        """Connect a subnet (by its gateway address) or a port."""
        if asked.get("port_id"):
            port = self._ports.get(tx, caller, str(asked["port_id"]))
            if port["device_id"]:
                raise base.conflict(
                    f"Unable to complete operation on port {port['id']} for network "
                    f"{port['network_id']}. Port already has an attached device "
                    f"{port['device_id']}.",
                    "PortInUse",
                )
            self._refuse_overlap(tx, doc, [item["subnet_id"] for item in port["fixed_ips"]])
            changes: Doc = {"device_id": doc["id"], "device_owner": INTERFACE}
            changes.update(port_security_enabled=False, security_groups=[])
            port.update(changes, status="ACTIVE")
            self._ports.save(tx, port)
        elif asked.get("subnet_id"):
            subnet = self._subnets.get(tx, caller, str(asked["subnet_id"]))
            if not subnet["gateway_ip"]:
                raise base.bad_request(
                    "Bad router request: Subnet for router interface must have a gateway IP."
                )
            self._refuse_overlap(tx, doc, [subnet["id"]])
            wanted = [{"subnet_id": subnet["id"], "ip_address": subnet["gateway_ip"]}]
            network = tx.get("network", subnet["network_id"]) or {}
            port = self._plug(tx, network, doc, INTERFACE, wanted)
        else:
            raise base.bad_request(
                "Bad router request: Either subnet_id or port_id must be specified."
            )
        return _interface(doc, port)

    def _refuse_overlap(self, tx: Tx, doc: Doc, subnet_ids: list[str]) -> None:
        held = [
            item["subnet_id"] for port in self._interfaces(tx, doc) for item in port["fixed_ips"]
        ]
        for new in tx.find("subnet", id=subnet_ids):
            for old in tx.find("subnet", id=held) if held else []:
                if old["id"] == new["id"]:
                    raise base.bad_request(
                        f"Bad router request: Router already has a port on subnet {new['id']}."
                    )
                first, second = (ipaddress.ip_network(one["cidr"]) for one in (old, new))
                if first.version == second.version and first.overlaps(second):
                    raise base.bad_request(
                        f"Bad router request: Cidr {new['cidr']} of subnet {new['id']} overlaps "
                        f"with cidr {old['cidr']} of subnet {old['id']}."
                    )

    def remove_interface(self, tx: Tx, caller: Caller, doc: Doc, asked: Doc) -> Doc:
        """Disconnect a subnet or a port, and delete the port."""
        for port in self._interfaces(tx, doc):
            subnet_ids = [item["subnet_id"] for item in port["fixed_ips"]]
            if port["id"] == asked.get("port_id") or asked.get("subnet_id") in subnet_ids:
                self._ports.remove(tx, port)
                return _interface(doc, port)
        wanted = asked.get("port_id") or asked.get("subnet_id")
        raise Fault(
            404,
            f"Router {doc['id']} has no interface on {wanted}",
            "RouterInterfaceNotFound",
        )


def _interface(doc: Doc, port: Doc) -> Doc:
    subnet_ids = [item["subnet_id"] for item in port["fixed_ips"]]
    return {
        "id": doc["id"],
        "tenant_id": doc["project_id"],
        "project_id": doc["project_id"],
        "port_id": port["id"],
        "network_id": port["network_id"],
        "subnet_id": subnet_ids[0] if subnet_ids else None,
        "subnet_ids": subnet_ids,
        "tags": [],
    }


class FloatingIps(_WithPorts):
    name = "floatingip"
    noun = "Floating IP"
    attrs = {
        "floating_network_id": Attr(str, put=False),
        "floating_ip_address": Attr(str, put=False),
        "subnet_id": Attr(str, put=False),
        "port_id": Attr(str),
        "fixed_ip_address": Attr(str),
        "dns_name": Attr(str, "", put=False),
        "dns_domain": Attr(str, "", put=False),
    }

    def create(self, tx: Tx, caller: Caller, asked: Doc) -> Doc:
        doc = self.new(caller, self.checked(caller, asked, new=True))
        network = self._external(tx, caller, doc["floating_network_id"])
        item = {"subnet_id": doc.pop("subnet_id"), "ip_address": doc["floating_ip_address"]}
        item = {key: value for key, value in item.items() if value}
        port = self._plug(tx, network, doc, FLOATING, [item] if item else None)
        if not port["fixed_ips"]:
            raise base.bad_request(
                f"Bad floatingip request: Network {network['id']} does not contain any IPv4 subnet."
            )
        doc["floating_ip_address"] = port["fixed_ips"][0]["ip_address"]
        doc.update(router_id=None, port_details=None, port_forwardings=[], qos_policy_id=None)
        self._associate(tx, caller, doc)
        return tx.insert(self.name, doc)

    def update(self, tx: Tx, caller: Caller, doc: Doc, changes: Doc) -> Doc:
        if "port_id" in changes or "fixed_ip_address" in changes:
            doc["fixed_ip_address"] = None
            doc.update(changes)
            self._associate(tx, caller, doc)
            return self.save(tx, doc)
        return super().update(tx, caller, doc, changes)

    def _associate(self, tx: Tx, caller: Caller, doc: Doc) -> None:
        doc.update(router_id=None, port_details=None, status="DOWN")
        if not doc["port_id"]:
            if doc["fixed_ip_address"]:
                raise base.bad_request(
                    "Bad floatingip request: fixed_ip_address cannot be specified without a "
                    "port_id."
                )
            return
        port = self._ports.get(tx, caller, doc["port_id"])
        held = [item["ip_address"] for item in port["fixed_ips"]]
        fixed = doc["fixed_ip_address"] or next((ip for ip in held if ":" not in ip), None)
        if fixed not in held:
            raise base.bad_request(
                f"Bad floatingip request: Port {port['id']} does not have fixed ip {fixed}."
            )
        for other in tx.find(self.name, attached=port["id"]):
            if other["id"] != doc["id"] and other["fixed_ip_address"] == fixed:
                raise base.conflict(
                    f"Cannot associate floating IP {doc['floating_ip_address']} with port "
                    f"{port['id']} using fixed IP {fixed}, as that fixed IP already has a "
                    f"floating IP on external network {doc['floating_network_id']}.",
                    "FloatingIPPortAlreadyAssociated",
                )
        details = ("name", "network_id", "mac_address", "admin_state_up", "status")
        doc.update(fixed_ip_address=fixed, status="ACTIVE")
        doc["port_details"] = {key: port[key] for key in (*details, "device_id", "device_owner")}
        doc["router_id"] = self._router(tx, doc, port)

    def _router(self, tx: Tx, doc: Doc, port: Doc) -> str | None:
        """Return the router between the port's subnets and the external network, if any."""
        leading = [
            router["id"]
            for router in tx.find("router")
            if (router["external_gateway_info"] or {}).get("network_id")
            == doc["floating_network_id"]
        ]
        subnet_ids = {item["subnet_id"] for item in port["fixed_ips"]}
        for near in tx.find("port", attached=leading) if leading else []:
            reached = subnet_ids & {item["subnet_id"] for item in near["fixed_ips"]}
            if near["device_owner"] == INTERFACE and reached:
                return str(near["device_id"])
        return None

    def delete(self, tx: Tx, caller: Caller, doc: Doc) -> None:
        self._unplug(tx, doc["id"], FLOATING)
        super().delete(tx, caller, doc)

    def candidates(self, tx: Tx, caller: Caller, params: dict[str, list[str]]) -> list[Doc]:
        if "port_id" in params and "" not in params["port_id"]:
            return tx.find(self.name, attached=params["port_id"])
        return super().candidates(tx, caller, params)
