# SPDX-License-Identifier: Apache-2.0
"""The units start programs that exist, and systemd accepts them."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "etc" / "systemd").glob("*.service"))


def programs() -> set[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    lines = parser["options.entry_points"]["console_scripts"].split("\n")
    return {line.partition(" = ")[0] for line in lines if line}


def options(unit: Path) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(unit)
    return dict(parser["Service"])


def test_every_service_has_a_unit() -> None:
    ours = {name for name in programs() if name not in {"novalite"}}
    services = ours - {"novalite-manage", "novalite-status"}
    assert {unit.stem for unit in UNITS} == services


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_notifies_is_watched_and_runs_as_its_own_user(unit: Path) -> None:
    service = options(unit)
    assert service["ExecStart"].split()[0] == f"/usr/bin/{unit.stem}"
    assert service["Type"] == "notify"
    assert service["User"] == "novalite"
    assert service["Restart"] == "on-failure"
    assert int(service["WatchdogSec"]) > 0
    assert service["ProtectSystem"] == "strict"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        # Any program will do: the real ones are installed elsewhere on a production host.
        text = unit.read_text().replace(f"/usr/bin/{unit.stem}", sys.executable)
        (tmp_path / unit.name).write_text(text)
    files = [str(tmp_path / unit.name) for unit in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True
    )
    ours = [line for line in done.stderr.splitlines() if "novalite" in line]
    assert not ours, "\n".join(ours)
    assert done.returncode == 0, done.stderr
