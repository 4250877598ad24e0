# SPDX-License-Identifier: Apache-2.0
"""A comparison as text."""

from pathlib import Path

from novalite.advisor.whatif import render
from novalite.advisor.whatif.fleet import Request
from tests.unit.advisor.whatif.sides import BIG, both, host, side


def test_of_lists_only_the_difference_is_shown(tmp_path: Path) -> None:
    new = side(tmp_path, "[filter_scheduler]\nenabled_filters = RamFilter,ComputeFilter\n")
    old = side(tmp_path, "[filter_scheduler]\nenabled_filters = ComputeFilter,DiskFilter\n")
    turned = side(tmp_path, "[filter_scheduler]\nenabled_filters = ComputeFilter,RamFilter\n")
    shown = []
    for before in (old, turned):
        *_runs, body = both(before, new, [host("h")], [Request("b", BIG)])
        lines = [line.text for line in render.lines(body)]
        [line] = [text for text in lines if "enabled_filters" in text]
        shown.append(" ".join(line.split()[2:]))
    assert shown == ["with DiskFilter with RamFilter", "2 names the same in another order"]


def test_the_text_has_both_sides(tmp_path: Path) -> None:
    new = side(tmp_path, "[DEFAULT]\nram_allocation_ratio = 1.0\n")
    hosts = [host(f"h{number}") for number in range(12)]
    _old, _new, body = both(side(tmp_path), new, hosts, [Request("b", BIG)] * 30)
    text = [line.text for line in render.lines(body)]
    assert "  [DEFAULT] ram_allocation_ratio  1.5  1" in text
    assert "30 servers on 12 hosts" in text
    assert ["placed", "24", "12", "-12"] in [line.split() for line in text]
    assert "  new, b: 18 refused, the last hosts removed by: RamFilter 18" in text
    assert "Hosts whose fill differs: 12 (the 10 that differ most)" in text
    assert text[-1] == "  and 2 more (--all shows them)"
    everything = [line.text for line in render.lines(body, everything=True)]
    assert len(everything) == len(text) + 2 + 2 - 1
