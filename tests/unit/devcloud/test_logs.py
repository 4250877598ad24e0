# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from novalite.devcloud import logs
from novalite.devcloud.errors import CloudError

API = """\
2026-01-31 12:00:00.100 1 INFO novalite.api [req-1] one
2026-01-31 12:00:00.300 1 ERROR novalite.api [req-1] three
Traceback (most recent call last):
  File "x.py"
"""
COMPUTE = "a banner\n2026-01-31 12:00:00.200123+00:00 [info] two\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "api.log").write_text(API)
    (tmp_path / "compute1.log").write_text(COMPUTE)
    return sorted(tmp_path.glob("*.log"))


def test_lines_are_merged_by_time_and_tracebacks_stay_together(files: list[Path]) -> None:
    assert [line.rstrip() for line in logs.merged(files, 100)] == [
        "compute1   a banner",
        "api        2026-01-31 12:00:00.100 1 INFO novalite.api [req-1] one",
        "compute1   2026-01-31 12:00:00.200123+00:00 [info] two",
        "api        2026-01-31 12:00:00.300 1 ERROR novalite.api [req-1] three",
        "api        Traceback (most recent call last):",
        'api          File "x.py"',
    ]


def test_only_the_last_lines(files: list[Path]) -> None:
    assert logs.merged(files[:1], 2) == API.splitlines()[-2:]
    assert logs.merged(files, 0) == []


def test_a_service_is_chosen_by_name(files: list[Path]) -> None:
    assert logs.choose(files, None) == files
    assert logs.choose(files, "api") == files[:1]
    with pytest.raises(CloudError, match="no log of nova; there are: api, compute1"):
        logs.choose(files, "nova")
    with pytest.raises(CloudError, match="there are no logs"):
        logs.choose([], None)


def test_follow_takes_whole_lines_only(files: list[Path]) -> None:
    rests: dict[str, bytes] = {}
    with files[0].open("a") as writer, files[0].open("rb") as reader:
        reader.seek(0, 2)
        writer.write("half")
        writer.flush()
        assert logs._new_lines("api", reader, rests) == []
        writer.write(" and half\nnext\n")
        writer.flush()
        assert logs._new_lines("api", reader, rests) == ["half and half", "next"]
