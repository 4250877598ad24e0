# SPDX-License-Identifier: Apache-2.0
"""alembic's files: how the tables came to their present form."""
