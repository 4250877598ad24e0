# SPDX-License-Identifier: Apache-2.0
"""The example of etc/novalite/whatif in full: 1,000 hosts, 5,000 servers, as the guide shows it."""

import re
import subprocess
from pathlib import Path

import pytest

from novalite.devcloud.services import find_program

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "operators.md"
COMMAND = "whatif --config-file new.conf --fleet fleet.yaml --workload workload.yaml"
# Seconds of the processor for both sides; it is some 7.
MOST = 60.0


@pytest.mark.drill
def test_the_guide_shows_what_is_printed() -> None:
    done = subprocess.run(
        [find_program("novalite"), *COMMAND.split()],
        cwd=ROOT / "etc" / "novalite" / "whatif",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    # The width of a column follows from the seconds, which differ.
    printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    [seconds] = [line for line in printed if line.startswith("CPU seconds")]
    assert sum(map(float, seconds.split()[2:4])) < MOST
    shown = re.search(
        rf"(?m)^    \$ novalite {COMMAND}\n((?:    .*\n|\n(?=    ))+)", DOCS.read_text()
    )
    assert shown is not None
    lines = [" ".join(line.split()) for line in shown[1].splitlines()]
    wanted = [line for line in lines if line != "..." and "CPU seconds" not in line]
    assert len(wanted) > 30
    assert [line for line in wanted if line not in printed] == []
