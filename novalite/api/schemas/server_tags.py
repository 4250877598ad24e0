# SPDX-License-Identifier: Apache-2.0
"""Bodies of /servers/{id}/tags."""

from novalite.api import validation
from novalite.api.schemas import common

MAX_TAGS = 50

TAG = validation.Schema(common.TAG)
NOTHING = validation.schemas((26, {"type": "null"}))
UPDATE_ALL = validation.schemas(
    (
        26,
        common.closed(
            {"tags": {"type": "array", "items": common.TAG, "maxItems": MAX_TAGS}}, "tags"
        ),
    )
)
