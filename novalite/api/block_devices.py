# SPDX-License-Identifier: Apache-2.0
"""The disks that POST /servers asks for: the image to boot from, and volumes.

``parse`` looks at the body alone and is called by server_request; ``prepare`` asks image service
and block storage and is called by operations before anything is stored. The texts are Nova's. A
field is never ignored: it works, or it is refused.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from novalite import context as context_module
from novalite import exception
from novalite.api.parts import Parts
from novalite.objects import block_device
from novalite.objects.block_device import BlockDevice
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import ImageMeta
from novalite.volume import errors

ROOT = "/dev/vda"
_GIB = 2**30
# So many disks have a name of one letter.
_LETTERS = 26
_NAME = re.compile(r"^(/dev/)?(vd[a-z])$")


@dataclass(slots=True)
class Disks:
    """``image_id`` is the image that the boot disk is or is made from, "" if that is a volume of
    the user's; ``devices`` are the volumes."""

    image_id: str = ""
    devices: list[BlockDevice] = field(default_factory=list)

    @property
    def volume_backed(self) -> bool:
        """Whether the server boots from a volume."""
        return any(device.is_root for device in self.devices)


# -- the body


def parse(server: dict[str, Any], count: int) -> Disks:
    """Read which disks are wanted.

    :param count: how many servers are asked for
    :raises exception.Invalid: they cannot be had
    """
    image = str(server.get("imageRef") or "")
    legacy = server.get("block_device_mapping") or []
    mappings = server.get("block_device_mapping_v2") or []
    if legacy and mappings:
        raise exception.InvalidInput(
            "Using different block_device_mapping syntaxes is not allowed in the same request."
        )
    if not legacy and not mappings:
        if not image:
            raise exception.InvalidInput("Missing imageRef attribute")
        return Disks(image)
    if legacy:
        devices = _legacy(legacy, image)
    else:
        devices = _devices(mappings, image)
    brought = [device.volume_id for device in devices if device.is_brought]
    if brought and count > 1:
        raise errors.InvalidBDM("Cannot attach one or more volumes to multiple instances")
    if len(set(brought)) < len(brought):
        raise errors.InvalidBDMFormat(details="One volume cannot be used twice.")
    disks = Disks(image, devices)
    for device in devices:
        if device.is_root and device.source_type == "image" and not image:
            disks.image_id = str(device.source_id)
    return disks


def _legacy(mappings: list[dict[str, Any]], image: str) -> list[BlockDevice]:
    """Read the old syntax: volumes by device name; without an image the root is among them."""
    devices = []
    for mapping in mappings:
        if mapping.get("no_device"):
            raise errors.InvalidBDMFormat(details="no_device: images here define no devices.")
        if mapping.get("snapshot_id"):
            raise errors.InvalidBDMSnapshot(id=mapping["snapshot_id"])
        if not mapping.get("volume_id"):
            raise errors.InvalidBDMFormat(details="Missing device UUID.")
        devices.append(_device("volume", mapping, mapping["volume_id"]))
    if not image:
        roots = [device for device in devices if device.device_name in (ROOT, "")]
        if not roots:
            raise errors.InvalidBDMBootSequence()
        roots[0].boot_index, roots[0].device_name = 0, ROOT
    return devices


def _devices(mappings: list[dict[str, Any]], image: str) -> list[BlockDevice]:
    devices, indexes = [], []
    for mapping in mappings:
        source = mapping.get("source_type")
        if not source:
            raise errors.InvalidBDMFormat(details="Invalid source_type field.")
        default = "volume" if source in ("volume", "snapshot") else "local"
        destination = mapping.get("destination_type", default)
        _check(mapping, source, destination)
        index = mapping.get("boot_index")
        index = int(index) if index not in (None, "") else -1
        if index >= 0:
            indexes.append(index)
        if destination == "local":
            _check_local(mapping, index, image)
            continue
        device = _device(source, mapping, mapping.get("uuid") or mapping.get(f"{source}_id"))
        device.boot_index = index if index >= 0 else None
        devices.append(device)
    if sorted(indexes) != list(range(len(indexes))) or not indexes:
        raise errors.InvalidBDMBootSequence()
    return devices


def _device(source: str, mapping: dict[str, Any], key: Any) -> BlockDevice:
    name = mapping.get("device_name") or ""
    found = _NAME.match(name)
    if name and not found:
        raise errors.InvalidDevicePath(path=name)
    size = mapping.get("volume_size")
    return BlockDevice(
        source_type=source,
        source_id=key or None,
        volume_id=key if source == "volume" else None,
        volume_size=int(size) if size not in (None, "") else None,
        volume_type=mapping.get("volume_type") or None,
        delete_on_termination=_truth(mapping.get("delete_on_termination")),
        device_name=f"/dev/{found[2]}" if found else "",
        tag=mapping.get("tag"),
    )


def _truth(value: Any) -> bool:
    return str(value).lower() in ("1", "t", "true", "on", "y", "yes")


