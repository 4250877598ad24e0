# SPDX-License-Identifier: Apache-2.0
"""novalite-scheduler: finds hosts for servers and says why; only ``rpcapi`` is for others."""
