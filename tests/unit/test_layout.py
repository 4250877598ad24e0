# SPDX-License-Identifier: Apache-2.0
"""The shape of the tree: licence lines, docstrings, sizes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPDX = "# SPDX-License-Identifier: Apache-2.0"
# A migration is a record of the past; it is not split to please a rule of today.
PRODUCT = sorted(
    file
    for file in (ROOT / "novalite").rglob("*.py")
    if not file.match("novalite/db/migrations/versions/*.py")
)
MOST_LINES = 400
MOST_FUNCTION_LINES = 60
# Kinds of files that carry the licence line, in the first two lines since a script begins with #!.
LICENSED = {".py", ".cfg", ".ini", ".toml", ".sh", ".service", ".conf", ".txt", ".yaml"}
# Written by a program.
GENERATED = {"novalite.conf.sample"}


def own_files() -> Iterator[Path]:
    for directory in ("novalite", "tests", "etc", ".ci"):
        for file in (ROOT / directory).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file
    yield from (file for file in ROOT.iterdir() if file.is_file())


def test_files_carry_the_licence_line() -> None:
    scripts = {ROOT / "dev", ROOT / ".ci" / "run"}
    missing = [
        str(file.relative_to(ROOT))
        for file in own_files()
        if (file.suffix in LICENSED or file in scripts) and file.name not in GENERATED
        if SPDX not in file.read_text().splitlines()[:2]
    ]
    assert missing == []


@pytest.mark.parametrize("file", PRODUCT, ids=lambda file: str(file.relative_to(ROOT)))
def test_module_is_explained_and_small(file: Path) -> None:
    text = file.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module says what runs here and who calls it"
    lines = len(text.splitlines())
    assert lines <= MOST_LINES
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.end_lineno and node.end_lineno - node.lineno + 1 > MOST_FUNCTION_LINES
    ]
    assert long == []
