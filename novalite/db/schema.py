# SPDX-License-Identifier: Apache-2.0
"""Every table on one page. Times are seconds since the epoch, UTC."""

import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Json(sa.TypeDecorator[Any]):
    """A JSON value in a text column, the same on every database."""

    impl = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        """Write compact JSON; None stays NULL."""
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Any) -> Any:
        """Read JSON."""
        return None if value is None else json.loads(value)


def _id() -> sa.Column[int]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("id", kind, primary_key=True, autoincrement=True)


def _time(name: str, *, nullable: bool = True, index: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=nullable, index=index)


def _exact(name: str, length: int, **kwargs: Any) -> sa.Column[str]:
    """Text in which capitals matter on every database."""
    exact = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin")
    kind = sa.String(length).with_variant(exact, "mysql", "mariadb")
    return sa.Column(name, kind, **kwargs)


def _uuid(name: str = "uuid", **kwargs: Any) -> sa.Column[str]:
    return sa.Column(name, sa.String(36), **kwargs)


def _long_text() -> sa.types.TypeEngine[str]:
    """Text for up to 65535 characters, which may have more bytes."""
    return sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


services = sa.Table(
    "services",
    metadata,
    _id(),
    _uuid(nullable=False, unique=True),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("binary", sa.String(64), nullable=False),
    sa.Column("topic", sa.String(64), nullable=False, default=""),
    sa.Column("epoch", sa.Integer, nullable=False, default=0),
    sa.Column("report_count", sa.BigInteger, nullable=False, default=0),
    sa.Column("node_identity", sa.String(64), nullable=False, default=""),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("disabled_reason", sa.String(255)),
    sa.Column("forced_down", sa.Boolean, nullable=False, default=False),
    sa.Column("version", sa.Integer, nullable=False, default=0, server_default="0"),
    _time("last_seen_up"),
    _time("created_at", nullable=False),
    _time("updated_at", index=True),
    sa.UniqueConstraint("host", "binary"),
)

compute_nodes = sa.Table(
    "compute_nodes",
    metadata,
    _id(),
    _uuid(nullable=False, unique=True),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("hypervisor_hostname", sa.String(255), nullable=False, unique=True),
    sa.Column("epoch", sa.Integer, nullable=False, default=0),
    sa.Column("counter", sa.BigInteger, nullable=False, default=0),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("local_gb", sa.Integer, nullable=False),
    sa.Column("vcpus_used", sa.Integer, nullable=False),
    sa.Column("memory_mb_used", sa.Integer, nullable=False),
    sa.Column("local_gb_used", sa.Integer, nullable=False),
    sa.Column("disk_available_least", sa.Integer),
    sa.Column("running_vms", sa.Integer, nullable=False),
    sa.Column("current_workload", sa.Integer, nullable=False),
    # The whole picture as it was reported: ratios, reserved sizes, cpu_info, stats.
    sa.Column("picture", Json, nullable=False),
    _time("created_at", nullable=False),
    _time("updated_at", nullable=False, index=True),
    sa.Index("ix_compute_nodes_host", "host"),
)

