# SPDX-License-Identifier: Apache-2.0
"""The explicit-state model of the durable action protocol (docs/architecture.md) and its test."""
