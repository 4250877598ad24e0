# SPDX-License-Identifier: Apache-2.0
"""Bodies of /os-quota-sets."""

from collections.abc import Iterable

from novalite.api import quotas, validation
from novalite.api.schemas import common

# -1 is unlimited; as text too, and no greater than what every database can store.
LIMIT: common.Json = {
    "type": ["integer", "string"],
    "pattern": "^(-1|[0-9]{1,10})$",
    "minimum": -1,
    "maximum": 2**31 - 1,
}


def limits(names: Iterable[str]) -> common.Json:
    """Return the properties of an object with limits of these resources."""
    return dict.fromkeys(names, LIMIT)


def _update(version: int) -> common.Json:
    properties = limits(quotas.IN_SETS.at(version))
    return common.wrapped("quota_set", {**properties, "force": common.boolean()})


UPDATE = validation.schemas(*((version, _update(version)) for version in (1, 36, 57)))
