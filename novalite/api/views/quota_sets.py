# SPDX-License-Identifier: Apache-2.0
"""Quotas of a project or of one user in it as JSON."""

from collections.abc import Mapping

from novalite.api import quotas
from novalite.db.quota_limits import Limits


def limit(found: Limits, resource: str) -> int:
    """Return the limit to show: the user's own one if there is one, else the project's."""
    return found.user.get(resource, found.project[resource])


def summary(found: Limits, version: int) -> dict[str, int]:
    """Return the limits alone."""
    return {name: limit(found, name) for name in quotas.IN_SETS.at(version)}


def detail(found: Limits, used: Mapping[str, int], version: int) -> dict[str, dict[str, int]]:
    """Return each limit with what is in use of it; nothing is ever reserved."""
    return {
        name: {"limit": shown, "in_use": used.get(name, 0), "reserved": 0}
        for name, shown in summary(found, version).items()
    }
