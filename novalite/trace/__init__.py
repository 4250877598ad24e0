# SPDX-License-Identifier: Apache-2.0
"""Reads log files: merges them by time and follows one request through the services."""
