# SPDX-License-Identifier: Apache-2.0
"""Client of network v2.0 (Neutron, or the stand-in): checks, makes and gives back ports.

Used by the API (validate, security_groups), the compute (allocate, deallocate) and, for hosts that
are down, the conductor (deallocate). It asks with novalite's own account, so it keeps projects
apart itself. Holds no state but the names of networks, so any process may take over from another.
"""

import ipaddress
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Set
from typing import Any

from oslo_config import cfg

from novalite import context, exception
from novalite.network import allocation, validation
from novalite.network.neutron import Neutron, Record
from novalite.objects.instance import NetworkInfo
from novalite.objects.request_spec import NetworkRequest

LOG = logging.getLogger(__name__)

DEFAULT_GROUP = "default"
CACHE_SIZE = 1000


class NetworkClient:
    """See the module."""

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], float] = time.monotonic):
        self._conf = conf
        self._clock = clock
        self._neutron = Neutron(conf)
        self._lock = threading.Lock()
        self._names: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def validate(
        self,
        ctxt: context.RequestContext,
        requested: list[NetworkRequest] | None,
        count: int,
    ) -> list[NetworkRequest]:
        """Return what the servers will get, each request with its network; None asks for "auto".

        Without any network service (noauth2, nothing configured: a benchmark) "auto" is no network.

        :param count: how many servers are asked for at one time
        :raises exception.NetworkInBodyNotFound: unknown, or not the project's to use
        :raises exception.PortInBodyNotFound: unknown, or another project's
        :raises exception.PortInUse: the port has a device, or is named twice
        :raises exception.NetworkAmbiguous: "auto" and several networks
        :raises exception.Invalid: an address that is wrong or taken, a network without subnets,
            a port without addresses, one port or address for several servers
        :raises exception.ExternalNetworkAttachForbidden: an external network that is not shared
        :raises exception.NeighborUnavailable: the network service cannot be asked
        """
        if requested is not None and not requested:
            return []
        if self._neutron.absent:
            _refuse_all(requested or [])
            return []
        if requested is None:
            return validation.automatic(self._neutron, ctxt)
        return validation.validate(self._neutron, ctxt, requested, count)

    def security_groups(self, ctxt: context.RequestContext, names: Iterable[str]) -> list[str]:
        """Return the ids of the project's security groups, given by name or id.

        Nothing, or ``default`` alone, gives []: the network service itself puts a port without
        groups into its project's default group.

        :raises exception.SecurityGroupInBodyNotFound: the project has no such group
        :raises exception.SecurityGroupNotUnique: it has several of that name
        :raises exception.NeighborUnavailable: the network service cannot be asked
        """
        wanted = list(dict.fromkeys(names))
        if not wanted or wanted == [DEFAULT_GROUP]:
            return []
        if self._neutron.absent:
            raise exception.SecurityGroupInBodyNotFound(name=wanted[0])
        groups = self._neutron.list(
            ctxt, "security-group", project_id=ctxt.project_id, fields=["id", "name"]
        )
        return list(dict.fromkeys(_group_id(groups, name) for name in wanted))

    def allocate(
        self,
        ctxt: context.RequestContext,
        instance_uuid: str,
        host: str,
        requested: list[NetworkRequest],
        security_groups: list[str],
        availability_zone: str | None = None,
    ) -> list[NetworkInfo]:
        """Give a server its ports, bound to *host*; the order is that of the requests.

        Ports that an earlier attempt has made are used again, surplus ones deleted. If one port
        cannot be had, what this call has made or bound is given back. Without requests nothing is
        asked of the network service.

        :param requested: as :meth:`validate` returned it
        :param security_groups: names or ids, for the ports that are made
        :raises exception.NeighborError: the network service refuses; status and reason are in it
        :raises exception.NeighborUnavailable: the network service cannot be used now
        :raises exception.PortInUse: a brought port has been given to another device meanwhile
        """
        if not requested:
            return []
        if self._neutron.absent:
            _refuse_all(requested)
        started = time.monotonic()
        # Asked first: nothing that can fail may follow once the ports are made.
        names = self._network_names(ctxt, {str(request.network_id) for request in requested})
        work = allocation.Allocation(
            self._neutron,
            ctxt,
            instance_uuid,
            host,
            f"compute:{availability_zone or self._conf.default_availability_zone}",
            self.security_groups(ctxt, security_groups),
        )
        made = work.run(requested)
        LOG.debug(
            "Took %.2f seconds to allocate network for instance %s.",
            time.monotonic() - started,
            instance_uuid,
        )
        return [_info(request, port, names) for request, port in made]

    def deallocate(
        self,
        ctxt: context.RequestContext,
        instance_uuid: str,
        brought_ports: Set[str] = frozenset(),
        host: str | None = None,
    ) -> None:
        """Delete the server's ports that novalite made, take it off those that the user brought.

        Having none is success, so it may be called again. Every port is tried; the first error is
        raised in the end.

        :param brought_ports: ids that must not be deleted even if they carry novalite's mark
        :param host: only ports bound to this host; a host that has lost a build uses it, since
            the ports may be the next host's by now
        :raises exception.NeighborError: the network service refuses
        :raises exception.NeighborUnavailable: the network service cannot be used now
        """
        if self._neutron.absent:
            return
        first: exception.NovaliteException | None = None
        for port in self._neutron.list(ctxt, "port", device_id=instance_uuid):
            if host is not None and port.get("binding:host_id") != host:
                continue
            try:
                allocation.release(self._neutron, ctxt, port, brought_ports)
            except exception.NovaliteException as error:
                first = first or error
        if first is not None:
            raise first

    def _network_names(self, ctxt: context.RequestContext, ids: set[str]) -> dict[str, str]:
        now = self._clock()
        with self._lock:
            known = {key: self._names[key][1] for key in ids if self._fresh(key, now)}
        missing = sorted(ids - set(known))
        if missing:
            found = self._neutron.list(ctxt, "network", id=missing, fields=["id", "name"])
            expires = now + float(self._conf.neutron.network_cache_time)
            with self._lock:
                for network in found:
                    known[network["id"]] = network["name"]
                    self._names[network["id"]] = (expires, network["name"])
                while len(self._names) > CACHE_SIZE:
                    self._names.popitem(last=False)
        return known

    def _fresh(self, network_id: str, now: float) -> bool:
        return network_id in self._names and self._names[network_id][0] > now


