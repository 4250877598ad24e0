# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.neighbors import support


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[support.Cloud]:
    made = support.Cloud(tmp_path)
    yield made
    made.close()


@pytest.fixture
def wire(cloud: support.Cloud) -> support.Wire:
    return support.connect(cloud)
