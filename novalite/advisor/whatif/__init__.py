# SPDX-License-Identifier: Apache-2.0
"""``novalite whatif``: the scheduler's own pipeline under old and new settings, side by side."""
