# SPDX-License-Identifier: Apache-2.0
"""Rules of ports: addresses, bindings, security groups."""

import re
from typing import Any

from novalite.neighbors.http import Fault, not_found
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.network import addresses, base, security_groups
from novalite.neighbors.network.base import Attr, Kind
from novalite.neighbors.network.networks import Networks
from novalite.neighbors.store import Doc, Tx

MAC = re.compile(r"^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$")
# Ports of these owners are deleted with what they belong to only.
SERVICE_OWNERS = (*("network:router_interface", "network:router_gateway", "network:floatingip"),)
HIDDEN = ("binding:host_id", "binding:profile", "binding:vif_type", "binding:vif_details")


class Ports(Kind):
    """A port is seen by its project and by the project of its network."""

    name = "port"
    noun = "Port"
    attrs = {
        "network_id": Attr(str, put=False),
        "admin_state_up": Attr(bool, True),
        "mac_address": Attr(str),
        "fixed_ips": Attr(list),
        "device_id": Attr(str, ""),
        "device_owner": Attr(str, ""),
        "security_groups": Attr(list),
        "port_security_enabled": Attr(bool, True),
        "allowed_address_pairs": Attr(list, list),
        "extra_dhcp_opts": Attr(list, list),
        "binding:host_id": Attr(str, "", admin=True),
        "binding:profile": Attr(dict, dict, admin=True),
        "binding:vnic_type": Attr(str, "normal"),
        "dns_name": Attr(str, ""),
        "dns_domain": Attr(str, ""),
        "propagate_uplink_status": Attr(bool, True),
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
        self._may_own(caller, asked)
        doc = self.new(caller, asked)
        self.occupy(tx, doc, network)
        doc["security_groups"] = self._groups(tx, doc, doc["security_groups"])
        return tx.insert(self.name, bind(doc))

    def occupy(self, tx: Tx, doc: Doc, network: Doc) -> None:
        """Give a new port its MAC and addresses."""
        asked_mac = doc["mac_address"]
        if asked_mac and not MAC.match(asked_mac):
            raise base.invalid_input(f"'{asked_mac}' is not a valid MAC address")
        doc["mac_address"] = addresses.mac(tx, network["id"], doc["id"], asked_mac)
        doc["fixed_ips"] = _allocate(tx, network["id"], doc["id"], doc["fixed_ips"])

    def update(self, tx: Tx, caller: Caller, doc: Doc, changes: Doc) -> Doc:
        self._may_own(caller, changes)
        if "mac_address" in changes and changes["mac_address"] != doc["mac_address"]:
            if not caller.is_admin:
                raise base.forbidden(self, "set mac_address")
            addresses.give_back_macs(tx, doc["id"])
            mac = changes["mac_address"]
            changes["mac_address"] = addresses.mac(tx, doc["network_id"], doc["id"], mac)
        if "fixed_ips" in changes:
            addresses.give_back(tx, doc["id"])
            asked = changes["fixed_ips"] or []
            changes["fixed_ips"] = _allocate(tx, doc["network_id"], doc["id"], asked)
        secure = changes.get("port_security_enabled", doc["port_security_enabled"])
        if "security_groups" in changes or not secure:
            merged = {**doc, **changes}
            changes["security_groups"] = self._groups(
                tx, merged, changes.get("security_groups") or []
            )
        doc.update(changes)
        return self.save(tx, bind(doc))

    def delete(self, tx: Tx, caller: Caller, doc: Doc) -> None:
        if doc["device_owner"] in SERVICE_OWNERS:
            raise base.conflict(
                f"Port {doc['id']} cannot be deleted directly via the port API: has device owner "
                f"{doc['device_owner']}.",
                "ServicePortInUse",
            )
        self.remove(tx, doc)

    def remove(self, tx: Tx, doc: Doc) -> None:
        """Delete a port; a floating IP that pointed to it points nowhere."""
        for floating in tx.find("floatingip", attached=doc["id"]):
            floating.update(port_id=None, fixed_ip_address=None, router_id=None, status="DOWN")
            self.save_other(tx, "floatingip", floating)
        addresses.give_back(tx, doc["id"])
        addresses.give_back_macs(tx, doc["id"])
        tx.remove(self.name, doc["id"])

    def save_other(self, tx: Tx, kind: str, doc: Doc) -> None:
        """Write a record of another kind that a change of a port has changed."""
        doc["revision_number"] += 1
        tx.replace(kind, doc)

    def visible(self, tx: Tx, caller: Caller, doc: Doc) -> bool:
        if base.owned(caller, doc):
            return True
        network = tx.get("network", doc["network_id"])
        return network is not None and base.owned(caller, network)

    def candidates(self, tx: Tx, caller: Caller, params: dict[str, list[str]]) -> list[Doc]:
        for key, column in (("device_id", "attached"), ("network_id", "parent")):
            if key in params and "id" not in params and "" not in params[key]:
                return tx.find(self.name, **{column: params[key]})
        return super().candidates(tx, caller, params)

    def matches(self, tx: Tx, doc: Doc, key: str, values: list[str]) -> bool:
        if key == "fixed_ips":
            return all(_has_address(doc, value) for value in values)
        return super().matches(tx, doc, key, values)

    def view(self, tx: Tx, caller: Caller, doc: Doc) -> Doc:
        shown = super().view(tx, caller, doc)
        if not caller.is_admin:
            shown = {key: value for key, value in shown.items() if key not in HIDDEN}
        return shown

    def _may_own(self, caller: Caller, asked: Doc) -> None:
        if str(asked.get("device_owner") or "").startswith("network:") and not caller.is_admin:
            raise base.forbidden(self, "set device_owner to a network service")

    def _groups(self, tx: Tx, doc: Doc, asked: list[Any] | None) -> list[str]:
        if not doc["port_security_enabled"] or doc["device_owner"] in SERVICE_OWNERS:
            if asked:
                raise Fault(
                    409,
                    "Port Security must be enabled in order to have allowed address pairs or "
                    "security groups on a port.",
                    "PortSecurityPortHasSecurityGroup",
                )
            return []
        if asked is None:
            return [security_groups.default_group(tx, doc["project_id"])]
        for group_id in asked:
            found = tx.get("security_group", str(group_id))
            if found is None or found["project_id"] != doc["project_id"]:
                raise not_found("Security Group", str(group_id))
        return list(dict.fromkeys(asked))


def bind(doc: Doc) -> Doc:
    """Set what follows from host and owner: how the port is plugged, and whether it is up."""
    bound = bool(doc["binding:host_id"])
    doc["binding:vif_type"] = "ovs" if bound else "unbound"
    doc["binding:vif_details"] = {"port_filter": True} if bound else {}
    up = doc["admin_state_up"] and (bound or doc["device_owner"] in SERVICE_OWNERS)
    doc["status"] = "ACTIVE" if up else "DOWN"
    return doc


def _allocate(tx: Tx, network_id: str, port_id: str, asked: list[Any] | None) -> list[Doc]:
    subnets = tx.find("subnet", parent=network_id)
    if asked is None:
        return _any_address(tx, network_id, subnets, port_id)
    given = []
    # Wanted addresses first, so that none of them is given out to a request for any.
    for item in sorted(asked, key=lambda item: "ip_address" not in item):
        if not isinstance(item, dict) or not ({"subnet_id", "ip_address"} & set(item)):
            raise base.invalid_input("each of fixed_ips must name a subnet_id or an ip_address")
        given.append(_one_address(tx, network_id, subnets, port_id, item))
    return given


def _any_address(tx: Tx, network_id: str, subnets: list[Doc], port_id: str) -> list[Doc]:
    """One address of each IP version that the network has subnets for."""
    given = []
    for version in (4, 6):
        family = [subnet for subnet in subnets if subnet["ip_version"] == version]
        for subnet in family:
            address = addresses.give(tx, subnet, port_id)
            if address is not None:
                given.append({"subnet_id": subnet["id"], "ip_address": address})
                break
        else:
            if family:
                raise _exhausted(network_id)
    return given


def _exhausted(network_id: str) -> Fault:
    return base.conflict(
        f"No more IP addresses available on network {network_id}.", "IpAddressGenerationFailure"
    )


def _one_address(tx: Tx, network_id: str, subnets: list[Doc], port_id: str, item: Doc) -> Doc:
    wanted = item.get("ip_address")
    chosen = [subnet for subnet in subnets if item.get("subnet_id") in (None, subnet["id"])]
    if item.get("subnet_id") and not chosen:
        raise Fault(
            400,
            f"Failed to create port on network {network_id}, because fixed_ips included invalid "
            f"subnet {item['subnet_id']}.",
            "InvalidInput",
        )
    if wanted:
        subnet = addresses.holding(chosen, str(wanted))
        if subnet is None:
            raise Fault(
                400,
                f"IP address {wanted} is not a valid IP for any of the subnets on the specified "
                "network.",
                "InvalidIpForNetwork",
            )
        address = addresses.claim(tx, subnet, str(wanted), port_id)
        return {"subnet_id": subnet["id"], "ip_address": address}
    found = addresses.give(tx, chosen[0], port_id)
    if found is None:
        raise _exhausted(network_id)
    return {"subnet_id": chosen[0]["id"], "ip_address": found}


def _has_address(doc: Doc, wanted: str) -> bool:
    """Tell whether a port matches a filter of the form ``ip_address=A`` or ``subnet_id=S``."""
    key, _, value = wanted.partition("=")
    if key == "ip_address_substr":
        return any(value in item["ip_address"] for item in doc["fixed_ips"])
    return any(item.get(key) == value for item in doc["fixed_ips"])
