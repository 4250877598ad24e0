# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.neighbors import support


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[support.Cloud]:
    made = support.Cloud(tmp_path)
    yield made
    made.close()
