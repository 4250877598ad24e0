# SPDX-License-Identifier: Apache-2.0
"""The hypervisor. It runs in novalite-compute, only compute imports it, and it never reaches the
database, the bus or another process of novalite.

``driver`` says what compute may ask of a hypervisor, ``loader`` makes the driver that the
configuration names, ``libvirt`` is the one driver there is.
"""
