# SPDX-License-Identifier: Apache-2.0
"""Body of /novalite/capacity; ours, not Nova's."""

from novalite.api import validation
from novalite.api.schemas import common

# So many hosts may be named at once; without names all are looked at.
MAX_HOSTS = 1000

ASK = validation.schemas(
    (
        1,
        common.wrapped(
            "capacity",
            {
                "flavorRef": {
                    "type": ["string", "integer"],
                    "minLength": 1,
                    "maxLength": 255,
                    "format": "storable",
                },
                "hosts": {"type": "array", "items": common.HOST, "maxItems": MAX_HOSTS},
                "imageRef": common.UUID,
                # A zone alone: hosts have a field of their own.
                "availability_zone": {**common.NAME, "pattern": "^[^:]*$"},
                "volume_backed": common.boolean(),
            },
            "flavorRef",
        ),
    )
)
