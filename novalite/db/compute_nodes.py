# SPDX-License-Identifier: Apache-2.0
"""Nodes: the last picture that each compute has sent, taken only if it is newer."""

import dataclasses
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from novalite import exception
from novalite.db import schema, services
from novalite.db.engine import now
from novalite.db.prepared import Prepared
from novalite.objects import base
from novalite.objects.compute_node import NUMBERS, ComputeNode
from novalite.objects.service import Service

_t = schema.compute_nodes
_s = schema.services
_al = schema.allocations

# A reader's mark is put back by so much, for rows that were stamped before they were committed.
OVERLAP = 5.0
# Claims that came into the books within this time are named to a scheduler's first reading.
SETTLED = 30.0

_UPDATE = Prepared(
    sa.update(_t)
    .where(
        _t.c.hypervisor_hostname == sa.bindparam("node_"),
        _t.c.host == sa.bindparam("host_"),
        sa.or_(
            _t.c.epoch < sa.bindparam("epoch_"),
            sa.and_(_t.c.epoch == sa.bindparam("epoch_"), _t.c.counter < sa.bindparam("counter_")),
        ),
    )
    .values(
        epoch=sa.bindparam("epoch_"),
        counter=sa.bindparam("counter_"),
        picture=sa.bindparam("picture_"),
        updated_at=now(),
        **{name: sa.bindparam(f"{name}_") for name in NUMBERS},
    )
)
_OWNER = sa.select(_t.c.host, _t.c.uuid).where(_t.c.hypervisor_hostname == sa.bindparam("node_"))
_AGE = (now() - _s.c.last_seen_up).label("age")
_JOINED = sa.select(
    _t.c.id.label("node_id"), _t.c.uuid.label("node_uuid"), _t.c.picture, _s, _AGE
).join(_s, sa.and_(_s.c.host == _t.c.host, _s.c.binary == "nova-compute"))
_EVERY = _JOINED.order_by(_t.c.id)
# The same without the picture, which costs more to read than all the rest.
_HEADS = (
    sa.select(
        _t.c.id.label("node_id"),
        _t.c.uuid.label("node_uuid"),
        _t.c.hypervisor_hostname,
        _t.c.epoch.label("node_epoch"),
        _t.c.counter,
        _s,
        _AGE,
    )
    .join(_s, sa.and_(_s.c.host == _t.c.host, _s.c.binary == "nova-compute"))
    .order_by(_t.c.id)
)
_CHANGED = _HEADS.where(
    sa.or_(_t.c.updated_at > sa.bindparam("mark"), _s.c.updated_at > sa.bindparam("mark"))
)
_PICTURES = sa.select(_t.c.id, _t.c.picture).where(_t.c.id.in_(sa.bindparam("ids", expanding=True)))
# So many pictures are read by one statement; databases limit the number of parameters.
_CHUNK = 500
_SETTLED = sa.select(_al.c.node, _al.c.consumer).where(
    _al.c.created_at > sa.bindparam("mark"), _al.c.resource_class == "VCPU"
)
_NOW = sa.select(now())


def save(conn: sa.Connection, picture: ComputeNode) -> bool:
    """Take a node's picture if it is newer than the one there; the first one makes the row.

    :raises exception.Conflict: the node belongs to another host
    """
    wire = base.encode(picture)
    values: dict[str, Any] = {f"{name}_": getattr(picture, name) for name in NUMBERS}
    values.update(
        node_=picture.hypervisor_hostname,
        host_=picture.host,
        epoch_=picture.generation.epoch,
        counter_=picture.generation.counter,
        picture_=wire,
    )
    if _UPDATE.execute(conn, values).rowcount:
        return True
    row = conn.execute(_OWNER, {"node_": picture.hypervisor_hostname}).first()
    if row is not None:
        if row.host != picture.host:
            raise exception.Conflict(
                f"node {picture.hypervisor_hostname} belongs to host {row.host}, "
                f"not to {picture.host}"
            )
        return False
    conn.execute(
        sa.insert(_t).values(
            uuid=picture.uuid or str(uuid.uuid4()),
            host=picture.host,
            hypervisor_hostname=picture.hypervisor_hostname,
            epoch=picture.generation.epoch,
            counter=picture.generation.counter,
            picture=wire,
            created_at=now(),
            updated_at=now(),
            **{name: getattr(picture, name) for name in NUMBERS},
        )
    )
    return True


