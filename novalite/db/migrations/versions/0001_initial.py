# SPDX-License-Identifier: Apache-2.0
"""The first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead on from the former revision."""
    op.create_table(
        "allocations",
        sa.Column("consumer", sa.String(length=36), nullable=False),
        sa.Column("node", sa.String(length=255), nullable=False),
        sa.Column("resource_class", sa.String(length=64), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("consumer", "node", "resource_class", name=op.f("pk_allocations")),
    )
    op.create_index(op.f("ix_allocations_created_at"), "allocations", ["created_at"], unique=False)
    op.create_index("ix_allocations_node", "allocations", ["node"], unique=False)
    op.create_table(
        "cleanups",
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("node", sa.String(length=255), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("deadline", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid", "host", name=op.f("pk_cleanups")),
    )
    op.create_index("ix_cleanups_host", "cleanups", ["host"], unique=False)
    op.create_table(
        "compute_nodes",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("hypervisor_hostname", sa.String(length=255), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("counter", sa.BigInteger(), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("local_gb", sa.Integer(), nullable=False),
        sa.Column("vcpus_used", sa.Integer(), nullable=False),
        sa.Column("memory_mb_used", sa.Integer(), nullable=False),
        sa.Column("local_gb_used", sa.Integer(), nullable=False),
        sa.Column("disk_available_least", sa.Integer(), nullable=True),
        sa.Column("running_vms", sa.Integer(), nullable=False),
        sa.Column("current_workload", sa.Integer(), nullable=False),
        sa.Column(
            "picture",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"),
            nullable=False,
        ),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_compute_nodes")),
        sa.UniqueConstraint(
            "hypervisor_hostname", name=op.f("uq_compute_nodes_hypervisor_hostname")
        ),
        sa.UniqueConstraint("uuid", name=op.f("uq_compute_nodes_uuid")),
    )
    op.create_index("ix_compute_nodes_host", "compute_nodes", ["host"], unique=False)
    op.create_index(
        op.f("ix_compute_nodes_updated_at"), "compute_nodes", ["updated_at"], unique=False
    )
    op.create_table(
        "flavor_access",
        sa.Column("flavorid", sa.String(length=255), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("flavorid", "project_id", name=op.f("pk_flavor_access")),
    )
    op.create_table(
        "flavors",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("flavorid", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("root_gb", sa.Integer(), nullable=False),
        sa.Column("ephemeral_gb", sa.Integer(), nullable=False),
        sa.Column("swap_mb", sa.Integer(), nullable=False),
        sa.Column("rxtx_factor", sa.Double(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("is_public", sa.Boolean(), nullable=False),
        sa.Column(
            "description",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"),
            nullable=True,
        ),
        sa.Column(
            "extra_specs",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"),
            nullable=False,
        ),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flavors")),
        sa.UniqueConstraint("flavorid", name=op.f("uq_flavors_flavorid")),
        sa.UniqueConstraint("name", name=op.f("uq_flavors_name")),
    )
    op.create_table(
        "instance_action_events",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("action_id", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.String(length=255), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("start", sa.Double(), nullable=False),
        sa.Column("finish", sa.Double(), nullable=True),
        sa.Column("result", sa.String(length=32), nullable=True),
        sa.Column(
            "details",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"),
            nullable=False,
        ),
        sa.Column("traceback", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_action_events")),
    )
    op.create_index(
        op.f("ix_instance_action_events_action_id"),
        "instance_action_events",
        ["action_id"],
        unique=False,
    )
    op.create_table(
        "instance_actions",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("reservation_id", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("step", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column(
            "failures",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"),
            nullable=False,
        ),
        sa.Column("drives", sa.Integer(), nullable=False),
        sa.Column("recasts", sa.Integer(), nullable=False),
        sa.Column("target_host", sa.String(length=255), nullable=True),
        sa.Column("target_node", sa.String(length=255), nullable=True),
        sa.Column("owner", sa.String(length=255), nullable=True),
        sa.Column("token", sa.String(length=64), nullable=True),
        sa.Column("deadline", sa.Double(), nullable=False),
        sa.Column(
            "args", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"), nullable=False
        ),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("start", sa.Double(), nullable=False),
        sa.Column("finish", sa.Double(), nullable=True),
        sa.Column("updated", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_actions")),
    )
    op.create_index(
        "ix_instance_actions_instance",
        "instance_actions",
        ["instance_uuid", "request_id"],
        unique=False,
    )
    op.create_index(
        "ix_instance_actions_open", "instance_actions", ["state", "deadline"], unique=False
    )
    op.create_index(
        "ix_instance_actions_reservation", "instance_actions", ["reservation_id"], unique=False
    )
    op.create_table(
        "instance_faults",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance_faults")),
    )
    op.create_index(
        op.f("ix_instance_faults_instance_uuid"), "instance_faults", ["instance_uuid"], unique=False
    )
    op.create_table(
        "instances",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("display_name", sa.String(length=255), nullable=False),
        sa.Column("display_description", sa.String(length=255), nullable=True),
        sa.Column("hostname", sa.String(length=255), nullable=False),
        sa.Column("vm_state", sa.String(length=32), nullable=False),
        sa.Column("task_state", sa.String(length=32), nullable=True),
        sa.Column("power_state", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=True),
        sa.Column("node", sa.String(length=255), nullable=True),
        sa.Column("availability_zone", sa.String(length=255), nullable=True),
        sa.Column("image_ref", sa.String(length=255), nullable=False),
        sa.Column("flavorid", sa.String(length=255), nullable=False),
        sa.Column(
            "flavor", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"), nullable=False
        ),
        sa.Column("vcpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("key_name", sa.String(length=255), nullable=True),
        sa.Column(
            "user_data",
            sa.Text()
            .with_variant(mysql.MEDIUMTEXT(), "mariadb")
            .with_variant(mysql.MEDIUMTEXT(), "mysql"),
            nullable=True,
        ),
        sa.Column("config_drive", sa.Boolean(), nullable=False),
        sa.Column("reservation_id", sa.String(length=64), nullable=False),
        sa.Column("launch_index", sa.Integer(), nullable=False),
        sa.Column("access_ip_v4", sa.String(length=39), nullable=True),
        sa.Column("access_ip_v6", sa.String(length=39), nullable=True),
        sa.Column("disk_config", sa.String(length=16), nullable=False),
        sa.Column("root_device_name", sa.String(length=64), nullable=True),
        sa.Column("locked", sa.Boolean(), nullable=False),
        sa.Column(
            "metadata",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"),
            nullable=False,
        ),
        sa.Column(
            "tags", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"), nullable=False
        ),
        sa.Column(
            "security_groups",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"),
            nullable=False,
        ),
        sa.Column(
            "network_info",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"),
            nullable=False,
        ),
        sa.Column("built_action", sa.BigInteger(), nullable=True),
        sa.Column("built_attempt", sa.Integer(), nullable=True),
        sa.Column("built_token", sa.String(length=64), nullable=True),
        sa.Column("action_id", sa.BigInteger(), nullable=True),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.Column("launched_at", sa.Double(), nullable=True),
        sa.Column("terminated_at", sa.Double(), nullable=True),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instances")),
        sa.UniqueConstraint("uuid", name=op.f("uq_instances_uuid")),
    )
    op.create_index("ix_instances_host", "instances", ["host", "deleted"], unique=False)
    op.create_index(
        "ix_instances_project", "instances", ["project_id", "deleted", "created_at"], unique=False
    )
    op.create_index("ix_instances_reservation", "instances", ["reservation_id"], unique=False)
    op.create_index("ix_instances_vm_state", "instances", ["deleted", "vm_state"], unique=False)
    op.create_table(
        "request_specs",
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column(
            "spec", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"), nullable=False
        ),
        sa.PrimaryKeyConstraint("instance_uuid", name=op.f("pk_request_specs")),
    )
    op.create_table(
        "services",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("binary", sa.String(length=64), nullable=False),
        sa.Column("topic", sa.String(length=64), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("report_count", sa.BigInteger(), nullable=False),
        sa.Column("node_identity", sa.String(length=64), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_reason", sa.String(length=255), nullable=True),
        sa.Column("forced_down", sa.Boolean(), nullable=False),
        sa.Column("last_seen_up", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_services")),
        sa.UniqueConstraint("host", "binary", name=op.f("uq_services_host")),
        sa.UniqueConstraint("uuid", name=op.f("uq_services_uuid")),
    )
    op.create_index(op.f("ix_services_updated_at"), "services", ["updated_at"], unique=False)


def downgrade() -> None:
    """Lead back to the former revision."""
    op.drop_index(op.f("ix_services_updated_at"), table_name="services")
    op.drop_table("services")
    op.drop_table("request_specs")
    op.drop_index("ix_instances_vm_state", table_name="instances")
    op.drop_index("ix_instances_reservation", table_name="instances")
    op.drop_index("ix_instances_project", table_name="instances")
    op.drop_index("ix_instances_host", table_name="instances")
    op.drop_table("instances")
    op.drop_index(op.f("ix_instance_faults_instance_uuid"), table_name="instance_faults")
    op.drop_table("instance_faults")
    op.drop_index("ix_instance_actions_reservation", table_name="instance_actions")
    op.drop_index("ix_instance_actions_open", table_name="instance_actions")
    op.drop_index("ix_instance_actions_instance", table_name="instance_actions")
    op.drop_table("instance_actions")
    op.drop_index(op.f("ix_instance_action_events_action_id"), table_name="instance_action_events")
    op.drop_table("instance_action_events")
    op.drop_table("flavors")
    op.drop_table("flavor_access")
    op.drop_index(op.f("ix_compute_nodes_updated_at"), table_name="compute_nodes")
    op.drop_index("ix_compute_nodes_host", table_name="compute_nodes")
    op.drop_table("compute_nodes")
    op.drop_index("ix_cleanups_host", table_name="cleanups")
    op.drop_table("cleanups")
    op.drop_index("ix_allocations_node", table_name="allocations")
    op.drop_index(op.f("ix_allocations_created_at"), table_name="allocations")
    op.drop_table("allocations")
