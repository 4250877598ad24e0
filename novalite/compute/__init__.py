# SPDX-License-Identifier: Apache-2.0
"""novalite-compute: one service host with its hypervisor.

Everything here runs in that process, except ``rpcapi``, which the other processes import. Nothing
here may reach the database: what has to be known elsewhere goes through the reporter.
"""
