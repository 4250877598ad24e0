# SPDX-License-Identifier: Apache-2.0
"""Quotas of a class as JSON."""

from novalite.api import quotas
from novalite.db.quota_limits import Limits


def detail(found: Limits, version: int) -> dict[str, int]:
    """Return the limits of a class."""
    return {name: found.project[name] for name in quotas.IN_CLASSES.at(version)}