def check_owner(conn: sa.Connection, host: str, nodes: Sequence[str]) -> None:
    """Refuse a host whose nodes are known as another host's.

    :raises exception.Conflict: naming node and host
    """
    taken = sa.select(_t.c.hypervisor_hostname, _t.c.host).where(
        _t.c.hypervisor_hostname.in_(nodes), _t.c.host != host
    )
    row = conn.execute(taken).first()
    if row is not None:
        raise exception.Conflict(
            f"node {row.hypervisor_hostname} belongs to host {row.host}, not to {host}: each node "
            "needs a name of its own"
        )


def pictures(
    conn: sa.Connection, since: float | None, known: Mapping[str, ComputeNode] | None = None
) -> tuple[list[tuple[ComputeNode, Service]], float]:
    """Return the pictures with their services that changed since the mark, and the next mark.

    *since* is a mark that an earlier call returned, or None for all. ``ComputeNode.instances``
    names the servers whose claims came into the books since the mark. Marks and ages are on the
    database's clock.

    :param known: the caller's pictures by the node's name; one that is still the newest is not
        read again but returned itself, with its ``instances`` set
    """
    moment = float(conn.execute(_NOW).scalar_one())
    mark = moment - SETTLED if since is None else since - OVERLAP
    # Claims first: one that is named must be in the picture that is read after it.
    settled: dict[str, list[str]] = {}
    for node, consumer in conn.execute(_SETTLED, {"mark": mark}):
        settled.setdefault(node, []).append(consumer)
    heads = conn.execute(_HEADS if since is None else _CHANGED, {"mark": mark}).all()
    newest = {row.node_id: _newest(row, known or {}) for row in heads}
    missing = [node_id for node_id, picture in newest.items() if picture is None]
    for start in range(0, len(missing), _CHUNK):
        chunk = missing[start : start + _CHUNK]
        for node_id, picture in conn.execute(_PICTURES, {"ids": chunk}):
            newest[node_id] = base.decode(picture)
    records = []
    for row in heads:
        node = newest[row.node_id]
        if node is None:
            continue  # deleted between the two statements
        node.uuid = row.node_uuid
        node.instances = settled.get(row.hypervisor_hostname, [])
        records.append((node, services.from_row(row)))
    return records, moment


def _newest(row: Any, known: Mapping[str, ComputeNode]) -> ComputeNode | None:
    """Return the known picture of the row's node if the row holds no newer one."""
    node = known.get(row.hypervisor_hostname)
    if node is None or node.uuid != row.node_uuid:
        return None
    held = (node.generation.epoch, node.generation.counter)
    return node if held == (row.node_epoch, row.counter) else None


def _from_row(row: Any) -> ComputeNode:
    node: ComputeNode = base.decode(row.picture)
    node.uuid = row.node_uuid
    return node


@dataclasses.dataclass(slots=True)
class NodeRecord:
    """A node with its row's id and its service, for the API."""

    id: int
    node: ComputeNode
    service: Service


def list_all(conn: sa.Connection) -> list[NodeRecord]:
    """Return all nodes in the order of their ids."""
    return [
        NodeRecord(row.node_id, _from_row(row), services.from_row(row))
        for row in conn.execute(_EVERY)
    ]


def exists(conn: sa.Connection, host: str | None, node: str | None) -> bool:
    """Tell whether there is a node of this name (None: any) on this host (None: any).

    Host names are compared without regard to case, node names exactly, as a scheduler does.
    """
    statement = sa.select(_t.c.hypervisor_hostname)
    if host is not None:
        statement = statement.where(sa.func.lower(_t.c.host) == host.lower())
    if node is not None:
        statement = statement.where(_t.c.hypervisor_hostname == node)
    return any(node is None or row[0] == node for row in conn.execute(statement))


def uuids_of(conn: sa.Connection, host: str) -> dict[str, str]:
    """Return the uuid of each node of a service host by the node's name."""
    rows = conn.execute(sa.select(_t.c.hypervisor_hostname, _t.c.uuid).where(_t.c.host == host))
    return {row.hypervisor_hostname: row.uuid for row in rows}
