# SPDX-License-Identifier: Apache-2.0
"""novalite-conductor: the task flows, the only writer for computes, recovery of what got lost."""
