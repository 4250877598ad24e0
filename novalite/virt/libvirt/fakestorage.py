# SPDX-License-Identifier: Apache-2.0
"""Pool and volume of the fake libvirt: where the disks of the guests would be.

``fakelibvirt`` makes these objects, the driver calls them.
"""

import sqlite3

from novalite.virt.libvirt import fakehost
from novalite.virt.libvirt.fakenode import Constants, Node, libvirtError


class virStoragePool:
    """A directory for disks. Its thin disks take no space until a guest writes, and these guests
    do not write: the allocation is always 0."""

    def __init__(self, node: Node, name: str):
        self._node = node
        self._name = name

    def info(self) -> list[int]:
        """Return state (2 is running), capacity, allocation and available bytes."""
        capacity = self._node.play.settings.local_gb * 1024**3
        return [2, capacity, 0, capacity]

    def createXML(self, xmlDesc: str, flags: int = 0) -> "virStorageVol":
        """Make a disk."""
        name, capacity = fakehost.parse_volume(xmlDesc)
        try:
            self._node.ask(self._node.store.add_volume, self._name, name, capacity)
        except sqlite3.IntegrityError as error:
            raise libvirtError(
                f"storage volume '{name}' exists already", Constants.VIR_ERR_STORAGE_VOL_EXIST
            ) from error
        return virStorageVol(self._node, self._name, name, capacity)

    def storageVolLookupByName(self, name: str) -> "virStorageVol":
        """Return a disk."""
        capacity = self._node.ask(self._node.store.volume_capacity, self._name, name)
        if capacity is None:
            raise _no_volume(name)
        return virStorageVol(self._node, self._name, name, capacity)

    def listAllVolumes(self, flags: int = 0) -> "list[virStorageVol]":
        """Return all disks."""
        found = self._node.ask(self._node.store.volumes, self._name)
        return [virStorageVol(self._node, self._name, *volume) for volume in found]


def _no_volume(name: str) -> libvirtError:
    return libvirtError(
        f"Storage volume not found: no storage vol with matching name '{name}'",
        Constants.VIR_ERR_NO_STORAGE_VOL,
    )


class virStorageVol:
    """A disk."""

    def __init__(self, node: Node, pool: str, name: str, capacity: int):
        self._node = node
        self._pool = pool
        self._name = name
        self._capacity = capacity

    def name(self) -> str:
        """Return the name."""
        return self._name

    def info(self) -> list[int]:
        """Return type (0 is a file), capacity and allocation in bytes."""
        return [0, self._capacity, 0]

    def delete(self, flags: int = 0) -> int:
        """Remove the disk."""
        if not self._node.ask(self._node.store.remove_volume, self._pool, self._name):
            raise _no_volume(self._name)
        return 0
