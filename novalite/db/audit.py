# SPDX-License-Identifier: Apache-2.0
"""What an audit reads of the database, and what it may repair there.

A repair is a transaction that first writes the server's row, as a delete does, and then looks
again: so what has happened since the difference was found is seen, and nothing happens meanwhile.
"""

import json
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from novalite.db import allocations, builds, schema
from novalite.objects import audit, base, capacity
from novalite.objects.audit import Facts, Record, Server
from novalite.objects.compute_node import NUMBERS
from novalite.objects.flavor import Flavor

_i = schema.instances
_al = schema.allocations
_n = schema.compute_nodes
_c = schema.cleanups

# As text: many servers share a flavor, and it is read once for all of them.
_SERVERS = sa.select(
    _i.c.uuid,
    _i.c.host,
    _i.c.node,
    _i.c.vm_state,
    _i.c.action_id,
    _i.c.vcpus,
    _i.c.memory_mb,
    _i.c.image_ref,
    _i.c.built_attempt,
    _i.c.deleted,
    sa.type_coerce(_i.c.flavor, sa.Text).label("flavor"),
)
_LIVE = _SERVERS.where(~_i.c.deleted)
_NAMED = _SERVERS.where(_i.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
_HELD = sa.select(_al.c.consumer, _al.c.node, _al.c.resource_class, _al.c.used)
_HELD_BY = _HELD.where(_al.c.consumer == sa.bindparam("consumer_"))
_LOCK = sa.update(_i).where(_i.c.uuid == sa.bindparam("uuid_")).values(updated_at=_i.c.updated_at)
_RESIZE = (
    sa.update(_i)
    .where(_i.c.uuid == sa.bindparam("uuid_"))
    .values(vcpus=sa.bindparam("vcpus_"), memory_mb=sa.bindparam("memory_mb_"))
)
# So many servers are named in one statement; databases limit the number of parameters.
_CHUNK = 500


def read(conn: sa.Connection) -> Facts:
    """Return servers, allocations, nodes and clean-ups; of deleted servers those that hold
    something."""
    flavors: dict[str, Flavor] = {}
    held = _held(conn.execute(_HELD))
    servers = {row.uuid: _server(row, flavors) for row in conn.execute(_LIVE)}
    servers |= named(conn, held.keys() - servers.keys())
    rows = conn.execute(sa.select(_n))
    records = {row.hypervisor_hostname: _record(row) for row in rows}
    left = conn.execute(sa.select(_c.c.instance_uuid, _c.c.host))
    return Facts(servers, held, records, frozenset((row[0], row[1]) for row in left))


def named(conn: sa.Connection, uuids: Iterable[str]) -> dict[str, Server]:
    """Return these servers, deleted ones too, as far as they are known."""
    flavors: dict[str, Flavor] = {}
    wanted = sorted(uuids)
    found: dict[str, Server] = {}
    for start in range(0, len(wanted), _CHUNK):
        rows = conn.execute(_NAMED, {"uuids": wanted[start : start + _CHUNK]})
        found.update((row.uuid, _server(row, flavors)) for row in rows)
    return found


def _held(rows: Iterable[Any]) -> dict[str, dict[str, dict[str, int]]]:
    held: dict[str, dict[str, dict[str, int]]] = {}
    for consumer, node, name, used in rows:
        held.setdefault(consumer, {}).setdefault(node, {})[name] = int(used)
    return held


def _server(row: Any, flavors: dict[str, Flavor]) -> Server:
    flavor = flavors.get(row.flavor)
    if flavor is None:
        flavor = flavors[row.flavor] = base.decode(json.loads(row.flavor))
    return Server(
        uuid=row.uuid,
        host=row.host,
        node=row.node,
        vm_state=row.vm_state,
        busy=row.action_id is not None,
        need=capacity.need(flavor, volume_backed=not row.image_ref),
        flavor=(flavor.vcpus, flavor.memory_mb),
        counted=(row.vcpus, row.memory_mb),
        attempt=row.built_attempt,
        deleted=bool(row.deleted),
    )


def _record(row: Any) -> Record:
    numbers = {name: getattr(row, name) for name in NUMBERS}
    return Record(row.host, base.decode(row.picture), numbers)


def _look_again(conn: sa.Connection, uuid: str) -> Server | None:
    conn.execute(_LOCK, {"uuid_": uuid})
    return named(conn, [uuid]).get(uuid)


def settle(conn: sa.Connection, uuid: str) -> bool:
    """Let a server hold what it needs and count as its flavor; one that is not there holds nothing.

    False if that is so already, or if the server is in work.
    """
    server = _look_again(conn, uuid)
    if server is not None and server.busy:
        return False
    placed = server is not None and server.placed
    wanted = {str(server.node): audit.resources(server.need)} if server and placed else {}
    held = _held(conn.execute(_HELD_BY, {"consumer_": uuid})).get(uuid, {})
    changed = {
        node: {name: used for name, used in amounts.items() if used}
        for node, amounts in held.items()
    } != wanted
    if changed:
        allocations.delete(conn, uuid)
        for node, amounts in wanted.items():
            allocations.replace(conn, uuid, node, amounts, first=True)
    if server is not None and not server.deleted and server.counted != server.flavor:
        vcpus, memory_mb = server.flavor
        conn.execute(_RESIZE, {"uuid_": uuid, "vcpus_": vcpus, "memory_mb_": memory_mb})
        changed = True
    return changed


def clean_up(conn: sa.Connection, found: audit.Difference) -> bool:
    """Let a conductor tell a host that a guest of a known server must go from it.

    False if the server is in work, or the guest is its own by now.
    """
    server = _look_again(conn, str(found.instance_uuid))
    if server is None or server.busy:
        return False
    if server.placed and server.host == found.host and server.attempt in (None, found.attempt):
        return False
    host, node = str(found.host), str(found.node)
    builds.add_cleanup(conn, server.uuid, host, node, found.attempt)
    return True
