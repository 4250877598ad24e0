# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the volumes of a server; the texts are Nova's.

Raised by the client and, for what a body alone shows, by the API. What is Invalid is the request's
own fault: no other host is tried for it.
"""

from novalite import exception


class InvalidBDM(exception.Invalid):
    msg_fmt = "Block Device Mapping is Invalid."


class InvalidBDMVolume(InvalidBDM):
    msg_fmt = "Block Device Mapping is Invalid: failed to get volume %(id)s."


class InvalidBDMSnapshot(InvalidBDM):
    msg_fmt = "Block Device Mapping is Invalid: failed to get snapshot %(id)s."


class InvalidBDMBootSequence(InvalidBDM):
    msg_fmt = (
        "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device "
        "mapping combination is not valid."
    )


class InvalidBDMFormat(InvalidBDM):
    msg_fmt = "Block Device Mapping is Invalid: %(details)s"


class InvalidBDMVolumeNotBootable(InvalidBDM):
    msg_fmt = "Block Device %(id)s is not bootable."


class InvalidVolume(exception.Invalid):
    msg_fmt = "Invalid volume: %(reason)s"


class VolumeTypeInBodyNotFound(exception.Invalid):
    msg_fmt = "Volume type %(id_or_name)s could not be found."


class VolumeSmallerThanMinDisk(exception.Invalid):
    msg_fmt = (
        "Volume is too small for requested image. Volume size is %(volume_size)i bytes, minimum "
        "size is %(image_min_disk)i bytes."
    )


class DevicePathInUse(exception.Invalid):
    msg_fmt = "The supplied device path (%(path)s) is in use."


class InvalidDevicePath(exception.Invalid):
    msg_fmt = "The supplied device path (%(path)s) is invalid."


class VolumeNotCreated(exception.NovaliteException):
    msg_fmt = (
        "Volume %(volume_id)s did not finish being created even after we waited %(seconds)s "
        "seconds or %(attempts)s attempts. And its status is %(volume_status)s."
    )


class VolumeDriverNotFound(exception.NovaliteException):
    msg_fmt = "Could not find a handler for %(driver_type)s volume."
