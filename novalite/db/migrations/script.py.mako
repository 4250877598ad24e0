# SPDX-License-Identifier: Apache-2.0
"""${message}."""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    """Lead on from the former revision."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Lead back to the former revision."""
    ${downgrades if downgrades else "pass"}
