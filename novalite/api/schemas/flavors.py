# SPDX-License-Identifier: Apache-2.0
"""Bodies of /flavors, os-extra_specs and /flavors/{id}/action."""

from novalite.api import validation
from novalite.api.schemas import common

# Characters of the value of an extra spec.
LONGEST = 255
_SPEC_KEY = r"^[a-zA-Z0-9\-_:. ]{1,255}$"
_SPEC_VALUE: common.Json = {
    "type": ["string", "number"],
    "maxLength": LONGEST,
    "format": "storable",
}
_SPECS: common.Json = {
    "type": "object",
    "patternProperties": {_SPEC_KEY: _SPEC_VALUE},
    "additionalProperties": False,
}
_PROJECT: common.Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": r"^[a-zA-Z0-9\-]*$",
}

_CREATE: common.Json = {
    "name": common.NAME,
    "id": {
        "oneOf": [
            {"type": "string", "minLength": 1, "maxLength": 255, "format": "flavor_id"},
            {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
            {"type": "null"},
        ]
    },
    "ram": common.whole(1),
    "vcpus": common.whole(1),
    "disk": common.whole(0),
    "OS-FLV-EXT-DATA:ephemeral": common.whole(0),
    "swap": common.whole(0),
    "rxtx_factor": {
        "type": ["number", "string"],
        "pattern": r"^[0-9]+(\.[0-9]+)?$",
        "maxLength": 40,
        "maximum": 3.40282e38,
        "minimum": 0,
        "exclusiveMinimum": True,
    },
    "os-flavor-access:is_public": common.boolean(),
}
_REQUIRED = ("name", "ram", "vcpus", "disk")
_DESCRIPTION: common.Json = {**common.DESCRIPTION, "maxLength": 65535}

CREATE = validation.schemas(
    (1, common.wrapped("flavor", _CREATE, *_REQUIRED)),
    (55, common.wrapped("flavor", {**_CREATE, "description": _DESCRIPTION}, *_REQUIRED)),
)
UPDATE = validation.schemas(
    (55, common.wrapped("flavor", {"description": _DESCRIPTION}, "description"))
)
EXTRA_SPECS = validation.schemas((1, common.closed({"extra_specs": _SPECS}, "extra_specs")))
EXTRA_SPEC = validation.schemas((1, {**_SPECS, "minProperties": 1, "maxProperties": 1}))
ACTION = validation.schemas((1, {"type": "object", "minProperties": 1, "maxProperties": 1}))
ADD_ACCESS = validation.schemas(
    (1, common.wrapped("addTenantAccess", {"tenant": _PROJECT}, "tenant"))
)
REMOVE_ACCESS = validation.schemas(
    (1, common.wrapped("removeTenantAccess", {"tenant": _PROJECT}, "tenant"))
)
