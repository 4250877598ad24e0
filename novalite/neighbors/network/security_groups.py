# SPDX-License-Identifier: Apache-2.0
"""Rules of security groups and their rules; a project's ``default`` is made when first needed."""

import ipaddress
import time
import uuid
from typing import Any

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.network import base
from novalite.neighbors.network.base import Attr, Kind
from novalite.neighbors.store import Doc, Tx

DEFAULT = "default"
PROTOCOLS = (
    *("ah", "dccp", "egp", "esp", "gre", "hopopt", "icmp", "icmpv6", "igmp", "ip", "ipip"),
    *("ipv6-encap", "ipv6-frag", "ipv6-icmp", "ipv6-nonxt", "ipv6-opts", "ipv6-route"),
    *("ospf", "pgm", "rsvp", "sctp", "tcp", "udp", "udplite", "vrrp"),
)
_IDENTITY = (
    *("direction", "ethertype", "protocol", "port_range_min", "port_range_max"),
    *("remote_ip_prefix", "remote_group_id"),
)


def default_group(tx: Tx, project_id: str) -> str:
    """Return the id of a project's default group, made now if it has none."""
    row = tx.one(
        "SELECT id FROM records WHERE kind = 'security_group' AND owner = ? AND name = ?",
        project_id,
        DEFAULT,
    )
    if row is not None:
        return str(row[0])
    group = _record(project_id, name=DEFAULT, description="Default security group", stateful=True)
    group["shared"] = False
    tx.insert("security_group", group)
    _open_egress(tx, group)
    for ethertype in ("IPv4", "IPv6"):
        _add_rule(tx, group, direction="ingress", ethertype=ethertype, remote_group_id=group["id"])
    return str(group["id"])


def _record(project_id: str, **values: Any) -> Doc:
    now = time.time()
    common: Doc = {"id": str(uuid.uuid4()), "project_id": project_id, "tags": []}
    return {**common, **values, "revision_number": 1, "created_at": now, "updated_at": now}


def _add_rule(tx: Tx, group: Doc, **values: Any) -> Doc:
    rule = _record(group["project_id"], security_group_id=group["id"], description="")
    rule.update(dict.fromkeys(_IDENTITY), **values)
    return tx.insert("security_group_rule", rule)


def _open_egress(tx: Tx, group: Doc) -> None:
    for ethertype in ("IPv4", "IPv6"):
        _add_rule(tx, group, direction="egress", ethertype=ethertype)


class SecurityGroups(Kind):
    name = "security_group"
    noun = "Security Group"
    attrs = {"stateful": Attr(bool, True)}

    def create(self, tx: Tx, caller: Caller, asked: Doc) -> Doc:
        doc = self.new(caller, self.checked(caller, asked, new=True))
        doc["shared"] = False
        if doc["name"] == DEFAULT:
            raise base.conflict(
                "Default security group already exists.", "SecurityGroupDefaultAlreadyExists"
            )
        default_group(tx, doc["project_id"])
        tx.insert(self.name, doc)
        _open_egress(tx, doc)
        return doc

    def update(self, tx: Tx, caller: Caller, doc: Doc, changes: Doc) -> Doc:
        name = changes.get("name", doc["name"])
        if name != doc["name"] and DEFAULT in (name, doc["name"]):
            raise base.conflict(
                "Updating default security group not allowed.",
                "SecurityGroupCannotUpdateDefault",
            )
        return super().update(tx, caller, doc, changes)

    def delete(self, tx: Tx, caller: Caller, doc: Doc) -> None:
        if doc["name"] == DEFAULT and not caller.is_admin:
            raise base.conflict(
                "Insufficient rights for removing default security group.",
                "SecurityGroupCannotRemoveDefault",
            )
        # Ports have groups of their own project only.
        used = tx.one(
            "SELECT 1 FROM records WHERE kind = 'port' AND owner = ? AND doc LIKE ? LIMIT 1",
            doc["project_id"],
            f'%"{doc["id"]}"%',
        )
        if used is not None:
            raise base.conflict(f"Security Group {doc['id']} in use.", "SecurityGroupInUse")
        for rule in tx.find("security_group_rule", owner=doc["project_id"]):
            if doc["id"] in (rule["security_group_id"], rule["remote_group_id"]):
                tx.remove("security_group_rule", rule["id"])
        super().delete(tx, caller, doc)

    def view(self, tx: Tx, caller: Caller, doc: Doc) -> Doc:
        shown = super().view(tx, caller, doc)
        rules = tx.find("security_group_rule", parent=doc["id"])
        shown["security_group_rules"] = [rule_view(rule) for rule in rules]
        return shown


def rule_view(doc: Doc) -> Doc:
    """Return a rule as the API shows it."""
    shown = {**doc, "tenant_id": doc["project_id"]}
    shown["created_at"] = http.isotime(doc["created_at"])
    shown["updated_at"] = http.isotime(doc["updated_at"])
    shown.update(remote_address_group_id=None, normalized_cidr=doc["remote_ip_prefix"])
    shown["belongs_to_default_sg"] = False
    return shown


