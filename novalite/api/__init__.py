# SPDX-License-Identifier: Apache-2.0
"""What runs in novalite-api: the Compute API v2.1 over HTTP."""
