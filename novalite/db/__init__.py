# SPDX-License-Identifier: Apache-2.0
"""The database: an engine, a schema and one module of functions per noun (objects out)."""
