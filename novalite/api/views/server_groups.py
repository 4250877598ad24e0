# SPDX-License-Identifier: Apache-2.0
"""Server groups as JSON."""

from typing import Any

from novalite.objects.server_group import ServerGroup


def detail(group: ServerGroup, version: int) -> dict[str, Any]:
    """Return a server group; from 2.64 on with one policy and its rules, before with a list."""
    shown: dict[str, Any] = {"id": group.uuid, "name": group.name, "members": group.members}
    if version >= 13:
        shown |= {"project_id": group.project_id, "user_id": group.user_id}
    if version >= 64:
        return shown | {"policy": group.policy, "rules": group.rules}
    return shown | {"policies": [group.policy], "metadata": {}}
