# SPDX-License-Identifier: Apache-2.0
"""Pieces that several schemas share; the limits are Nova's."""

from typing import Any

from novalite.api import paging

Json = dict[str, Any]

NAME: Json = {"type": "string", "minLength": 1, "maxLength": 255, "format": "name"}
DESCRIPTION: Json = {
    "type": ["string", "null"],
    "minLength": 0,
    "maxLength": 255,
    "format": "printable",
}
UUID: Json = {"type": "string", "format": "uuid"}
IPV4: Json = {"type": "string", "oneOf": [{"format": "ipv4"}, {"enum": [""]}]}
IPV6: Json = {"type": "string", "oneOf": [{"format": "ipv6"}, {"enum": [""]}]}
DISK_CONFIG: Json = {"type": "string", "enum": ["AUTO", "MANUAL"]}
HOST: Json = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[a-zA-Z0-9\-._]+$"}
METADATA: Json = {
    "type": "object",
    "patternProperties": {
        r"^[a-zA-Z0-9\-_:. ]{1,255}$": {"type": "string", "maxLength": 255, "format": "storable"}
    },
    "additionalProperties": False,
}
TAG: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": 60,
    "pattern": r"^[^,/]*$",
    "format": "storable",
}
MAX_TAGS = 50
TAGS: Json = {"type": "array", "items": TAG, "maxItems": MAX_TAGS}


def boolean(*, null: bool = False) -> Json:
    """Return the schema of yes or no, which may be given as text."""
    words = sorted(paging.TRUE | paging.FALSE)
    pattern = "^(?:" + "|".join(f"(?i:{word})" for word in words) + ")$"
    kinds = ["boolean", "string"] + (["null"] if null else [])
    return {"type": kinds, "pattern": pattern}


def whole(lowest: int, highest: int = 2**31 - 1) -> Json:
    """Return the schema of a whole number, which may be given as text."""
    return {
        "type": ["integer", "string"],
        "pattern": "^[0-9]{1,10}$",
        "minimum": lowest,
        "maximum": highest,
    }


def closed(properties: Json, *required: str) -> Json:
    """Return the schema of an object with these properties and no others."""
    schema: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return schema


def wrapped(key: str, properties: Json, *required: str) -> Json:
    """Return the schema of ``{key: {...}}``."""
    return closed({key: closed(properties, *required)}, key)
