# SPDX-License-Identifier: Apache-2.0
"""A volume that a server has or is to have, as its disk or as one more."""

from dataclasses import dataclass
from typing import ClassVar

from novalite.objects import base


@base.register
@dataclass(slots=True)
class BlockDevice:
    """One volume of a server; disks that the hypervisor itself keeps are not listed.

    ``source_type`` tells where it comes from: an existing ``volume`` (``source_id`` and at once
    ``volume_id``), a copy of an ``image`` (``source_id``) or ``blank``; ``volume_size`` is in GB.
    ``boot_index`` 0 is the disk that the server boots from. The compute fills in the rest:
    ``volume_id`` and ``attachment_id`` of block storage, ``path`` on the host.
    """

    VERSION: ClassVar[str] = "1.0"

    source_type: str
    source_id: str | None = None
    volume_size: int | None = None
    volume_type: str | None = None
    boot_index: int | None = None
    delete_on_termination: bool = False
    device_name: str = ""
    tag: str | None = None
    volume_id: str | None = None
    attachment_id: str | None = None
    path: str = ""

    @property
    def is_root(self) -> bool:
        """Whether the server boots from it."""
        return self.boot_index == 0

    @property
    def is_brought(self) -> bool:
        """Whether the user brought the volume; otherwise it is made for the server."""
        return self.source_type == "volume"


def names(first: int, count: int) -> list[str]:
    """Return the names of *count* disks on the virtio bus, from number *first* on: vda is 0."""
    return ["vd" + chr(ord("a") + number) for number in range(first, first + count)]
