# SPDX-License-Identifier: Apache-2.0
"""Servers: one row each, and the fault of those in ERROR."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from novalite import exception
from novalite.db import schema
from novalite.db.prepared import Prepared
from novalite.objects import base
from novalite.objects.instance import Instance, InstanceFault
from novalite.objects.states import PowerState, TaskState, VMState

_t = schema.instances

# Columns that are attributes of the object under the same name and need no conversion.
_PLAIN = (
    "id",
    "uuid",
    "project_id",
    "user_id",
    "display_name",
    "display_description",
    "hostname",
    "host",
    "node",
    "availability_zone",
    "image_ref",
    "key_name",
    "user_data",
    "config_drive",
    "reservation_id",
    "launch_index",
    "access_ip_v4",
    "access_ip_v6",
    "disk_config",
    "root_device_name",
    "locked",
    "metadata",
    "tags",
    "security_groups",
    "trusted_certs",
    "created_at",
    "updated_at",
    "launched_at",
    "terminated_at",
    "deleted_at",
    "deleted",
    "action_id",
)

_GET = sa.select(_t).where(_t.c.uuid == sa.bindparam("uuid_"))
_UNPLACED = sa.select(_t.c.uuid).where(
    _t.c.uuid.in_(sa.bindparam("uuids", expanding=True)),
    _t.c.vm_state == VMState.BUILDING.value,
    _t.c.host.is_(None),
    ~_t.c.deleted,
)
# So many servers are named in one statement; databases limit the number of parameters.
_CHUNK = 500
_INSERT = Prepared(sa.insert(_t))
_ADD_FAULT = sa.insert(schema.instance_faults)
_LAST_FAULT = (
    sa.select(schema.instance_faults)
    .where(schema.instance_faults.c.instance_uuid == sa.bindparam("uuid_"))
    .order_by(schema.instance_faults.c.id.desc())
    .limit(1)
)


def from_row(row: Any) -> Instance:
    """Make the object of a row of the instances table."""
    values = {name: getattr(row, name) for name in _PLAIN}
    return Instance(
        flavor=base.decode(row.flavor),
        vm_state=VMState(row.vm_state),
        task_state=TaskState(row.task_state) if row.task_state else None,
        power_state=PowerState(row.power_state),
        network_info=base.decode(row.network_info),
        block_devices=base.decode(row.block_devices or []),
        **values,
    )


def insert(conn: sa.Connection, instance: Instance) -> int:
    """Store a new server and return its id; ``instance.id`` is set too."""
    values = {name: getattr(instance, name) for name in _PLAIN if name != "id"}
    values.update(
        flavorid=instance.flavor.flavorid,
        flavor=base.encode(instance.flavor),
        vcpus=instance.flavor.vcpus,
        memory_mb=instance.flavor.memory_mb,
        vm_state=instance.vm_state.value,
        task_state=instance.task_state.value if instance.task_state else None,
        power_state=int(instance.power_state),
        network_info=base.encode(instance.network_info),
        block_devices=base.encode(instance.block_devices) or None,
    )
    instance.id = _INSERT.insert(conn, values)
    return instance.id


def get(conn: sa.Connection, uuid: str, *, read_deleted: bool = False) -> Instance:
    """Return the server.

    :raises exception.InstanceNotFound: unknown, or deleted and *read_deleted* not set
    """
    row = conn.execute(_GET, {"uuid_": uuid}).first()
    if row is None or (row.deleted and not read_deleted):
        raise exception.InstanceNotFound(instance_id=uuid)
    return from_row(row)


def unplaced(conn: sa.Connection, uuids: Sequence[str]) -> set[str]:
    """Return those of the servers that are being built and have no host yet."""
    found: set[str] = set()
    for start in range(0, len(uuids), _CHUNK):
        found.update(conn.scalars(_UNPLACED, {"uuids": uuids[start : start + _CHUNK]}))
    return found


def add_fault(conn: sa.Connection, uuid: str, fault: InstanceFault) -> None:
    """Record why the server is in ERROR; the latest record is the one shown."""
    conn.execute(
        _ADD_FAULT,
        {
            "instance_uuid": uuid,
            "code": fault.code,
            "message": fault.message,
            "details": fault.details,
            "host": fault.host,
            "created_at": fault.created_at,
        },
    )


def last_fault(conn: sa.Connection, uuid: str) -> InstanceFault | None:
    """Return the latest fault of the server."""
    row = conn.execute(_LAST_FAULT, {"uuid_": uuid}).first()
    return None if row is None else fault_from_row(row)


def fault_from_row(row: Any) -> InstanceFault:
    """Make the object of a row of the instance_faults table."""
    return InstanceFault(
        code=row.code,
        message=row.message,
        details=row.details,
        host=row.host,
        created_at=row.created_at,
    )
