# SPDX-License-Identifier: Apache-2.0
"""Handlers, one file a noun: they check, call and answer, and hold no ``try``."""
