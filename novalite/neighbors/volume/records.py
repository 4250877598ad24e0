# SPDX-License-Identifier: Apache-2.0
"""What a volume and an attachment are: their fields, who sees them, how lists are filtered.

Used by the resources of block storage v3; knows no HTTP beyond the faults.
"""

import ast
import datetime
import time
import uuid
from typing import Any

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.store import Doc, Tx

TYPE = "lvmdriver-1"
ZONE = "nova"
POOL = "neighbors@lvmdriver-1#lvmdriver-1"
GIB = 2**30
MAX_GB = 2**31 - 1
# States that an administrator may write over a volume's own.
STATES = (
    *("creating", "available", "reserved", "attaching", "in-use", "detaching", "maintenance"),
    *("deleting", "error", "error_deleting"),
)
_FIELDS = frozenset(
    (
        *("size", "name", "description", "imageRef", "volume_type", "availability_zone"),
        *("metadata", "snapshot_id", "source_volid", "multiattach", "consistencygroup_id"),
        *("display_name", "display_description", "backup_id", "group_id"),
    )
)
_NOT_SERVED = ("snapshot_id", "source_volid", "backup_id", "consistencygroup_id", "group_id")


def invalid(reason: str) -> Fault:
    """Return the 400 for a volume that is not as it has to be."""
    return Fault(400, f"Invalid volume: {reason}")


def new(caller: Caller, project_id: str, asked: Doc, image: Doc | None, seconds: float) -> Doc:
    """Return a volume from what was asked for.

    :param image: the record of the image that is copied onto it
    :param seconds: how long the making takes; the volume shows ``creating`` until then
    :raises Fault: 400 naming the field
    """
    for key in asked:
        if key not in _FIELDS:
            raise Fault(400, f"Additional properties are not allowed ('{key}' was unexpected)")
    for key in _NOT_SERVED:
        if asked.get(key):
            raise Fault(400, f"{key} cannot be had here: a volume is empty or made from an image.")
    if asked.get("multiattach") in (True, "true", "True"):
        raise Fault(400, "multiattach volumes cannot be had here.")
    now = time.time()
    return {
        "id": str(uuid.uuid4()),
        "name": _text(asked, "name", "display_name"),
        "description": _text(asked, "description", "display_description"),
        "size": _size(asked.get("size"), image),
        "status": "available",
        "ready_at": now + seconds,
        "project_id": project_id,
        "user_id": caller.user_id,
        "volume_type": _type(asked.get("volume_type")),
        "availability_zone": asked.get("availability_zone") or ZONE,
        "bootable": image is not None,
        "metadata": _metadata(asked.get("metadata")),
        "image": _image_metadata(image),
        "created_at": now,
        "updated_at": now,
    }


def _text(asked: Doc, *keys: str) -> str | None:
    for key in keys:
        value = asked.get(key)
        if value is None:
            continue
        if not isinstance(value, str) or len(value) > 255:
            raise Fault(400, f"Invalid input for field/attribute {key}: a text of 255 characters.")
        return value.strip()
    return None


