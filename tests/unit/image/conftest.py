# SPDX-License-Identifier: Apache-2.0
from tests.unit.neighbors.fixtures import cloud, wire  # noqa: F401