def _check(mapping: dict[str, Any], source: str, destination: str) -> None:
    """Refuse what no disk of this cloud can be."""
    key = mapping.get("uuid") or mapping.get(f"{source}_id")
    if mapping.get("no_device"):
        raise errors.InvalidBDMFormat(details="no_device: images here define no devices.")
    if source == "snapshot":
        raise errors.InvalidBDMSnapshot(id=key)
    if source == "blank" and key:
        raise errors.InvalidBDMFormat(details="Invalid device UUID.")
    if source != "blank" and not key:
        raise errors.InvalidBDMFormat(details="Missing device UUID.")
    if (
        mapping.get("disk_bus", "virtio") != "virtio"
        or mapping.get("device_type", "disk") != "disk"
    ):
        raise errors.InvalidBDMFormat(
            details="a disk is a disk (device_type) on virtio (disk_bus) in this cloud."
        )
    if mapping.get("guest_format"):
        raise errors.InvalidBDMFormat(details="guest_format is not supported by this cloud.")
    if destination == "volume":
        _check_volume(mapping, source)
    elif source == "volume":
        raise errors.InvalidBDMFormat(details="Mapping volume to local is not supported.")


def _check_volume(mapping: dict[str, Any], source: str) -> None:
    sized = int(mapping.get("volume_size") or 0) > 0
    if source == "image" and not sized:
        raise errors.InvalidBDM(
            "Block Device Mapping is Invalid: Images with destination_type 'volume' need to have a "
            "non-zero size specified"
        )
    if source == "blank" and not sized:
        raise errors.InvalidBDM(
            "Block Device Mapping is Invalid: Blank volumes (source: 'blank', dest: 'volume') need "
            "to have non-zero size"
        )
    if source == "blank" and str(mapping.get("boot_index")) == "0":
        raise errors.InvalidBDMBootSequence()


def _check_local(mapping: dict[str, Any], index: int, image: str) -> None:
    """Refuse a local disk that is not the one that imageRef and flavor say."""
    if mapping.get("volume_type"):
        raise errors.InvalidBDMFormat(
            details="Specifying a volume_type with destination_type=local is not supported."
        )
    if mapping.get("source_type") != "image":
        raise errors.InvalidBDMFormat(
            details="additional disks come from the flavor's ephemeral and swap sizes in this "
            "cloud."
        )
    if mapping.get("tag"):
        raise errors.InvalidBDMFormat(details="only volumes can have a tag in this cloud.")
    if not image:
        raise errors.InvalidBDMFormat(details="imageRef must name the image of the boot disk.")
    if index != 0 or (mapping.get("uuid") or mapping.get("image_id")) != image:
        raise errors.InvalidBDMBootSequence()
    if mapping.get("volume_size") or mapping.get("device_name"):
        raise errors.InvalidBDMFormat(
            details="size and name of the boot disk follow from flavor and image."
        )


# -- what needs others


def prepare(
    parts: Parts, context: context_module.RequestContext, disks: Disks, flavor: Flavor
) -> ImageMeta:
    """Check that image and volumes can be had and fit; give the volumes their names.

    A server without volumes costs one look at its image and nothing else.

    :returns: the image, or what a root volume tells of the one that it was made from
    :raises exception.Invalid: they cannot be had
    """
    if not disks.devices:
        image = parts.images.get(context, disks.image_id)
        _check_fits(flavor, image)
        return image
    image = ImageMeta()
    if disks.image_id:
        image = parts.images.get(context, disks.image_id)
    name(disks, flavor)
    for device in disks.devices:
        if device.source_type == "image":
            source = image
            if device.source_id != image.id:
                source = parts.images.get(context, str(device.source_id))
            _check_size(device, source)
    found = parts.volumes.check(context, disks.devices)
    image = image if disks.image_id else found
    _check_fits(flavor, image, local=not disks.volume_backed)
    return image


def name(disks: Disks, flavor: Flavor) -> None:
    """Give each volume a name that no other disk has: first the local ones, then the volumes.

    :raises errors.DevicePathInUse: a name was asked for that is taken
    :raises errors.InvalidBDM: there are more disks than names
    """
    local = bool(flavor.ephemeral_gb) + bool(flavor.swap_mb)
    # The root is always the first, a volume or not.
    taken = {f"/dev/{each}" for each in block_device.names(0, 1 + local)}
    for device in disks.devices:
        if device.is_root:
            device.device_name = ROOT
        elif device.device_name in taken:
            raise errors.DevicePathInUse(path=device.device_name)
        elif device.device_name:
            taken.add(device.device_name)
    for device in disks.devices:
        if not device.device_name:
            free = (f"/dev/{each}" for each in block_device.names(0, _LETTERS))
            device.device_name = next((each for each in free if each not in taken), "")
            if not device.device_name:
                raise errors.InvalidBDMFormat(details=f"more than {_LETTERS} disks.")
            taken.add(device.device_name)


def _check_size(device: BlockDevice, image: ImageMeta) -> None:
    size = int(device.volume_size or 0) * _GIB
    if size < image.min_disk * _GIB:
        raise errors.VolumeSmallerThanMinDisk(
            volume_size=size, image_min_disk=image.min_disk * _GIB
        )
    if size < image.size:
        raise errors.VolumeSmallerThanMinDisk(volume_size=size, image_min_disk=image.size)


def _check_fits(flavor: Flavor, image: ImageMeta, *, local: bool = True) -> None:
    """Refuse a flavor that is smaller than the image says it needs.

    A root disk of 0 GB has the size of the image, so nothing can be too small there.

    :raises exception.FlavorTooSmall: naming memory or disk
    """
    if image.min_ram > flavor.memory_mb:
        raise exception.FlavorTooSmall(resource="memory")
    if not local or not flavor.root_gb:
        return
    if image.min_disk > flavor.root_gb or image.size > flavor.root_gb * _GIB:
        raise exception.FlavorTooSmall(resource="disk")
