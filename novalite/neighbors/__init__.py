# SPDX-License-Identifier: Apache-2.0
"""Development stand-ins for identity v3, image v2 and network v2.0, over real HTTP."""
