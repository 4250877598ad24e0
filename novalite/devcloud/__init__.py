# SPDX-License-Identifier: Apache-2.0
"""A whole cloud on one machine for development: broker, files, processes.

``novalite up`` and the functional tests run this code; no service imports it.
"""
