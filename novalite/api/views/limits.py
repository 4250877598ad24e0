# SPDX-License-Identifier: Apache-2.0
"""What a project may have and has, as JSON in the words of GET /limits."""

from collections.abc import Mapping
from typing import Any

from novalite.api import microversion
from novalite.db.quota_limits import Limits

# (key, resource that it shows the limit of)
_LIMITS = (
    ("maxTotalInstances", "instances"),
    ("maxTotalCores", "cores"),
    ("maxTotalRAMSize", "ram"),
    ("maxTotalKeypairs", "key_pairs"),
    ("maxServerMeta", "metadata_items"),
    ("maxServerGroups", "server_groups"),
    ("maxServerGroupMembers", "server_group_members"),
)
_FILES = (
    ("maxPersonality", "injected_files"),
    ("maxPersonalitySize", "injected_file_content_bytes"),
)
# Metadata of an image have the limit of a server's.
_IMAGES = (("maxImageMeta", "metadata_items"),)
_NETWORK = (
    ("maxTotalFloatingIps", "floating_ips"),
    ("maxSecurityGroups", "security_groups"),
    ("maxSecurityGroupRules", "security_group_rules"),
)
_USED = (
    ("totalInstancesUsed", "instances"),
    ("totalCoresUsed", "cores"),
    ("totalRAMUsed", "ram"),
    ("totalServerGroupsUsed", "server_groups"),
)
# The network service knows what is used of these.
_NETWORK_USED = (
    ("totalFloatingIpsUsed", "floating_ips"),
    ("totalSecurityGroupsUsed", "security_groups"),
)
_SHOWN = microversion.Ranges(
    (1, (_LIMITS + _FILES + _IMAGES + _NETWORK, _USED + _NETWORK_USED)),
    (36, (_LIMITS + _FILES + _IMAGES, _USED)),
    (39, (_LIMITS + _FILES, _USED)),
    (57, (_LIMITS, _USED)),
)


def detail(found: Limits, used: Mapping[str, int], version: int) -> dict[str, Any]:
    """Return limits and usage of a project; there are no limits of rate."""
    limits, usage = _SHOWN.at(version)
    absolute = {key: found.project[resource] for key, resource in limits}
    absolute.update({key: used.get(resource, 0) for key, resource in usage})
    return {"rate": [], "absolute": absolute}
