# SPDX-License-Identifier: Apache-2.0
"""Aggregates, and the volumes of servers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead on from the former revision."""
    changes = op.create_table(
        "aggregate_changes",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_aggregate_changes")),
    )
    op.bulk_insert(changes, [{"id": 1, "version": 1}])
    op.create_table(
        "aggregate_hosts",
        sa.Column("aggregate_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "host",
            sa.String(length=255)
            .with_variant(
                mysql.VARCHAR(charset="utf8mb4", collation="utf8mb4_bin", length=255), "mariadb"
            )
            .with_variant(
                mysql.VARCHAR(charset="utf8mb4", collation="utf8mb4_bin", length=255), "mysql"
            ),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("aggregate_id", "host", name=op.f("pk_aggregate_hosts")),
    )
    op.create_index(op.f("ix_aggregate_hosts_host"), "aggregate_hosts", ["host"], unique=False)
    op.create_table(
        "aggregate_metadata",
        sa.Column("aggregate_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "key",
            sa.String(length=255)
            .with_variant(
                mysql.VARCHAR(charset="utf8mb4", collation="utf8mb4_bin", length=255), "mariadb"
            )
            .with_variant(
                mysql.VARCHAR(charset="utf8mb4", collation="utf8mb4_bin", length=255), "mysql"
            ),
            nullable=False,
        ),
        sa.Column(
            "value",
            sa.String(length=255)
            .with_variant(
                mysql.VARCHAR(charset="utf8mb4", collation="utf8mb4_bin", length=255), "mariadb"
            )
            .with_variant(
                mysql.VARCHAR(charset="utf8mb4", collation="utf8mb4_bin", length=255), "mysql"
            ),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("aggregate_id", "key", name=op.f("pk_aggregate_metadata")),
    )
    op.create_table(
        "aggregates",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("uuid", sa.String(length=36), nullable=False),
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
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_aggregates")),
        sa.UniqueConstraint("name", name=op.f("uq_aggregates_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_aggregates_uuid")),
    )
    op.add_column(
        "instances",
        sa.Column(
            "block_devices",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"),
            nullable=True,
        ),
    )


def downgrade() -> None:
    """Lead back to the former revision."""
    op.drop_column("instances", "block_devices")
    op.drop_table("aggregates")
    op.drop_table("aggregate_metadata")
    op.drop_index(op.f("ix_aggregate_hosts_host"), table_name="aggregate_hosts")
    op.drop_table("aggregate_hosts")
    op.drop_table("aggregate_changes")
