# SPDX-License-Identifier: Apache-2.0
"""Image v2: records, their data, members and tags."""
