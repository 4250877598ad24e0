# SPDX-License-Identifier: Apache-2.0
"""An explanation as text: the answer first, the same in a pipe and on a terminal."""

import io

from rich.console import Console

from novalite.advisor import render


def body(**values):
    attempt = {
        "attempt": 1,
        "outcome": "no_host",
        "cause": None,
        "cause_text": None,
        "alternate": False,
        "losses": [{"code": "cast_again", "text": "cast again to h1"}],
        "host": "h1",
        "error": None,
        "stale_picture": True,
        "claim": {
            "text": ["memory: 1 MB requested"],
            "limits_generation": [2, 7],
            "limits_age": 0.5,
        },
        "decision": {"text": "Wanted: 1 MB.\nNot h1:"},
    } | values.pop("attempt", {})
    action = {
        "action": "create",
        "request_id": "req-1",
        "summary": "failed after 12 ms",
        "servers_in_request": 2,
        "timeline": [
            {"at_ms": 0.0, "took_ms": None, "process": "api", "host": None, "what": "accepted"},
            {
                "at_ms": 5.2,
                "took_ms": 3.0,
                "process": "conductor",
                "host": "c",
                "what": "[no] host",
            },
        ],
        "attempts": [attempt],
    }
    found = {
        "server": {"status": "ERROR"},
        "host_details": True,
        "summary": "web is in ERROR: no host can take it.",
        "more": ["Before: h2 failed."],
        "advice": ["on h1: free 1 MB"],
        "fault": {"message": "No valid host was found."},
        "actions": [action],
        "older_actions": True,
    }
    return {"explanation": found | values}


TEXT = """\
web is in ERROR: no host can take it.
  Before: h2 failed.
What would change it:
  - on h1: free 1 MB
Fault: No valid host was found.

create: failed after 12 ms (req-1)
  2 servers were asked for in this request
      at ms   took ms  process    host  what
        0.0            api              accepted
        5.2       3.0  conductor  c     [no] host
  Attempt 1 on h1: no host
    Recovery: cast again to h1
    Decision
      Wanted: 1 MB.
      Not h1:
    Claim on h1
      memory: 1 MB requested
      The limits are from picture 2.7 of the host, 0.50 s old: older than the host's own

Older actions are left out.
"""


def printed(made, **options):
    output = io.StringIO()
    render.show(made, Console(file=output, width=20, **options))
    return output.getvalue()


def test_everything_that_is_told_and_no_line_is_broken():
    assert printed(body()) == TEXT


def test_colours_change_no_word():
    coloured = printed(body(), force_terminal=True, color_system="standard")
    assert coloured != TEXT
    plain = "".join(
        part.partition("m")[2] if number else part
        for number, part in enumerate(coloured.split("\x1b["))
    )
    assert plain == TEXT


def test_a_tenant_sees_no_column_of_hosts():
    made = body(host_details=False, fault=None, older_actions=False)
    [action] = made["explanation"]["actions"]
    for row in action["timeline"]:
        del row["host"]
    [attempt] = action["attempts"]
    for name in ("host", "error", "claim", "stale_picture"):
        del attempt[name]
    attempt["cause_text"], attempt["decision"] = "the host failed", None
    text = printed(made)
    assert "  process    what" in text
    assert "  Attempt 1: no host\n    The host failed.\n" in text
    assert text.endswith("\nHosts and numbers are for administrators.\n")


def test_an_alternate_and_an_error():
    text = printed(body(attempt={"decision": None, "alternate": True, "error": "boom"}))
    assert "    Error: boom\n" in text
    assert "    The host was the next one of the last decision.\n" in text
