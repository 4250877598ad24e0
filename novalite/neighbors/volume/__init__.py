# SPDX-License-Identifier: Apache-2.0
"""Block storage v3 as far as a server that boots from a volume needs it."""
