# SPDX-License-Identifier: Apache-2.0
"""For every unit test: none may leave the process changed for those after it."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def unpatched() -> Iterator[None]:
    """Fail a test that turns the whole process to green threads; later ones would hang."""
    yield
    patcher = sys.modules.get("eventlet.patcher")
    assert patcher is None or not patcher.already_patched
