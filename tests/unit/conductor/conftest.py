# SPDX-License-Identifier: Apache-2.0
"""The conductor's tests work on the same kind of database as those of novalite/db."""

from tests.unit.db.conftest import books, open_books  # noqa: F401
