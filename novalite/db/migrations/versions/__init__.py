# SPDX-License-Identifier: Apache-2.0
"""One file a revision, written by ``python -m novalite.db.migrate``."""
