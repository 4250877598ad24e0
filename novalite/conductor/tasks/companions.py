# SPDX-License-Identifier: Apache-2.0
"""What the flow of a build has to know of other servers; see :mod:`novalite.db.companions`.

Called just before a scheduler is asked, and when an attempt is noted. Requests without group and
hints cost nothing here.
"""

from collections.abc import Sequence

from novalite.db import companions, server_groups
from novalite.db.engine import Database
from novalite.objects.request_spec import RequestSpec


def fill(database: Database, specs: Sequence[RequestSpec]) -> None:
    """Set ``instance_group`` and ``hinted_hosts`` of the requests that need them.

    :raises exception.DatabaseUnavailable: nothing is set
    """
    needing = [spec for spec in specs if companions.needed(spec)]
    if needing:
        database.read(lambda conn: companions.fill(conn, needing))


def guarded(spec: RequestSpec) -> str | None:
    """Return the group whose policy is checked once more when the build begins, or None.

    A forced host goes past all filters, so past this too.
    """
    group = spec.instance_group
    if group is None or group.policy not in server_groups.HARD:
        return None
    return None if spec.force_host or spec.force_node else group.uuid
