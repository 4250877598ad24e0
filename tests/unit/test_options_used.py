# SPDX-License-Identifier: Apache-2.0
"""No option is read by nobody: each is named in the product outside conf/."""

import ast
from pathlib import Path

import pytest

from novalite.conf import opts

ROOT = Path(__file__).parents[2]
DECLARED = sorted({(group, opt.dest) for group, found in opts.list_opts() for opt in found})


@pytest.fixture(scope="module")
def named() -> set[str]:
    """Attributes, and strings such as the name in getattr() or a section's key."""
    names: set[str] = set()
    for file in (ROOT / "novalite").rglob("*.py"):
        if file.parent.name == "conf":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.add(node.value)
    return names


@pytest.mark.parametrize(("group", "name"), DECLARED)
def test_option_is_read(group: str, name: str, named: set[str]) -> None:
    if name not in named:
        pytest.fail(f"[{group}] {name} is declared and never read")
