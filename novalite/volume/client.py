# SPDX-License-Identifier: Apache-2.0
"""Client of block storage v3 (Cinder, or the stand-in): checks, makes, attaches and gives back.

Used by the API (check), the compute (attach, release) and, for servers without a host, the
conductor (release). It asks with novalite's own account, so it keeps projects apart itself. Holds
no state: what was made for a server is found again by the volume's metadata, so any process may
take over from another and nothing is made twice.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from oslo_config import cfg

from novalite import context, exception, log
from novalite.objects.block_device import BlockDevice
from novalite.objects.request_spec import ImageMeta
from novalite.volume import errors
from novalite.volume.cinder import Cinder, Record

LOG = log.get(__name__)

# Metadata of the volumes that are made for a server: which server, and which of its disks.
SERVER_KEY = "novalite_server"
DEVICE_KEY = "novalite_device"
_FIRST_LOOK = 0.1
_NUMBERS = ("min_ram", "min_disk", "size")
_TEXTS = ("disk_format", "container_format")
# What a volume is while it is being made.
_MAKING = ("creating", "downloading")


class VolumeClient:
    """See the module."""

    def __init__(self, conf: cfg.ConfigOpts, wait: Callable[[float], object] | None = None):
        """Make a client.

        :param wait: lets so many seconds pass between two looks at a volume
        """
        self._conf = conf
        self._cinder = Cinder(conf)
        self._wait = wait or threading.Event().wait

    # -- for the API

    def check(self, ctxt: context.RequestContext, devices: Sequence[BlockDevice]) -> ImageMeta:
        """Refuse volumes that cannot be had; return the image that the root volume was made from.

        :raises errors.InvalidBDMVolume: there is no such volume that the project can see
        :raises errors.InvalidVolume: it is not available
        :raises errors.InvalidBDMVolumeNotBootable: a root volume that cannot be booted from
        :raises errors.VolumeTypeInBodyNotFound: there is no such type
        :raises exception.NeighborUnavailable: block storage cannot be asked
        """
        image = ImageMeta()
        if self._cinder.absent:
            raise exception.InvalidInput("There is no block storage in this cloud.")
        for device in devices:
            if device.is_brought:
                found = self._checked(ctxt, device)
                device.volume_size = int(found.get("size") or 0)
                if device.is_root:
                    image = _image_of(found)
        wanted = {device.volume_type for device in devices if device.volume_type}
        if wanted:
            known = self._cinder.types(ctxt)
            names = {each.get(key) for each in known for key in ("id", "name")}
            for missing in sorted(str(each) for each in wanted - names):
                raise errors.VolumeTypeInBodyNotFound(id_or_name=missing)
        return image

    def _checked(self, ctxt: context.RequestContext, device: BlockDevice) -> Record:
        volume_id = str(device.volume_id)
        found = self._cinder.show(ctxt, volume_id)
        owner = found and found.get("os-vol-tenant-attr:tenant_id")
        if found is None or not (ctxt.is_admin or owner == ctxt.project_id):
            raise errors.InvalidBDMVolume(id=volume_id)
        if device.is_root and found.get("bootable") != "true":
            raise errors.InvalidBDMVolumeNotBootable(id=volume_id)
        if found.get("status") != "available":
            raise errors.InvalidVolume(reason=_not_available(volume_id, found.get("status")))
        return found

    # -- for the compute

    def attach(
        self,
        ctxt: context.RequestContext,
        instance_uuid: str,
        host: str,
        devices: Sequence[BlockDevice],
        is_cancelled: Callable[[], bool],
        on_made: Callable[[], None] = lambda: None,
    ) -> list[BlockDevice]:
        """Make what is not there, wait for it, and attach all of it to the server on *host*.

        Attachments of a former attempt are deleted first; volumes that it made are used again.

        :param is_cancelled: asked while it waits
        :param on_made: called when all volumes are there and none is attached
        :returns: the devices with their volumes, attachments and paths on the host
        :raises exception.BuildCancelled: *is_cancelled* said so
        :raises errors.VolumeNotCreated: a volume is not ready in time, or is in error
        :raises errors.InvalidVolume: block storage refuses, or a volume that was there is not
            available any more
        :raises errors.VolumeDriverNotFound: this host cannot reach such a volume
        :raises exception.NeighborUnavailable: block storage cannot be used now
        """
        for each in self._cinder.attachments(ctxt, instance_uuid):
            self._cinder.detach(ctxt, each["id"])
        made = {}
        if not all(device.is_brought for device in devices):
            made = self._made_before(ctxt, instance_uuid)
        ready = []
        for device in devices:
            if not device.is_brought:
                volume = made.get(device.device_name) or self._make(ctxt, instance_uuid, device)
                device = dataclasses.replace(device, volume_id=str(volume["id"]))
            ready.append(device)
        for device in ready:
            self._wait_for(ctxt, instance_uuid, device, is_cancelled)
        on_made()
        return [self._attach(ctxt, instance_uuid, host, device) for device in ready]

    def _made_before(self, ctxt: context.RequestContext, instance_uuid: str) -> dict[str, Record]:
        found: dict[str, Record] = {}
        for volume in self._cinder.with_metadata(ctxt, {SERVER_KEY: instance_uuid}):
            name = str(volume["metadata"].get(DEVICE_KEY))
            if name in found or str(volume.get("status")).startswith("error"):
                self._delete(ctxt, instance_uuid, volume["id"], force=True)
            else:
                found[name] = volume
        return found

    def _make(
        self, ctxt: context.RequestContext, instance_uuid: str, device: BlockDevice
    ) -> Record:
        values: dict[str, Any] = {
            "size": device.volume_size,
            "name": "",
            "metadata": {SERVER_KEY: instance_uuid, DEVICE_KEY: device.device_name},
        }
        if device.source_type == "image":
            values["imageRef"] = device.source_id
        if device.volume_type:
            values["volume_type"] = device.volume_type
        volume = self._cinder.create(ctxt, values)
        LOG.info(
            "Volume %s of %s GB is made for %s",
            volume["id"],
            device.volume_size,
            device.device_name,
            context=ctxt,
            instance=instance_uuid,
        )
        return volume

    def _wait_for(
        self,
        ctxt: context.RequestContext,
        instance_uuid: str,
        device: BlockDevice,
        is_cancelled: Callable[[], bool],
    ) -> None:
        volume_id = str(device.volume_id)
        began, pause = time.monotonic(), _FIRST_LOOK
        attempts = int(self._conf.block_device_allocate_retries) + 1
        for attempt in range(1, attempts + 1):
            if is_cancelled():
                raise exception.BuildCancelled(instance_uuid=instance_uuid)
            found = self._cinder.show(ctxt, volume_id)
            status = str(found.get("status")) if found else "deleted"
            if status == "available":
                return
            if status not in _MAKING or attempt == attempts:
                break
            self._wait(pause)
            pause = min(2 * pause, float(self._conf.block_device_allocate_retries_interval))
        if device.is_brought and status not in (*_MAKING, "detaching"):
            # Another server has it, or it is no more: it would be the same on every host.
            raise errors.InvalidVolume(reason=_not_available(volume_id, status))
        raise errors.VolumeNotCreated(
            volume_id=volume_id,
            seconds=int(time.monotonic() - began),
            attempts=attempt,
            volume_status=status,
        )

    def _attach(
        self, ctxt: context.RequestContext, instance_uuid: str, host: str, device: BlockDevice
    ) -> BlockDevice:
        connector = {"host": host, "mountpoint": device.device_name, "multipath": False}
        made = self._cinder.attach(ctxt, str(device.volume_id), instance_uuid, connector)
        info = made.get("connection_info") or {}
        path = info.get("device_path") or (info.get("data") or {}).get("device_path")
        if not path:
            raise errors.VolumeDriverNotFound(driver_type=info.get("driver_volume_type"))
        LOG.info(
            "Attaching volume %s to %s",
            device.volume_id,
            device.device_name,
            context=ctxt,
            instance=instance_uuid,
        )
        return dataclasses.replace(device, attachment_id=str(made["id"]), path=str(path))

    # -- giving back

    def detach(
        self,
        ctxt: context.RequestContext,
        instance_uuid: str,
        devices: Sequence[BlockDevice],
        host: str,
    ) -> None:
        """Take the server's volumes off *host*; another host's attachments stay.

        :raises exception.NeighborUnavailable: block storage cannot be used now
        """
        ids = {str(device.volume_id) for device in devices if device.volume_id}
        volumes = [self._cinder.show(ctxt, volume_id) for volume_id in sorted(ids)]
        if not all(device.is_brought for device in devices):
            made = self._cinder.with_metadata(ctxt, {SERVER_KEY: instance_uuid})
            volumes += [volume for volume in made if volume["id"] not in ids]
        for volume in volumes:
            for each in (volume or {}).get("attachments", ()):
                if each.get("server_id") == instance_uuid and each.get("host_name") == host:
                    self._cinder.detach(ctxt, str(each["attachment_id"]))

    def release(
        self,
        ctxt: context.RequestContext,
        instance_uuid: str,
        devices: Sequence[BlockDevice],
        *,
        built: bool,
    ) -> None:
        """Take all volumes off a server that goes, and delete those that go with it.

        These are the ones with ``delete_on_termination``, and, of a server that was never *built*,
        all that were made for it. May be called again.

        :raises exception.NeighborUnavailable: block storage cannot be used now
        """
        if self._cinder.absent:
            return
        for each in self._cinder.attachments(ctxt, instance_uuid):
            self._cinder.detach(ctxt, each["id"])
        if not all(device.is_brought for device in devices):
            kept = {d.volume_id for d in devices if built and not d.delete_on_termination}
            for volume in self._cinder.with_metadata(ctxt, {SERVER_KEY: instance_uuid}):
                if volume["id"] not in kept:
                    self._delete(ctxt, instance_uuid, volume["id"], force=True)
        for device in devices:
            if device.is_brought and device.delete_on_termination and built:
                self._delete(ctxt, instance_uuid, str(device.volume_id))

    def _delete(
        self,
        ctxt: context.RequestContext,
        instance_uuid: str,
        volume_id: str,
        *,
        force: bool = False,
    ) -> None:
        """Delete a volume; that it is refused stops nothing.

        :param force: it was made for the server, and may not be ready yet
        """
        delete = self._cinder.force_delete if force else self._cinder.delete
        try:
            delete(ctxt, volume_id)
        except exception.NeighborError as error:
            LOG.warning(
                "Failed to delete volume: %s due to %s",
                volume_id,
                error.message(),
                context=ctxt,
                instance=instance_uuid,
            )


def _not_available(volume_id: str, status: Any) -> str:
    return f"volume '{volume_id}' status must be 'available'. Currently in '{status}' status"


def _image_of(volume: Record) -> ImageMeta:
    """Return what is known of the image that a volume was made from."""
    found = dict(volume.get("volume_image_metadata") or {})
    image = ImageMeta(id="", name=str(found.pop("image_name", "")))
    found.pop("image_id", None)
    found.pop("checksum", None)
    for key in _NUMBERS:
        setattr(image, key, int(found.pop(key, 0) or 0))
    for key in _TEXTS:
        setattr(image, key, str(found.pop(key, "")))
    image.properties = found
    return image
