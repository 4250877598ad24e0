# SPDX-License-Identifier: Apache-2.0
"""Key pairs: the public keys of users, by user and name.

A server keeps the name of its key pair, so a key pair can be deleted at any time.
"""

import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from novalite import exception
from novalite.db import schema
from novalite.objects.key_pair import KeyPair

_t = schema.key_pairs

_GET = sa.select(_t).where(
    _t.c.user_id == sa.bindparam("user_id_"), _t.c.name == sa.bindparam("name_")
)


def _from_row(row: Any) -> KeyPair:
    return KeyPair(
        id=row.id,
        user_id=row.user_id,
        name=row.name,
        type=row.type,
        public_key=row.public_key,
        fingerprint=row.fingerprint,
        created_at=row.created_at,
    )


def create(conn: sa.Connection, pair: KeyPair) -> None:
    """Store a new key pair.

    :raises exception.KeyPairExists: the user has one of that name
    """
    values = {
        "user_id": pair.user_id,
        "name": pair.name,
        "type": pair.type,
        "public_key": pair.public_key,
        "fingerprint": pair.fingerprint,
        "created_at": time.time(),
    }
    try:
        conn.execute(sa.insert(_t), values)
    except exc.IntegrityError as error:
        raise exception.KeyPairExists(key_name=pair.name) from error


def get(conn: sa.Connection, user_id: str, name: str) -> KeyPair:
    """Return a key pair.

    :raises exception.KeypairNotFound: the user has none of that name
    """
    row = conn.execute(_GET, {"user_id_": user_id, "name_": name}).first()
    if row is None:
        raise exception.KeypairNotFound(name=name, user_id=user_id)
    return _from_row(row)


def page(
    conn: sa.Connection, user_id: str, *, marker: str | None = None, limit: int | None = None
) -> tuple[list[KeyPair], bool]:
    """Return a user's key pairs by name (*limit* None: all), and whether more follow.

    :raises exception.MarkerNotFound: the marker is no key pair of the user
    """
    statement = sa.select(_t).where(_t.c.user_id == user_id).order_by(_t.c.name)
    if marker is not None:
        if conn.execute(_GET, {"user_id_": user_id, "name_": marker}).first() is None:
            raise exception.MarkerNotFound(marker=marker)
        statement = statement.where(_t.c.name > marker)
    if limit is None:
        return [_from_row(row) for row in conn.execute(statement)], False
    if limit == 0:
        return [], False
    rows = conn.execute(statement.limit(limit + 1)).all()
    return [_from_row(row) for row in rows[:limit]], len(rows) > limit


def delete(conn: sa.Connection, user_id: str, name: str) -> None:
    """Remove a key pair; servers made with it keep its name.

    :raises exception.KeypairNotFound: the user has none of that name
    """
    gone = conn.execute(sa.delete(_t).where(_t.c.user_id == user_id, _t.c.name == name)).rowcount
    if not gone:
        raise exception.KeypairNotFound(name=name, user_id=user_id)
