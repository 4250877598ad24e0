# SPDX-License-Identifier: Apache-2.0
"""Tests of novalite-compute without broker, database or hypervisor."""
