# SPDX-License-Identifier: Apache-2.0
"""Quotas, key pairs and server groups."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead on from the former revision."""
    op.create_table(
        "key_pairs",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column(
            "name",
            sa.String(length=255)
            .with_variant(
                mysql.VARCHAR(charset="utf8mb4", collation="utf8mb4_bin", length=255), "mariadb"
            )
            .with_variant(
                mysql.VARCHAR(charset="utf8mb4", collation="utf8mb4_bin", length=255), "mysql"
            ),
            nullable=False,
        ),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_key_pairs")),
        sa.UniqueConstraint("user_id", "name", name=op.f("uq_key_pairs_user_id")),
    )
    op.create_table(
        "quota_class_limits",
        sa.Column("class_name", sa.String(length=255), nullable=False),
        sa.Column("resource", sa.String(length=64), nullable=False),
        sa.Column("hard_limit", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("class_name", "resource", name=op.f("pk_quota_class_limits")),
    )
    op.create_table(
        "quota_limits",
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("resource", sa.String(length=64), nullable=False),
        sa.Column("hard_limit", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "user_id", "resource", name=op.f("pk_quota_limits")),
    )
    op.create_table(
        "quota_locks",
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("taken", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_quota_locks")),
    )
    op.create_table(
        "server_group_members",
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("group_uuid", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid", name=op.f("pk_server_group_members")),
    )
    op.create_index(
        op.f("ix_server_group_members_group_uuid"),
        "server_group_members",
        ["group_uuid"],
        unique=False,
    )
    op.create_table(
        "server_groups",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("policy", sa.String(length=64), nullable=False),
        sa.Column(
            "rules", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"), nullable=False
        ),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_groups")),
        sa.UniqueConstraint("uuid", name=op.f("uq_server_groups_uuid")),
    )
    op.create_index(
        op.f("ix_server_groups_project_id"), "server_groups", ["project_id"], unique=False
    )
    op.add_column("instances", sa.Column("locked_by", sa.String(length=16), nullable=True))
    op.add_column("instances", sa.Column("locked_reason", sa.String(length=255), nullable=True))
    op.add_column(
        "instances",
        sa.Column(
            "trusted_certs",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"),
            nullable=True,
        ),
    )
    op.add_column(
        "services", sa.Column("version", sa.Integer(), server_default="0", nullable=False)
    )
    op.create_index(
        "ix_instances_usage",
        "instances",
        ["project_id", "deleted", "user_id", "vcpus", "memory_mb"],
        unique=False,
    )


def downgrade() -> None:
    """Lead back to the former revision."""
    op.drop_index("ix_instances_usage", table_name="instances")
    op.drop_column("services", "version")
    op.drop_column("instances", "trusted_certs")
    op.drop_column("instances", "locked_reason")
    op.drop_column("instances", "locked_by")
    op.drop_index(op.f("ix_server_groups_project_id"), table_name="server_groups")
    op.drop_table("server_groups")
    op.drop_index(op.f("ix_server_group_members_group_uuid"), table_name="server_group_members")
    op.drop_table("server_group_members")
    op.drop_table("quota_locks")
    op.drop_table("quota_limits")
    op.drop_table("quota_class_limits")
    op.drop_table("key_pairs")
