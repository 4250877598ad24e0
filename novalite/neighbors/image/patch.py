# SPDX-License-Identifier: Apache-2.0
"""JSON patch of an image: the operations add, replace and remove on one key each."""

from typing import Any

from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.image import records
from novalite.neighbors.store import Doc

MEDIA_TYPES = (
    "application/openstack-images-v2.1-json-patch",
    "application/openstack-images-v2.0-json-patch",
)


def apply(caller: Caller, doc: Doc, operations: Any) -> None:
    """Change *doc* as the operations say.

    :raises Fault: 400 for a malformed one, 403 for what may not be changed, 409 for a missing key
    """
    if not isinstance(operations, list):
        raise Fault(400, "The body must be a list of operations.")
    for operation in operations:
        verb, key, value = _parse(operation)
        if verb == "remove":
            _remove(doc, key)
            continue
        if verb == "replace" and key not in doc and key not in doc["properties"]:
            raise Fault(409, f"Property {key} does not exist.")
        records.assign(caller, doc, key, value)


def _parse(operation: Any) -> tuple[str, str, Any]:
    if not isinstance(operation, dict):
        raise Fault(400, "Each operation must be an object.")
    verb, path = operation.get("op"), operation.get("path")
    if verb is None:
        # The form of v2.0: {"replace": "/name", "value": ...}
        verb = next((word for word in ("add", "replace", "remove") if word in operation), None)
        path = operation.get(str(verb))
    if verb not in ("add", "replace", "remove"):
        raise Fault(400, f"Operations must be add, replace or remove, not '{verb}'.")
    if not isinstance(path, str) or not path.startswith("/") or "/" in path[1:] or len(path) < 2:
        raise Fault(400, f"'path' must be a slash and one key, not '{path}'.")
    if verb != "remove" and "value" not in operation:
        raise Fault(400, f"The operation {verb} needs a 'value'.")
    return verb, path[1:].replace("~1", "/").replace("~0", "~"), operation.get("value")


def _remove(doc: Doc, key: str) -> None:
    if key in records.FIELDS or key in records.READ_ONLY:
        raise Fault(403, f"Property {key} may not be removed.")
    if key not in doc["properties"]:
        raise Fault(409, f"Property {key} does not exist.")
    del doc["properties"][key]
