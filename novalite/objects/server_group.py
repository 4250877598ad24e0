# SPDX-License-Identifier: Apache-2.0
"""A group of servers with a policy for where they run. It is stored and shown, never sent."""

from dataclasses import dataclass, field

AFFINITY = "affinity"
ANTI_AFFINITY = "anti-affinity"
SOFT_AFFINITY = "soft-affinity"
SOFT_ANTI_AFFINITY = "soft-anti-affinity"


@dataclass(slots=True)
class ServerGroup:
    """One server group; ``rules`` hold ``max_server_per_host``, for anti-affinity only.

    ``members`` are the uuids of its servers that are not deleted, in the order of their making.
    """

    uuid: str
    project_id: str
    user_id: str
    name: str
    policy: str
    rules: dict[str, int] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)