class SecurityGroupRules(Kind):
    name = "security_group_rule"
    noun = "Security Group Rule"
    attrs = {
        "security_group_id": Attr(str, put=False),
        "direction": Attr(str, put=False),
        "ethertype": Attr(str, "IPv4", put=False),
        "protocol": Attr(object, put=False),
        "port_range_min": Attr(object, put=False),
        "port_range_max": Attr(object, put=False),
        "remote_ip_prefix": Attr(str, put=False),
        "remote_group_id": Attr(str, put=False),
        "remote_address_group_id": Attr(str, put=False),
    }

    def __init__(self, groups: SecurityGroups):
        self._groups = groups

    def create(self, tx: Tx, caller: Caller, asked: Doc) -> Doc:
        asked = self.checked(caller, asked, new=True)
        group = self._groups.get(tx, caller, str(asked.get("security_group_id")))
        doc = self.new(caller, asked)
        doc["project_id"] = group["project_id"]
        doc.pop("remote_address_group_id")
        doc.pop("name")
        _check_rule(doc)
        if doc["remote_group_id"]:
            self._groups.get(tx, caller, doc["remote_group_id"])
        for other in tx.find(self.name, parent=group["id"]):
            if all(other[key] == doc[key] for key in _IDENTITY):
                raise base.conflict(
                    f"Security group rule already exists. Rule id is {other['id']}.",
                    "SecurityGroupRuleExists",
                )
        return tx.insert(self.name, doc)

    def candidates(self, tx: Tx, caller: Caller, params: dict[str, list[str]]) -> list[Doc]:
        if "security_group_id" in params:
            return tx.find(self.name, parent=params["security_group_id"])
        return super().candidates(tx, caller, params)

    def view(self, tx: Tx, caller: Caller, doc: Doc) -> Doc:
        return rule_view(doc)


def _check_rule(doc: Doc) -> None:
    if doc["direction"] not in ("ingress", "egress"):
        raise base.invalid_input(f"direction must be ingress or egress, not '{doc['direction']}'")
    names = {"ipv4": "IPv4", "ipv6": "IPv6"}
    doc["ethertype"] = names.get(str(doc["ethertype"]).lower())
    if doc["ethertype"] is None:
        raise base.invalid_input("ethertype must be IPv4 or IPv6")
    if doc["protocol"] is not None:
        doc["protocol"] = str(doc["protocol"]).lower()
        if doc["protocol"] in ("any", "-1", ""):
            doc["protocol"] = None
        elif doc["protocol"] not in PROTOCOLS and not _is_number(doc["protocol"], 255):
            raise base.bad_request(
                f"Security group rule protocol {doc['protocol']} not supported. Only protocol "
                f"values {', '.join(PROTOCOLS)} and integer representations [0 to 255] are "
                "supported.",
                "SecurityGroupRuleInvalidProtocol",
            )
    _check_ports(doc)
    if doc["remote_ip_prefix"] and doc["remote_group_id"]:
        raise Fault(
            400,
            "Only remote_ip_prefix or remote_group_id may be provided.",
            "SecurityGroupMultipleRemoteEntites",
        )
    if doc["remote_ip_prefix"]:
        try:
            prefix = ipaddress.ip_network(doc["remote_ip_prefix"], strict=False)
        except ValueError as error:
            raise base.invalid_input(
                f"'{doc['remote_ip_prefix']}' is not a valid IP subnet"
            ) from error
        if f"IPv{prefix.version}" != doc["ethertype"]:
            raise base.bad_request(
                f"Conflicting value ethertype {doc['ethertype']} for CIDR {prefix}",
                "SecurityGroupRuleParameterConflict",
            )
        doc["remote_ip_prefix"] = str(prefix)


def _is_number(text: str, most: int) -> bool:
    return text.isdecimal() and int(text) <= most


def _is_range(low: int | None, high: int | None) -> bool:
    return low is not None and high is not None and low <= high


def _check_ports(doc: Doc) -> None:
    for key in ("port_range_min", "port_range_max"):
        value = doc[key]
        if value is None:
            continue
        if isinstance(value, bool) or not _is_number(str(value), 65535):
            raise base.bad_request(
                f"Invalid value for port {value}", "SecurityGroupInvalidPortValue"
            )
        doc[key] = int(value)
    low, high = doc["port_range_min"], doc["port_range_max"]
    icmp = (doc["protocol"] or "").endswith(("icmp", "icmpv6")) or doc["protocol"] in ("1", "58")
    if (low is not None or high is not None) and doc["protocol"] is None:
        raise base.bad_request(
            "Port range cannot be specified without protocol.",
            "SecurityGroupProtocolRequiredWithPorts",
        )
    if icmp:
        _check_icmp(low, high)
    elif (low is not None or high is not None) and not _is_range(low, high):
        raise base.bad_request(
            "For TCP/UDP protocols, port_range_min must be <= port_range_max",
            "SecurityGroupInvalidPortRange",
        )


def _check_icmp(kind: int | None, code: int | None) -> None:
    """For ICMP the two ports are the message's type and code."""
    for name, value in (("type", kind), ("code", code)):
        if value is not None and value > 255:
            raise base.bad_request(
                f"Invalid value for ICMP {name} (port-range) {value}. It must be 0 to 255.",
                "SecurityGroupInvalidIcmpValue",
            )
    if code is not None and kind is None:
        raise base.bad_request(
            f"ICMP code (port-range-max) {code} is provided but ICMP type (port-range-min) is "
            "missing.",
            "SecurityGroupMissingIcmpType",
        )
