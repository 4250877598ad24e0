# SPDX-License-Identifier: Apache-2.0
"""The client of block storage v3."""
