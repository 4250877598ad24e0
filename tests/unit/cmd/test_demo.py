# SPDX-License-Identifier: Apache-2.0
import io
from pathlib import Path

from rich.console import Console

from novalite.cmd import demo
from novalite.objects.action import Action, ActionEvent

REQUEST = "req-11111111-2222-3333-4444-555555555555"
LOG = f"""\
2026-01-31 12:00:00.250 7 INFO novalite.compute.build [{REQUEST} u p - default default] \
[instance: abc] step=5 attempt 1 on node compute1
2026-01-31 12:00:00.260 7 INFO novalite.compute.claims [{REQUEST} u p - default default] \
[instance: abc] Claim successful
2026-01-31 12:00:00.270 7 INFO novalite.compute.claims [req-other u p - - -] Claim successful
Traceback (most recent call last): {REQUEST}
"""


def test_lines_of_one_request_are_read(tmp_path: Path) -> None:
    file = tmp_path / "compute1.log"
    file.write_text(LOG)
    first, second = demo.read_logs([file], REQUEST)
    assert (first.service, first.logger) == ("compute1", "novalite.compute.build")
    assert first.message == "step=5 attempt 1 on node compute1"
    assert second.message == "Claim successful"
    assert round(second.time - first.time, 3) == 0.010


def test_the_timeline_is_in_the_order_of_time() -> None:
    create = Action(id=1, request_id=REQUEST, instance_uuid="abc", action="create", start=100.0)
    events = [
        ActionEvent("compute_spawn", "compute1", start=100.3, finish=100.35, result="Success"),
        ActionEvent("compute_claim", "compute2", start=100.2, finish=100.25, result="Error"),
    ]
    lines = [demo.LogLine("compute1", 100.21, "novalite.compute.build", "step=5 on node compute1")]
    rows = demo.moments(create, events, lines, {"compute1": "compute1", "api": "controller"})
    assert [(row.step, row.process, row.host) for row in rows] == [
        ("1", "api", "controller"),
        ("", "compute", "compute2"),
        ("5", "compute", "compute1"),
        ("", "compute", "compute1"),
    ]
    assert rows[1].what == "compute_claim: Error"
    output = io.StringIO()
    Console(file=output, width=100).print(demo.timeline_table(create, rows))
    assert "50.0" in output.getvalue()
    assert REQUEST in output.getvalue()
