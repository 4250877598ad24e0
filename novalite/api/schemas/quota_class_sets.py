# SPDX-License-Identifier: Apache-2.0
"""Bodies of /os-quota-class-sets."""

from novalite.api import quotas, validation
from novalite.api.schemas import common, quota_sets


def _update(version: int) -> common.Json:
    # Server groups can be set before they are shown.
    names = quotas.IN_SETS.at(1) if version < 50 else quotas.IN_CLASSES.at(version)
    return common.wrapped("quota_class_set", quota_sets.limits(names))


UPDATE = validation.schemas(*((version, _update(version)) for version in (1, 50, 57)))
