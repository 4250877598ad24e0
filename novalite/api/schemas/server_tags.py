# SPDX-License-Identifier: Apache-2.0
"""Bodies of /servers/{id}/tags."""

from novalite.api import validation
from novalite.api.schemas import common

TAG = validation.Schema(common.TAG)
NOTHING = validation.schemas((26, {"type": "null"}))
UPDATE_ALL = validation.schemas((26, common.closed({"tags": common.TAGS}, "tags")))