flavors = sa.Table(
    "flavors",
    metadata,
    _id(),
    sa.Column("flavorid", sa.String(255), nullable=False, unique=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("root_gb", sa.Integer, nullable=False),
    sa.Column("ephemeral_gb", sa.Integer, nullable=False),
    sa.Column("swap_mb", sa.Integer, nullable=False),
    sa.Column("rxtx_factor", sa.Double, nullable=False),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("is_public", sa.Boolean, nullable=False),
    sa.Column("description", _long_text()),
    sa.Column("extra_specs", Json, nullable=False),
    _time("created_at", nullable=False),
    _time("updated_at"),
)

flavor_access = sa.Table(
    "flavor_access",
    metadata,
    sa.Column("flavorid", sa.String(255), primary_key=True),
    sa.Column("project_id", sa.String(255), primary_key=True),
)

instances = sa.Table(
    "instances",
    metadata,
    _id(),
    _uuid(nullable=False, unique=True),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("display_name", sa.String(255), nullable=False),
    sa.Column("display_description", sa.String(255)),
    sa.Column("hostname", sa.String(255), nullable=False),
    sa.Column("vm_state", sa.String(32), nullable=False),
    sa.Column("task_state", sa.String(32)),
    sa.Column("power_state", sa.Integer, nullable=False),
    sa.Column("host", sa.String(255)),
    sa.Column("node", sa.String(255)),
    sa.Column("availability_zone", sa.String(255)),
    sa.Column("image_ref", sa.String(255), nullable=False),
    sa.Column("flavorid", sa.String(255), nullable=False),
    sa.Column("flavor", Json, nullable=False),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("key_name", sa.String(255)),
    sa.Column("user_data", _long_text()),
    sa.Column("config_drive", sa.Boolean, nullable=False),
    sa.Column("reservation_id", sa.String(64), nullable=False),
    sa.Column("launch_index", sa.Integer, nullable=False),
    sa.Column("access_ip_v4", sa.String(39)),
    sa.Column("access_ip_v6", sa.String(39)),
    sa.Column("disk_config", sa.String(16), nullable=False),
    sa.Column("root_device_name", sa.String(64)),
    sa.Column("locked", sa.Boolean, nullable=False),
    # Who has locked it, owner or admin: an owner does not open what an administrator has closed.
    sa.Column("locked_by", sa.String(16)),
    sa.Column("locked_reason", sa.String(255)),
    sa.Column("trusted_certs", Json),
    sa.Column("metadata", Json, nullable=False),
    sa.Column("tags", Json, nullable=False),
    sa.Column("security_groups", Json, nullable=False),
    sa.Column("network_info", Json, nullable=False),
    # The server's volumes; NULL is none, as in rows that were written before there was any.
    sa.Column("block_devices", Json),
    # The attempt that built it; with the action it names the one guest that is the server's.
    sa.Column("built_action", sa.BigInteger),
    sa.Column("built_attempt", sa.Integer),
    sa.Column("built_token", sa.String(64)),
    sa.Column("action_id", sa.BigInteger),
    sa.Column("deleted", sa.Boolean, nullable=False),
    _time("created_at", nullable=False),
    _time("updated_at"),
    _time("launched_at"),
    _time("terminated_at"),
    _time("deleted_at"),
    sa.Index("ix_instances_project", "project_id", "deleted", "created_at"),
    # What a quota counts, without a look at the rows themselves.
    sa.Index("ix_instances_usage", "project_id", "deleted", "user_id", "vcpus", "memory_mb"),
    sa.Index("ix_instances_host", "host", "deleted"),
    sa.Index("ix_instances_reservation", "reservation_id"),
    sa.Index("ix_instances_vm_state", "deleted", "vm_state"),
)

request_specs = sa.Table(
    "request_specs",
    metadata,
    _uuid("instance_uuid", primary_key=True),
    sa.Column("spec", Json, nullable=False),
)

instance_faults = sa.Table(
    "instance_faults",
    metadata,
    _id(),
    _uuid("instance_uuid", nullable=False, index=True),
    sa.Column("code", sa.Integer, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("details", sa.Text, nullable=False),
    sa.Column("host", sa.String(255)),
    _time("created_at", nullable=False),
)

# Both what the API shows as history and the durable intent (docs/architecture.md, the protocol).
instance_actions = sa.Table(
    "instance_actions",
    metadata,
    _id(),
    sa.Column("request_id", sa.String(64), nullable=False),
    _uuid("instance_uuid", nullable=False),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("reservation_id", sa.String(64), nullable=False, default=""),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("step", sa.String(16), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False, default=0),
    sa.Column("failures", Json, nullable=False),
    sa.Column("drives", sa.Integer, nullable=False, default=0),
    sa.Column("recasts", sa.Integer, nullable=False, default=0),
    sa.Column("target_host", sa.String(255)),
    sa.Column("target_node", sa.String(255)),
    sa.Column("owner", sa.String(255)),
    sa.Column("token", sa.String(64)),
    _time("deadline", nullable=False),
    sa.Column("args", Json, nullable=False),
    sa.Column("message", sa.Text),
    _time("start", nullable=False),
    _time("finish"),
    _time("updated"),
    sa.Index("ix_instance_actions_instance", "instance_uuid", "request_id"),
    sa.Index("ix_instance_actions_open", "state", "deadline"),
    sa.Index("ix_instance_actions_reservation", "reservation_id"),
)

instance_action_events = sa.Table(
    "instance_action_events",
    metadata,
    _id(),
    sa.Column("action_id", sa.BigInteger, nullable=False, index=True),
    sa.Column("event", sa.String(255), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False, default=0),
    sa.Column("host", sa.String(255)),
    _time("start", nullable=False),
    _time("finish"),
    sa.Column("result", sa.String(32)),
    sa.Column("details", Json, nullable=False),
    sa.Column("traceback", sa.Text),
)

# Hosts that may still hold a guest which is not the server's any more: up to which attempt it may
# be destroyed there. A row goes when the host has reported the guest gone.
cleanups = sa.Table(
    "cleanups",
    metadata,
    _uuid("instance_uuid", primary_key=True),
    sa.Column("host", sa.String(255), primary_key=True),
    sa.Column("node", sa.String(255), nullable=False),
    sa.Column("attempt", sa.Integer),
    _time("deadline", nullable=False),
    sa.Index("ix_cleanups_host", "host"),
)

allocations = sa.Table(
    "allocations",
    metadata,
    _uuid("consumer", primary_key=True),
    sa.Column("node", sa.String(255), primary_key=True),
    sa.Column("resource_class", sa.String(64), primary_key=True),
    sa.Column("used", sa.BigInteger, nullable=False),
    _time("created_at", nullable=False, index=True),
    sa.Index("ix_allocations_node", "node"),
)

key_pairs = sa.Table(
    "key_pairs",
    metadata,
    _id(),
    sa.Column("user_id", sa.String(255), nullable=False),
    _exact("name", 255, nullable=False),
    sa.Column("type", sa.String(16), nullable=False),
    sa.Column("public_key", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.String(255), nullable=False),
    _time("created_at", nullable=False),
    sa.UniqueConstraint("user_id", "name"),
)

server_groups = sa.Table(
    "server_groups",
    metadata,
    _id(),
    _uuid(nullable=False, unique=True),
    sa.Column("project_id", sa.String(255), nullable=False, index=True),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("policy", sa.String(64), nullable=False),
    sa.Column("rules", Json, nullable=False),
    _time("created_at", nullable=False),
)

server_group_members = sa.Table(
    "server_group_members",
    metadata,
    _uuid("instance_uuid", primary_key=True),
    _uuid("group_uuid", nullable=False, index=True),
)

# A limit of a project, or of one user in it; without a user the column holds an empty text.
quota_limits = sa.Table(
    "quota_limits",
    metadata,
    sa.Column("project_id", sa.String(255), primary_key=True),
    sa.Column("user_id", sa.String(255), primary_key=True),
    sa.Column("resource", sa.String(64), primary_key=True),
    sa.Column("hard_limit", sa.Integer, nullable=False),
)

quota_class_limits = sa.Table(
    "quota_class_limits",
    metadata,
    sa.Column("class_name", sa.String(255), primary_key=True),
    sa.Column("resource", sa.String(64), primary_key=True),
    sa.Column("hard_limit", sa.Integer, nullable=False),
)

# Written first by every transaction that counts against a quota, so that two never count at once:
# SELECT FOR UPDATE does not hold across the nodes of a Galera cluster.
quota_locks = sa.Table(
    "quota_locks",
    metadata,
    sa.Column("project_id", sa.String(255), primary_key=True),
    sa.Column("taken", sa.BigInteger, nullable=False),
)

aggregates = sa.Table(
    "aggregates",
    metadata,
    _id(),
    _uuid(nullable=False, unique=True),
    _exact("name", 255, nullable=False, unique=True),
    _time("created_at", nullable=False),
    _time("updated_at"),
)

aggregate_hosts = sa.Table(
    "aggregate_hosts",
    metadata,
    sa.Column("aggregate_id", sa.BigInteger, primary_key=True),
    _exact("host", 255, primary_key=True, index=True),
)

# The zone of an aggregate is its key availability_zone, here as in the API.
aggregate_metadata = sa.Table(
    "aggregate_metadata",
    metadata,
    sa.Column("aggregate_id", sa.BigInteger, primary_key=True),
    _exact("key", 255, primary_key=True),
    _exact("value", 255, nullable=False),
)

# One row. Every change of aggregates writes it first, so that two never check the rules of zones
# at once; and schedulers see by it that there is something to read anew.
aggregate_changes = sa.Table(
    "aggregate_changes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)
