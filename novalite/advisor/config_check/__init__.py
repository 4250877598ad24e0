# SPDX-License-Identifier: Apache-2.0
"""``novalite-status config check|explain``: what stands in an operator's configuration files."""
