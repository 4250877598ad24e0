# SPDX-License-Identifier: Apache-2.0
"""One node: a connection to libvirt, the node's numbers, its domains and its disks.

``driver`` holds one of these for each node. The only thing remembered here that libvirt does not
remember is the sum that thin disks may still grow by, because asking for every disk would make
the numbers of a full host dearer than those of an empty one.
"""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lxml import etree

from novalite import exception
from novalite.virt.driver import GuestInfo, HostResources
from novalite.virt.libvirt import config
from novalite.virt.libvirt.guest import Guest, translated

POOL = "novalite"


class Host:
    """One node. :meth:`connect` comes first; after it all methods may be called from any thread.

    Every method may raise HypervisorError.
    """

    def __init__(self, libvirt: Any, node: str, uri: str, directory: Path):
        """Remember where to connect to.

        :param directory: takes the disks and console logs of the node
        """
        self.node = node
        self._libvirt = libvirt
        self._uri = uri
        self._directory = directory
        self._connection: Any = None
        self._pool: Any = None
        self._lock = threading.Lock()
        # instance uuid -> name of the disk -> bytes that it may still grow by
        self._growth: dict[str, dict[str, int]] = {}
        self._promised = 0
        self._cpu_info: dict[str, Any] = {}
        self._supported: list[list[str]] = []

    def connect(self) -> None:
        """Connect and read what is there once: capabilities and disks.

        :raises ConfigurationError: the directory cannot be made
        """
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise exception.ConfigurationError(
                f"state_path: cannot make {self._directory}: {error.strerror}"
            ) from error
        self._growth, self._promised = {}, 0
        with translated(self._libvirt):
            self._connection = self._libvirt.open(self._uri)
            self._pool = self._find_pool()
            for volume in self._pool.listAllVolumes(0):
                self._add_growth(volume)
        self.refresh()

    def _find_pool(self) -> Any:
        try:
            return self._connection.storagePoolLookupByName(POOL)
        except self._libvirt.libvirtError as error:
            if error.get_error_code() != self._libvirt.VIR_ERR_NO_STORAGE_POOL:
                raise
        return self._connection.storagePoolCreateXML(config.pool_xml(POOL, str(self._directory)), 0)

    # Numbers

    def refresh(self) -> None:
        """Read the capabilities again; they change only with the host itself."""
        with translated(self._libvirt):
            capabilities = etree.fromstring(self._connection.getCapabilities())
        self._cpu_info = _cpu_info(capabilities)
        self._supported = _supported_instances(capabilities)

    def resources(self) -> HostResources:
        """Return the node's numbers; no domain and no disk is looked at."""
        with translated(self._libvirt):
            _model, memory_mb, vcpus, *_ = self._connection.getInfo()
            _state, capacity, _allocation, available = self._pool.info()
            version = self._connection.getVersion()
            kind = self._connection.getType()
        return HostResources(
            vcpus=vcpus,
            memory_mb=memory_mb,
            local_gb=capacity // config.GIB,
            disk_available_least=(available - self._promised) // config.GIB,
            hypervisor_type=kind,
            hypervisor_version=version,
            cpu_info=self._cpu_info,
            supported_instances=self._supported,
        )

    @staticmethod
    def uptime() -> str:
        """Return the machine's time, how long it runs and its load, as ``uptime`` prints them."""
        seconds = int(float(Path("/proc/uptime").read_text().split()[0]))
        load = ", ".join(Path("/proc/loadavg").read_text().split()[:3])
        days, rest = divmod(seconds, 86400)
        ran = f"{days} days, " if days else ""
        ran += f"{rest // 3600}:{rest % 3600 // 60:02}"
        return f" {time.strftime('%H:%M:%S')} up {ran},  0 users,  load average: {load}"

    def cpu_models(self) -> list[str]:
        """Return the names of the CPU models that the hypervisor knows."""
        with translated(self._libvirt):
            return list(self._connection.getCPUModelNames(self._cpu_info["arch"], 0))

    # Domains

    def guest(self, instance_uuid: str) -> Guest | None:
        """Return the domain of this server, or None."""
        with translated(self._libvirt, instance_uuid):
            try:
                domain = self._connection.lookupByUUIDString(instance_uuid)
            except self._libvirt.libvirtError as error:
                if error.get_error_code() != self._libvirt.VIR_ERR_NO_DOMAIN:
                    raise
                return None
        return Guest(self._libvirt, domain)

    def guests(self) -> list[GuestInfo]:
        """Return what there is to know of all guests of ours."""
        with translated(self._libvirt):
            domains = self._connection.listAllDomains(0)
        found = (Guest(self._libvirt, domain).info(self.node) for domain in domains)
        return [info for info in found if info is not None]

    def define(self, xml: str) -> Guest:
        """Define a domain; nothing is started."""
        with translated(self._libvirt):
            return Guest(self._libvirt, self._connection.defineXML(xml))

    def console(self, guest: Guest) -> bytes:
        """Return what waits in the guest's console."""
        with translated(self._libvirt, guest.instance_uuid):
            stream = self._connection.newStream(self._libvirt.VIR_STREAM_NONBLOCK)
        return guest.console(stream)

    def console_log(self, instance_uuid: str) -> Path:
        """Return the file for what the server writes to its console."""
        return self._directory / f"{instance_uuid}_console.log"

    # Disks

    def disks(self, instance_uuid: str, sizes: Sequence[tuple[str, int]]) -> list[config.Disk]:
        """Return the disks of these names and sizes as this node would keep them."""
        return [
            config.Disk(name, size, str(self._directory / f"{instance_uuid}_{name}"))
            for name, size in sizes
        ]

    def create_disk(self, instance_uuid: str, disk: config.Disk) -> None:
        """Make a thin disk."""
        with translated(self._libvirt, instance_uuid):
            xml = config.volume_xml(f"{instance_uuid}_{disk.name}", disk.size)
            self._add_growth(self._pool.createXML(xml, 0))

    def delete_disks(self, instance_uuid: str) -> None:
        """Remove all disks of the server; harmless when there are none."""
        for name in list(self._growth.get(instance_uuid, ())):
            with translated(self._libvirt, instance_uuid):
                try:
                    self._pool.storageVolLookupByName(f"{instance_uuid}_{name}").delete(0)
                except self._libvirt.libvirtError as error:
                    if error.get_error_code() != self._libvirt.VIR_ERR_NO_STORAGE_VOL:
                        raise
            self._drop_growth(instance_uuid, name)

    def _add_growth(self, volume: Any) -> None:
        _type, capacity, allocation = volume.info()
        instance_uuid, _, name = volume.name().partition("_")
        with self._lock:
            self._growth.setdefault(instance_uuid, {})[name] = capacity - allocation
            self._promised += capacity - allocation

    def _drop_growth(self, instance_uuid: str, name: str) -> None:
        with self._lock:
            disks = self._growth.get(instance_uuid, {})
            self._promised -= disks.pop(name, 0)
            if not disks:
                self._growth.pop(instance_uuid, None)


def _cpu_info(capabilities: Any) -> dict[str, Any]:
    cpu = capabilities.find("host/cpu")
    topology = cpu.find("topology")
    sizes = {} if topology is None else {key: int(value) for key, value in topology.items()}
    return {
        "arch": cpu.findtext("arch"),
        "model": cpu.findtext("model"),
        "vendor": cpu.findtext("vendor"),
        "topology": {"cells": int(capabilities.find("host/topology/cells").get("num")), **sizes},
        "features": sorted(feature.get("name") for feature in cpu.iterfind("feature")),
    }


def _supported_instances(capabilities: Any) -> list[list[str]]:
    return [
        [arch.get("name"), domain.get("type"), guest.findtext("os_type")]
        for guest in capabilities.iterfind("guest")
        for arch in guest.iterfind("arch")
        for domain in arch.iterfind("domain")
    ]
