# SPDX-License-Identifier: Apache-2.0
"""Everything is in setup.cfg."""

from setuptools import setup

setup()
