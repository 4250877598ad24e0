# SPDX-License-Identifier: Apache-2.0
"""One file a flow that goes through several processes."""
