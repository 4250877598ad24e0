# SPDX-License-Identifier: Apache-2.0
"""Bodies of /os-services."""

from novalite.api import validation
from novalite.api.schemas import common

_REASON: common.Json = {"type": "string", "minLength": 1, "maxLength": 255, "format": "name"}
_NAMED: common.Json = {
    "host": common.HOST,
    "binary": {"type": "string", "minLength": 1, "maxLength": 255, "format": "storable"},
}

SWITCH = validation.schemas((1, common.closed(_NAMED, "host", "binary")))
DISABLE_LOG_REASON = validation.schemas(
    (1, common.closed({**_NAMED, "disabled_reason": _REASON}, "host", "binary", "disabled_reason"))
)
FORCE_DOWN = validation.schemas(
    (
        1,
        common.closed({**_NAMED, "forced_down": common.boolean()}, "host", "binary", "forced_down"),
    )
)
UPDATE = validation.schemas(
    (
        53,
        {
            **common.closed(
                {
                    "status": {"type": "string", "enum": ["enabled", "disabled"]},
                    "disabled_reason": _REASON,
                    "forced_down": common.boolean(),
                }
            ),
            "minProperties": 1,
        },
    )
)
