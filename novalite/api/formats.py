# SPDX-License-Identifier: Apache-2.0
"""The formats that schemas may name beyond JSON Schema's own, with Nova's texts."""

import base64
import binascii
import ipaddress
import re
import unicodedata
from typing import Any

import jsonschema

CHECKER = jsonschema.FormatChecker(formats=())

_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\Z")

_TEXTS = {
    "name": "An invalid 'name' value was provided. The name must be: printable characters. "
    "Can not start or end with whitespace.",
    "keypair_name": "Keypair name contains unsafe characters. Valid characters are letters, "
    "digits, blanks, hyphens and underscores. Can not start or end with whitespace.",
    "flavor_id": "An invalid flavor id was provided. Valid characters are letters, digits, "
    "blanks, dots, hyphens and underscores.",
}


def message(name: Any, value: Any) -> str:
    """Return what to say of a value that does not have the format *name*."""
    shown = repr(value)
    if len(shown) > 200:
        shown = f"{shown[:200]}..."
    return _TEXTS.get(str(name), f"{shown} is not a '{name}'")


def printable(text: str) -> bool:
    """Tell whether every character can be shown: no control, format or private characters."""
    if text.isascii():
        return text.isprintable()
    for char in text:
        category = unicodedata.category(char)
        if category[0] == "C" or category in ("Zl", "Zp"):
            return False
    return True


def is_uuid(text: str) -> bool:
    """Tell whether *text* is a UUID, with or without hyphens."""
    return _UUID.match(text) is not None


@CHECKER.checks("name")
def _name(value: Any) -> bool:
    return not isinstance(value, str) or (value == value.strip() and printable(value))


@CHECKER.checks("printable")
def _printable(value: Any) -> bool:
    # A description may have lines, a name may not.
    return not isinstance(value, str) or printable(re.sub(r"[\t\n\r]", "", value))


@CHECKER.checks("storable")
def _storable(value: Any) -> bool:
    # PostgreSQL keeps no NUL in a text.
    return not isinstance(value, str) or "\0" not in value


@CHECKER.checks("uuid")
def _uuid(value: Any) -> bool:
    return not isinstance(value, str) or is_uuid(value)


@CHECKER.checks("flavor_id")
def _flavor_id(value: Any) -> bool:
    if not isinstance(value, str):
        return True
    return value == value.strip() and re.fullmatch(r"[\w. -]+", value, re.ASCII) is not None


@CHECKER.checks("keypair_name")
def _keypair_name(value: Any) -> bool:
    if not isinstance(value, str):
        return True
    return value == value.strip() and re.fullmatch(r"[\w -]*", value, re.ASCII) is not None


@CHECKER.checks("ipv4", raises=ValueError)
def _ipv4(value: Any) -> bool:
    return not isinstance(value, str) or bool(ipaddress.IPv4Address(value))


@CHECKER.checks("ipv6", raises=ValueError)
def _ipv6(value: Any) -> bool:
    return not isinstance(value, str) or bool(ipaddress.IPv6Address(value))


@CHECKER.checks("base64", raises=(binascii.Error, ValueError))
def _base64(value: Any) -> bool:
    if isinstance(value, str):
        # Line ends are fine, as encoders break lines; anything else foreign is not.
        base64.b64decode(re.sub(r"[\r\n]", "", value), validate=True)
    return True
