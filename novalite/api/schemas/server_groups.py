# SPDX-License-Identifier: Apache-2.0
"""Bodies of /os-server-groups."""

from novalite.api import validation
from novalite.api.schemas import common
from novalite.objects import server_group

_HARD = [server_group.ANTI_AFFINITY, server_group.AFFINITY]
_ALL = [*_HARD, server_group.SOFT_ANTI_AFFINITY, server_group.SOFT_AFFINITY]


def _one_policy(policies: list[str]) -> common.Json:
    """Return the schema until 2.63: a list, in which there is always one policy."""
    items: common.Json = {"type": "string", "enum": policies}
    return common.wrapped(
        "server_group",
        {
            "name": common.NAME,
            "policies": {"type": "array", "items": items, "minItems": 1, "maxItems": 1},
        },
        "name",
        "policies",
    )


CREATE = validation.schemas(
    (1, _one_policy(_HARD)),
    (15, _one_policy(_ALL)),
    (
        64,
        common.wrapped(
            "server_group",
            {
                "name": common.NAME,
                "policy": {"type": "string", "enum": _ALL},
                "rules": common.closed({"max_server_per_host": common.whole(1)}),
            },
            "name",
            "policy",
        ),
    ),
)