def _size(asked: Any, image: Doc | None) -> int:
    try:
        size = int(asked)
    except (TypeError, ValueError):
        size = 0
    if not 0 < size <= MAX_GB or isinstance(asked, bool):
        raise Fault(
            400,
            f"Invalid input received: Volume size '{asked}' must be an integer and greater than 0",
        )
    if image is None:
        return size
    least = image["min_disk"] or 0
    if size < least:
        raise Fault(
            400,
            f"Invalid input received: Volume size {size}GB cannot be smaller than the image "
            f"minDisk size {least}GB.",
        )
    need = -(-(image["virtual_size"] or image["size"] or 0) // GIB)
    if size < need:
        raise Fault(
            400,
            f"Invalid input received: Size of specified image {need}GB is larger than volume size "
            f"{size}GB.",
        )
    return size


def _type(asked: Any) -> str:
    if asked in (None, "", TYPE, type_id()):
        return TYPE
    raise Fault(404, f"Volume type {asked} could not be found.")


def _metadata(asked: Any) -> Doc:
    if asked is None:
        return {}
    good = isinstance(asked, dict) and all(
        isinstance(value, str) and len(key) <= 255 and len(value) <= 255
        for key, value in asked.items()
    )
    if not good:
        raise Fault(400, "metadata must be an object of texts of 255 characters at most.")
    return dict(asked)


def _image_metadata(image: Doc | None) -> Doc:
    if image is None:
        return {}
    kept = {key: str(value) for key, value in image["properties"].items()}
    for key in ("container_format", "disk_format", "checksum"):
        kept[key] = image[key] or ""
    for key in ("min_disk", "min_ram", "size"):
        kept[key] = str(image[key] or 0)
    return {**kept, "image_id": image["id"], "image_name": image["name"] or ""}


def type_id() -> str:
    """Return the id of the one volume type."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, TYPE))


def status(doc: Doc) -> str:
    """Return the state of a volume now."""
    return "creating" if time.time() < doc["ready_at"] else str(doc["status"])


def get(tx: Tx, caller: Caller, volume_id: str) -> Doc:
    """Return a volume that the caller may see.

    :raises Fault: 404
    """
    doc = tx.get("volume", volume_id)
    if doc is None or not (caller.is_admin or doc["project_id"] == caller.project_id):
        raise Fault(404, f"Volume {volume_id} could not be found.")
    return doc


def listed(tx: Tx, caller: Caller, project_id: str, params: dict[str, list[str]]) -> list[Doc]:
    """Return the volumes that the caller sees and the query wants, newest first."""
    wanted: dict[str, str | list[str]] = {}
    if caller.is_admin and http.boolean(params.get("all_tenants")):
        if params.get("project_id"):
            wanted["owner"] = params["project_id"][-1]
    else:
        wanted["owner"] = project_id
    if params.get("name"):
        wanted["name"] = params["name"][-1]
    found = [doc for doc in tx.find("volume", **wanted) if _matches(doc, params)]
    return found[::-1]


def _matches(doc: Doc, params: dict[str, list[str]]) -> bool:
    if "status" in params and status(doc) != params["status"][-1].lower():
        return False
    if "bootable" in params and doc["bootable"] != http.boolean(params["bootable"]):
        return False
    if "metadata" in params:
        try:
            pairs = dict(ast.literal_eval(params["metadata"][-1])).items()
        except (ValueError, SyntaxError, TypeError) as error:
            raise Fault(400, "metadata must be an object like {'key': 'value'}.") from error
        return all(doc["metadata"].get(key) == value for key, value in pairs)
    return True


def moment(seconds: float | None) -> str | None:
    """Return a time as block storage shows it: UTC, microseconds, no zone."""
    if seconds is None:
        return None
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


def short(doc: Doc, base: str) -> Doc:
    """Return a volume as a plain list has it."""
    return {"id": doc["id"], "name": doc["name"], "links": _links(doc, base)}


def _links(doc: Doc, base: str) -> list[Doc]:
    path = f"{doc['project_id']}/volumes/{doc['id']}"
    return [
        {"rel": "self", "href": f"{base}/v3/{path}"},
        {"rel": "bookmark", "href": f"{base}/{path}"},
    ]


def created(doc: Doc, base: str) -> Doc:
    """Return a volume as the answer to its making shows it."""
    return {
        **short(doc, base),
        "description": doc["description"],
        "size": doc["size"],
        "status": "creating",
        "volume_type": doc["volume_type"],
        "availability_zone": doc["availability_zone"],
        "bootable": "true" if doc["bootable"] else "false",
        "metadata": doc["metadata"],
        "encrypted": False,
        "multiattach": False,
        "user_id": doc["user_id"],
        "snapshot_id": None,
        "source_volid": None,
        "consistencygroup_id": None,
        "replication_status": None,
        "migration_status": None,
        "attachments": [],
        "created_at": moment(doc["created_at"]),
        "updated_at": None,
    }


def shown(tx: Tx, caller: Caller, doc: Doc, base: str) -> Doc:
    """Return everything about a volume."""
    view = created(doc, base)
    view["status"] = status(doc)
    view["updated_at"] = moment(doc["updated_at"])
    view["os-vol-tenant-attr:tenant_id"] = doc["project_id"]
    if doc["image"]:
        view["volume_image_metadata"] = doc["image"]
    if caller.is_admin:
        view["os-vol-host-attr:host"] = POOL
        view["os-vol-mig-status-attr:migstat"] = None
        view["os-vol-mig-status-attr:name_id"] = None
    view["attachments"] = [
        {
            "id": doc["id"],
            "volume_id": doc["id"],
            "server_id": each["instance"],
            "attachment_id": each["id"],
            "host_name": each["connector"].get("host") if caller.is_admin else None,
            "device": each["connector"].get("mountpoint"),
            "attached_at": moment(each["attached_at"]),
        }
        for each in tx.find("attachment", parent=doc["id"])
        if each["status"] == "attached"
    ]
    return view
