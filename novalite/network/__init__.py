# SPDX-License-Identifier: Apache-2.0
"""Client of network v2.0, for API, conductor and compute."""
