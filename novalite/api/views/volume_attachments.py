# SPDX-License-Identifier: Apache-2.0
"""The volumes of a server as JSON, for the microversion asked; made of the row's own text."""

import json
from typing import Any

Json = dict[str, Any]


def attached(row: Any) -> list[Json]:
    """Return the volumes of a server that are known by now, in the wire form of their objects.

    One that is still to be made has no id and is not among them.
    """
    if not row.block_devices:
        return []
    return [each for each in json.loads(row.block_devices) if each.get("volume_id")]


def attachment(row: Any, device: Json, version: int) -> Json:
    """Return one volume as os-volume_attachments shows it."""
    shown: Json = {
        "id": device["volume_id"],
        "volumeId": device["volume_id"],
        "serverId": row.uuid,
        "device": device["device_name"],
    }
    if version >= 70:
        shown["tag"] = device.get("tag")
    if version >= 79:
        shown["delete_on_termination"] = bool(device.get("delete_on_termination"))
    return shown
