# SPDX-License-Identifier: Apache-2.0
"""Bodies of /os-aggregates."""

from novalite.api import validation
from novalite.api.schemas import common

# A zone with a colon could never be asked for: ZONE:HOST is something else.
_ZONE: common.Json = {
    "type": ["string", "null"],
    "minLength": 1,
    "maxLength": 255,
    "format": "name",
    "pattern": "^[^:]*$",
}
_AGGREGATE: common.Json = {"name": common.NAME, "availability_zone": _ZONE}
_UPDATE: common.Json = {**common.closed(_AGGREGATE), "minProperties": 1}
_METADATA: common.Json = {
    "type": "object",
    "properties": {"availability_zone": _ZONE},
    "patternProperties": {
        r"^[a-zA-Z0-9\-_:. ]{1,255}$": {
            "type": ["string", "null"],
            "maxLength": 255,
            "format": "storable",
        }
    },
    "additionalProperties": False,
}

CREATE = validation.schemas((1, common.wrapped("aggregate", _AGGREGATE, "name")))
UPDATE = validation.schemas((1, common.closed({"aggregate": _UPDATE}, "aggregate")))
ACTION = validation.schemas((1, {"type": "object", "minProperties": 1, "maxProperties": 1}))
ADD_HOST = validation.schemas((1, common.wrapped("add_host", {"host": common.HOST}, "host")))
REMOVE_HOST = validation.schemas((1, common.wrapped("remove_host", {"host": common.HOST}, "host")))
SET_METADATA = validation.schemas(
    (1, common.wrapped("set_metadata", {"metadata": _METADATA}, "metadata"))
)
