# SPDX-License-Identifier: Apache-2.0
"""What an image is: its fields, who may see and change it, how lists are filtered.

Used by the resources of image v2; knows no HTTP beyond the faults.
"""

import time
import uuid
from typing import Any

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.store import Doc, Tx

CONTAINER_FORMATS = ("ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed")
DISK_FORMATS = (
    *("ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2"),
    *("vdi", "iso", "ploop"),
)
VISIBILITIES = ("public", "private", "shared", "community")
MAX_INT = 2**31 - 1

READ_ONLY = (
    *("id", "status", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value"),
    *("created_at", "updated_at", "file", "schema", "self", "direct_url", "locations"),
)
# Fields that a client may set: type and default.
FIELDS: dict[str, tuple[type, Any]] = {
    "name": (str, None),
    "visibility": (str, "shared"),
    "container_format": (str, None),
    "disk_format": (str, None),
    "min_disk": (int, 0),
    "min_ram": (int, 0),
    "protected": (bool, False),
    "os_hidden": (bool, False),
    "tags": (list, []),
    "owner": (str, None),
}
_CHOICES = {
    "visibility": VISIBILITIES,
    "container_format": CONTAINER_FORMATS,
    "disk_format": DISK_FORMATS,
}
# Query parameters that are not filters.
_NO_FILTER = {
    *("limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "visibility"),
    *("size_min", "size_max", "tag", "os_hidden", "changes-since"),
}


def new(caller: Caller, asked: Doc) -> Doc:
    """Return a queued image from what was asked for.

    :raises Fault: 400 naming the field, 403 for what only administrators may do
    """
    if not isinstance(asked, dict):
        raise Fault(400, "The body must be an object that holds the image's fields.")
    doc: Doc = {"id": _new_id(asked.get("id")), "status": "queued"}
    for key, (_kind, default) in FIELDS.items():
        doc[key] = default
    doc.update(size=None, virtual_size=None, checksum=None, os_hash_algo=None, os_hash_value=None)
    doc.update(owner=caller.project_id, properties={}, tags=[])
    doc["created_at"] = doc["updated_at"] = time.time()
    for key, value in asked.items():
        if key != "id":
            assign(caller, doc, key, value)
    return doc


def _new_id(asked: Any) -> str:
    if asked is None:
        return str(uuid.uuid4())
    try:
        return str(uuid.UUID(asked))
    except (ValueError, TypeError, AttributeError) as error:
        raise Fault(400, f"'id' must be a UUID, not '{asked}'.") from error


def assign(caller: Caller, doc: Doc, key: str, value: Any) -> None:
    """Set one field or free property.

    :raises Fault: 400 for a bad value, 403 for a field that the caller may not set
    """
    if key in READ_ONLY:
        raise Fault(403, f"Attribute '{key}' is read-only.")
    if key not in FIELDS:
        if not isinstance(value, str):
            raise Fault(400, f"The property '{key}' must be a text.")
        doc["properties"][key] = value
        return
    kind, default = FIELDS[key]
    if not _is_a(value, kind) and not (value is None and default is None):
        raise Fault(400, f"'{key}' must be of type {kind.__name__}.")
    if value is not None and key in _CHOICES and value not in _CHOICES[key]:
        raise Fault(400, f"'{key}' must be one of {', '.join(_CHOICES[key])}; not '{value}'.")
    if kind is int and not 0 <= value <= MAX_INT:
        raise Fault(400, f"'{key}' must be between 0 and {MAX_INT}.")
    _may_assign(caller, doc, key, value)
    doc[key] = _tags(value) if key == "tags" else value


def _is_a(value: Any, kind: type) -> bool:
    # To Python a bool is an int; to a client it is not.
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _may_assign(caller: Caller, doc: Doc, key: str, value: Any) -> None:
    if key == "visibility" and value == "public" and not caller.is_admin:
        raise Fault(403, "You are not authorized to make an image public.")
    if key == "owner" and value != doc["owner"] and not caller.is_admin:
        raise Fault(403, f"You are not permitted to create images owned by '{value}'.")
    formats = key in ("container_format", "disk_format")
    if formats and doc["status"] != "queued" and value != doc[key]:
        raise Fault(403, f"'{key}' can only be changed while the image has no data.")


def _tags(value: list[Any]) -> list[str]:
    for tag in value:
        if not isinstance(tag, str) or len(tag) > 255:
            raise Fault(400, "Each of 'tags' must be a text of at most 255 characters.")
    return list(dict.fromkeys(value))


def view(doc: Doc) -> Doc:
    """Return the image as the API shows it: free properties at the top level."""
    shown = {**doc["properties"], **doc}
    del shown["properties"]
    shown["created_at"] = http.isotime(doc["created_at"])
    shown["updated_at"] = http.isotime(doc["updated_at"])
    shown["self"] = f"/v2/images/{doc['id']}"
    shown["file"] = f"/v2/images/{doc['id']}/file"
    shown["schema"] = "/v2/schemas/image"
    return shown


def membership(tx: Tx, image_id: str, project_id: str) -> str | None:
    """Return the status of a project's membership of a shared image, None without one."""
    row = tx.one(
        "SELECT status FROM members WHERE image_id = ? AND member_id = ?", image_id, project_id
    )
    return None if row is None else str(row[0])


def owned(caller: Caller, doc: Doc) -> bool:
    """Tell whether the caller may change the image."""
    return caller.is_admin or (bool(caller.project_id) and doc["owner"] == caller.project_id)


def visible(tx: Tx, caller: Caller, doc: Doc) -> bool:
    """Tell whether the caller may look at the image when it knows the id."""
    if doc["visibility"] in ("public", "community") or owned(caller, doc):
        return True
    if doc["visibility"] == "shared" and caller.project_id:
        return membership(tx, doc["id"], caller.project_id) is not None
    return False


def get(tx: Tx, caller: Caller, image_id: str) -> Doc:
    """Return an image that the caller may see.

    :raises Fault: 404
    """
    doc = tx.get("image", image_id)
    if doc is None or not visible(tx, caller, doc):
        raise Fault(404, f"No image found with ID {image_id}")
    return doc


def get_owned(tx: Tx, caller: Caller, image_id: str, verb: str) -> Doc:
    """Return an image that the caller may change.

    :raises Fault: 404 when it may not even be seen, else 403
    """
    doc = get(tx, caller, image_id)
    if not owned(caller, doc):
        raise Fault(403, f"You are not permitted to {verb} this image.")
    return doc


def listed(tx: Tx, caller: Caller, params: dict[str, list[str]]) -> list[Doc]:
    """Return the images that the caller sees and the query wants, in the order of their making."""
    accepted = (params.get("member_status") or ["accepted"])[-1]
    rows = tx.run(
        "SELECT image_id, status FROM members WHERE member_id = ?", caller.project_id
    ).fetchall()
    shared = {row[0] for row in rows if accepted in ("all", row[1])}
    hidden = http.boolean(params.get("os_hidden")) or False
    visibility = (params.get("visibility") or [""])[-1]
    found = []
    for doc in _candidates(tx, params):
        if doc["os_hidden"] == hidden and _in_list(caller, doc, visibility, shared):
            if _matches(doc, params):
                found.append(doc)
    return found


def _candidates(tx: Tx, params: dict[str, list[str]]) -> list[Doc]:
    for column in ("id", "name"):
        values = params.get(column)
        if values:
            return tx.find("image", **{column: _alternatives(values[-1])})
    return tx.find("image")


def _in_list(caller: Caller, doc: Doc, visibility: str, shared: set[str]) -> bool:
    mine = bool(caller.project_id) and doc["owner"] == caller.project_id
    if visibility and visibility != "all" and doc["visibility"] != visibility:
        return False
    if doc["visibility"] == "community":
        return mine or visibility in ("community", "all")
    return doc["visibility"] == "public" or mine or caller.is_admin or doc["id"] in shared


def _matches(doc: Doc, params: dict[str, list[str]]) -> bool:
    size = doc["size"] or 0
    for key, values in params.items():
        if key == "tag":
            if not set(values) <= set(doc["tags"]):
                return False
        elif key in ("size_min", "size_max"):
            bound = _number(key, values[-1])
            if (size < bound) if key == "size_min" else (size > bound):
                return False
        elif key in ("created_at", "updated_at"):
            if not _compare(http.isotime(doc[key]), values[-1]):
                return False
        elif key not in _NO_FILTER:
            value = doc[key] if key in doc else doc["properties"].get(key)
            if not any(http.same(value, wanted) for wanted in _alternatives(values[-1])):
                return False
    return True


def _number(key: str, text: str) -> int:
    if not text.isdecimal():
        raise Fault(400, f"{key} must be a number that is not negative, not '{text}'.")
    return int(text)


def _alternatives(text: str) -> list[str]:
    """Return the values of ``in:a,b`` (items may be quoted), or the one value."""
    if not text.startswith("in:"):
        return [text]
    return [item.strip().strip('"') for item in text[3:].split(",")]


def _compare(value: str, wanted: str) -> bool:
    word, _, moment = wanted.partition(":")
    return {
        "gt": value > moment,
        "gte": value >= moment,
        "lt": value < moment,
        "lte": value <= moment,
        "eq": value == moment,
        "neq": value != moment,
    }.get(word, value == wanted)
