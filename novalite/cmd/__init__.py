# SPDX-License-Identifier: Apache-2.0
"""The programs: one thin file each, which says what to build and leaves the start to launch."""
