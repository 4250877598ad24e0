# SPDX-License-Identifier: Apache-2.0
"""Hosts, flavors and settings that the tests of a what-if share."""

from pathlib import Path
from typing import Any

from novalite.advisor.whatif import comparison, settings
from novalite.advisor.whatif.fleet import Host, Request
from novalite.advisor.whatif.settings import Side
from novalite.objects.flavor import Flavor

SMALL = Flavor("small", "small", 1, 2048, 10)
BIG = Flavor("big", "big", 4, 8192, 40)


def host(name: str, memory_mb: int = 16384, **more: Any) -> Host:
    return Host(name, name, memory_mb, 8, 200, **more)


def side(tmp_path: Path, text: str = "") -> Side:
    file = tmp_path / f"{len(list(tmp_path.iterdir()))}.conf"
    file.write_text(text)
    return settings.load([str(file)])


def both(
    old: Side, new: Side, hosts: list[Host], requests: list[Request]
) -> tuple[comparison.Run, comparison.Run, dict[str, Any]]:
    before = comparison.run(old, hosts, requests, new=False)
    after = comparison.run(new, hosts, requests, new=True)
    return before, after, comparison.compare(before, after, old, new)
