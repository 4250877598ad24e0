# SPDX-License-Identifier: Apache-2.0
"""Bodies of /os-keypairs."""

from novalite.api import validation
from novalite.api.schemas import common
from novalite.objects import key_pair

# A key of the greatest size allowed is a fifth of it; in bytes the column takes four times as many.
_MAX_PUBLIC_KEY = 16383


def _create(version: int) -> common.Json:
    properties: common.Json = {
        "name": {"type": "string", "minLength": 1, "maxLength": 255, "format": "keypair_name"},
        "public_key": {"type": "string", "maxLength": _MAX_PUBLIC_KEY, "format": "storable"},
    }
    if version >= 2:
        properties["type"] = {"type": "string", "enum": [key_pair.SSH, key_pair.X509]}
    if version >= 10:
        properties["user_id"] = {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "format": "storable",
        }
    return common.wrapped("keypair", properties, "name")


CREATE = validation.schemas(*((version, _create(version)) for version in (1, 2, 10)))
