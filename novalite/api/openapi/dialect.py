# SPDX-License-Identifier: Apache-2.0
"""Turns the schemas of bodies, JSON Schema draft 4, into those of OpenAPI 3.1, draft 2020-12.

Called by :mod:`novalite.api.openapi.document`. It changes how a thing is said, never what.
"""

import re
from typing import Any

Json = dict[str, Any]

_WITHOUT_CASE = re.compile(r"\(\?i:(\w+)\)")
# Keywords whose value is data or names, not schemas.
_DATA = frozenset(("enum", "required", "default", "type"))
_NAMED = frozenset(("properties", "patternProperties"))


def schema(document: Json) -> Json:
    """Return a schema in the newer words."""
    found: Json = {}
    for word, value in document.items():
        if word in _DATA:
            found[word] = value
        elif word == "pattern":
            found[word] = pattern(value)
        elif word in _NAMED:
            # The names are patterns in one of them, and any text in the other.
            name = pattern if word == "patternProperties" else str
            found[word] = {name(key): schema(inner) for key, inner in value.items()}
        else:
            found[word] = _value(value)
    if found.pop("exclusiveMinimum", False):
        found["exclusiveMinimum"] = found.pop("minimum")
    return found


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return schema(value)
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value


def pattern(text: str) -> str:
    """Return a pattern that also engines without ``(?i:...)`` understand."""
    return _WITHOUT_CASE.sub(lambda found: "".join(map(_either, found[1])), text)


def _either(letter: str) -> str:
    return f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else letter