def _refuse_all(requested: list[NetworkRequest]) -> None:
    """Say that what was asked for does not exist, as there is no network service."""
    for request in requested:
        if request.port_id:
            raise exception.PortInBodyNotFound(port_id=request.port_id)
        raise exception.NetworkInBodyNotFound(network_id=request.network_id)


def _group_id(groups: list[Record], wanted: str) -> str:
    named = [group["id"] for group in groups if wanted == group["name"]]
    if len(named) > 1:
        raise exception.SecurityGroupNotUnique(name=wanted)
    if wanted in {group["id"] for group in groups}:
        return wanted
    if not named:
        raise exception.SecurityGroupInBodyNotFound(name=wanted)
    return str(named[0])


def _info(request: NetworkRequest, port: Record, names: dict[str, str]) -> NetworkInfo:
    addresses: list[dict[str, Any]] = [
        {
            "ip_address": item["ip_address"],
            "subnet_id": item["subnet_id"],
            "version": ipaddress.ip_address(item["ip_address"]).version,
        }
        for item in port["fixed_ips"]
    ]
    return NetworkInfo(
        port_id=port["id"],
        network_id=port["network_id"],
        network_name=names.get(str(port["network_id"]), ""),
        mac_address=port["mac_address"],
        fixed_ips=addresses,
        vif_type=port.get("binding:vif_type") or "ovs",
        owned=request.port_id is None,
        tag=request.tag,
    )
