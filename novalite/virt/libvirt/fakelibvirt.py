# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the ``libvirt`` bindings: same calls, same errors, guests that only play.

``virt.loader`` makes one :class:`FakeLibvirt` and hands it to the driver in the place of the
module ``libvirt``; nobody else may know that it is not the real one. It has the calls that the
driver uses, in the shape of the real API. Domains live in the file of ``fakestore``. A slow or
broken hypervisor is played as [fake_libvirt] says.
"""

import sqlite3
import threading
from pathlib import Path
from typing import Any

from lxml import etree
from oslo_config import cfg

from novalite.virt.libvirt import fakehost, fakenode, fakestore
from novalite.virt.libvirt.fakedomain import no_domain, virDomain, virStream
from novalite.virt.libvirt.fakenode import Constants, Node, libvirtError
from novalite.virt.libvirt.fakestorage import virStoragePool


class FakeLibvirt(Constants):
    """The module."""

    libvirtError = libvirtError

    def __init__(self, conf: cfg.ConfigOpts, host: str):
        """Read the options; the file is opened by the first :meth:`open`.

        :param host: name of the service host; names the store, and the node unless nodes are set
        """
        self._play = fakenode.Play(fakenode.read_settings(conf))
        self._nodes: list[str] = list(dict.fromkeys(conf.fake_libvirt.nodes)) or [host]
        default = Path(conf.state_path) / f"fake_libvirt-{host}.db"
        self._path = Path(conf.fake_libvirt.store or default)
        self._store: fakestore.Store | None = None
        self._lock = threading.Lock()

    def uris(self) -> dict[str, str]:
        """Return the connection of each node that this hypervisor plays."""
        return {node: f"fake:///{node}" for node in self._nodes}

    def reload(self, conf: cfg.ConfigOpts) -> None:
        """Read the options again; nodes and store stay."""
        self._play.settings = fakenode.read_settings(conf)

    def open(self, name: str) -> "virConnect":
        """Connect to the node of a uri from :meth:`uris`."""
        node = name.removeprefix("fake:///")
        if node not in self._nodes:
            raise libvirtError(f"no connection driver for {name}", self.VIR_ERR_INTERNAL_ERROR)
        return virConnect(Node(node, self._opened(), self._play))

    def _opened(self) -> fakestore.Store:
        with self._lock:
            if self._store is None:
                try:
                    self._store = fakestore.Store(self._path)
                except (OSError, sqlite3.Error) as error:
                    raise libvirtError(
                        f"cannot open the store {self._path}: {error}", self.VIR_ERR_SYSTEM_ERROR
                    ) from error
            return self._store

    def close(self) -> None:
        """Close the file; connections are of no use any more."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None


class virConnect:
    """A connection to one node."""

    def __init__(self, node: Node):
        self._node = node

    def getHostname(self) -> str:
        """Return the name of the node."""
        return self._node.name

    def getType(self) -> str:
        """Return the kind of hypervisor."""
        return "QEMU"

    def getVersion(self) -> int:
        """Return QEMU's version: major * 1000000 + minor * 1000 + release."""
        return fakehost.QEMU_VERSION

    def getLibVersion(self) -> int:
        """Return libvirt's version in the same way."""
        return fakehost.LIBVIRT_VERSION

    def getInfo(self) -> list[Any]:
        """Return model, memory in MB, threads, MHz, NUMA nodes, sockets, cores, threads."""
        settings = self._node.play.settings
        return [fakehost.ARCH, settings.memory_mb, settings.vcpus, 2400, 1, 1, settings.vcpus, 1]

    def getCapabilities(self) -> str:
        """Return the capabilities as XML."""
        return fakehost.capabilities(self._node.name, self._node.play.settings.vcpus)

    def getCPUModelNames(self, arch: str, flags: int = 0) -> list[str]:
        """Return the names of the CPU models for *arch*."""
        return list(fakehost.CPU_MODELS) if arch == fakehost.ARCH else []

    def defineXML(self, xml: str) -> "virDomain":
        """Define a domain, or give the one with this uuid a new definition."""
        try:
            parsed = fakehost.parse_domain(xml)
        except (etree.XMLSyntaxError, ValueError) as error:
            raise libvirtError(f"XML error: {error}", Constants.VIR_ERR_XML_ERROR) from error
        row = fakestore.DomainRow(
            uuid=parsed.uuid,
            name=parsed.name,
            state=Constants.VIR_DOMAIN_SHUTOFF,
            metadata=parsed.metadata,
        )
        try:
            self._node.ask(self._node.store.define, row, parsed.xml)
        except sqlite3.IntegrityError as error:
            raise libvirtError(
                f"operation failed: domain '{parsed.name}' already exists with another uuid",
                Constants.VIR_ERR_OPERATION_FAILED,
            ) from error
        return virDomain(self._node, row, fresh=False)

    def lookupByUUIDString(self, uuidstr: str) -> "virDomain":
        """Return the domain with this uuid."""
        row = self._node.ask(self._node.store.domain, uuidstr)
        if row is None:
            raise no_domain(uuidstr)
        return virDomain(self._node, row)

    def listAllDomains(self, flags: int = 0) -> "list[virDomain]":
        """Return all domains of the node."""
        rows = self._node.ask(self._node.store.domains)
        return [virDomain(self._node, row) for row in rows]

    def newStream(self, flags: int = 0) -> virStream:
        """Return a stream; it blocks as little as VIR_STREAM_NONBLOCK says."""
        return virStream()

    def storagePoolLookupByName(self, name: str) -> "virStoragePool":
        """Return a directory for disks."""
        path = self._node.ask(self._node.store.pool_path, name)
        if path is None:
            raise libvirtError(
                f"Storage pool not found: no storage pool with matching name '{name}'",
                Constants.VIR_ERR_NO_STORAGE_POOL,
            )
        return virStoragePool(self._node, name)

    def storagePoolCreateXML(self, xmlDesc: str, flags: int = 0) -> "virStoragePool":
        """Make a directory for disks."""
        name, path = fakehost.parse_pool(xmlDesc)
        try:
            self._node.ask(self._node.store.add_pool, name, path)
        except sqlite3.IntegrityError as error:
            raise libvirtError(
                f"operation failed: pool '{name}' already exists",
                Constants.VIR_ERR_OPERATION_FAILED,
            ) from error
        return virStoragePool(self._node, name)
