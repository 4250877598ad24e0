# SPDX-License-Identifier: Apache-2.0
"""Fixtures of everybody who asks the stand-ins; a conftest.py imports those it wants."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.neighbors import support


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[support.Cloud]:
    made = support.Cloud(tmp_path)
    yield made
    made.close()


@pytest.fixture
def wire(cloud: support.Cloud) -> support.Wire:
    return support.connect(cloud)
