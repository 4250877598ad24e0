# SPDX-License-Identifier: Apache-2.0
"""What each consumer (a server, later a migration) holds on a node, by resource class."""

import sqlalchemy as sa

from novalite.db import schema
from novalite.db.engine import now
from novalite.db.prepared import Prepared

_t = schema.allocations

_INSERT = Prepared(sa.insert(_t).values(created_at=now()).inline())
_DELETE = sa.delete(_t).where(_t.c.consumer == sa.bindparam("consumer_"))


def replace(
    conn: sa.Connection, consumer: str, node: str, resources: dict[str, int], *, first: bool
) -> None:
    """Let *consumer* hold exactly *resources* on *node*; *first*: it is known to hold nothing."""
    if not first:
        conn.execute(_DELETE, {"consumer_": consumer})
    _INSERT.execute_many(
        conn,
        [
            {"consumer": consumer, "node": node, "resource_class": name, "used": used}
            for name, used in resources.items()
        ],
    )


def delete(conn: sa.Connection, consumer: str) -> None:
    """Let *consumer* hold nothing."""
    conn.execute(_DELETE, {"consumer_": consumer})
