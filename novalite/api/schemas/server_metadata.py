# SPDX-License-Identifier: Apache-2.0
"""Bodies of /servers/{id}/metadata."""

from novalite.api import validation
from novalite.api.schemas import common

METADATA = validation.schemas((1, common.closed({"metadata": common.METADATA}, "metadata")))
ITEM = validation.schemas(
    (
        1,
        common.closed(
            {"meta": {**common.METADATA, "minProperties": 1, "maxProperties": 1}}, "meta"
        ),
    )
)
