# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of bodies, one file a noun, compiled at import."""
