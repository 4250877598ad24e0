# SPDX-License-Identifier: Apache-2.0
"""etc/novalite/novalite.conf.sample is what `tox -e genconfig` would write now."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_sample_is_fresh(tmp_path: Path) -> None:
    made = tmp_path / "novalite.conf.sample"
    program = Path(sys.executable).with_name("oslo-config-generator")
    command = [program, "--config-file", "etc/novalite/config-generator.conf"]
    subprocess.run([*command, "--output-file", made], cwd=ROOT, check=True)
    kept = (ROOT / "etc" / "novalite" / "novalite.conf.sample").read_text()
    assert made.read_text() == kept, "run: tox -e genconfig"
