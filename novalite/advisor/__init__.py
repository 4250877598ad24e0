# SPDX-License-Identifier: Apache-2.0
"""The command-line side of explanations and capacity; the sums themselves are in objects/."""
