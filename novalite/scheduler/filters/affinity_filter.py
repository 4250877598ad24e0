# SPDX-License-Identifier: Apache-2.0
"""Near to or away from other servers: hints and server groups. Pure."""

import functools
import ipaddress
from collections.abc import Iterable

from novalite.objects.reason import Reason
from novalite.objects.server_group import AFFINITY, ANTI_AFFINITY
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState

_NOT_SAME = Reason("not_same_host")
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _found(host: HostState, servers: Iterable[tuple[str, str | None]]) -> str | None:
    """Return a server of these that is on the host or was selected for it."""
    for instance_uuid, place in servers:
        if place == host.host or instance_uuid in host.selected:
            return instance_uuid
    return None


class DifferentHostFilter(base.Filter):
    """Passes hosts without any of the servers that the hint ``different_host`` names."""

    reads = ("different_host",)

    def applies(self, demand: Demand) -> bool:
        """Only with the hint."""
        return bool(demand.different_host)

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``not_different_host`` with the server that is there."""
        found = _found(host, demand.different_host)
        return None if found is None else Reason("not_different_host", detail=found)


class SameHostFilter(base.Filter):
    """Passes hosts with at least one of the servers that the hint ``same_host`` names."""

    reads = ("same_host",)

    def applies(self, demand: Demand) -> bool:
        """Only with the hint."""
        return bool(demand.same_host)

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``not_same_host``."""
        servers = demand.same_host
        return _NOT_SAME if servers and _found(host, servers) is None else None


class SimpleCIDRAffinityFilter(base.Filter):
    """Passes hosts in the network of the hint ``build_near_host_ip``, ``cidr`` large (/24)."""

    reads = ("near",)

    def applies(self, demand: Demand) -> bool:
        """Only with the hint."""
        return demand.near is not None

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``other_network`` with the network and the address of the host."""
        if demand.near is None:
            return None
        address = host.picture.host_ip
        if _is_in(address, demand.near):
            return None
        return Reason("other_network", detail=f"{address} is not in {demand.near}")


@functools.lru_cache(maxsize=256)
def _network(text: str) -> _Network | None:
    """Return a network; None for what is none, so that no host is in it."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


@functools.lru_cache(maxsize=65536)
def _is_in(address: str, network: str) -> bool:
    found = _network(network)
    try:
        return found is not None and ipaddress.ip_address(address) in found
    except ValueError:
        return False


class ServerGroupAntiAffinityFilter(base.Filter):
    """Passes hosts with fewer members of the group than its policy allows, as a rule none."""

    def applies(self, demand: Demand) -> bool:
        """Only members of such a group."""
        return demand.group is not None and demand.group.policy == ANTI_AFFINITY

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``group_anti_affinity`` with the members there and the most."""
        group = demand.group
        if group is None or group.policy != ANTI_AFFINITY:
            return None
        there = group.placed.get(host.host, 0)
        if there < group.max_per_host:
            return None
        most = group.max_per_host
        return Reason("group_anti_affinity", 1, most - there, most, most, None, there, 0)


class ServerGroupAffinityFilter(base.Filter):
    """Passes hosts with members of the group; all hosts while no member has one."""

    def applies(self, demand: Demand) -> bool:
        """Only members of such a group, from the second on."""
        group = demand.group
        return group is not None and group.policy == AFFINITY and bool(group.placed)

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``group_affinity`` with where the group is."""
        group = demand.group
        if group is None or group.policy != AFFINITY or not group.placed:
            return None
        if host.host in group.placed:
            return None
        return Reason("group_affinity", detail=base.listed(group.placed))
