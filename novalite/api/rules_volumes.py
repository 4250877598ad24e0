# SPDX-License-Identifier: Apache-2.0
"""The policy rules of volumes, in the shape of :data:`novalite.api.rules.RULES`, which has them."""

from novalite.api.roles import MEMBER, READER

_ATTACHMENTS = "/servers/{server_id}/os-volume_attachments"

RULES: tuple[tuple[str, ...], ...] = (
    ("servers:create:attach_volume", MEMBER, "Name volumes of a new server", "POST /servers"),
    (
        "os-volumes-attachments:index",
        READER,
        "List the volumes of a server",
        f"GET {_ATTACHMENTS}",
    ),
    (
        "os-volumes-attachments:show",
        READER,
        "Show a volume of a server",
        f"GET {_ATTACHMENTS}/{{volume_id}}",
    ),
)
