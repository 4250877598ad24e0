# SPDX-License-Identifier: Apache-2.0
"""Objects and rows as JSON, one file a noun, for the microversion asked."""
