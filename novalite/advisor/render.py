# SPDX-License-Identifier: Apache-2.0
"""The explanation of a server as lines of text, from the body that the API answers with.

Used by ``novalite explain`` and ``novalite demo``. The answer is the first line. The same text goes
to a terminal, with colours, and into a pipe, without.
"""

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from novalite.advisor import columns, decisions
from novalite.advisor.columns import BOLD, DIM, GREEN, RED, YELLOW, Line

Json = dict[str, Any]


def show(body: Json, console: Console) -> None:
    """Print an explanation."""
    columns.show(lines(body), console)


def lines(body: Json) -> Iterator[Line]:
    """Return the whole explanation."""
    found = body["explanation"]
    status = found["server"]["status"]
    yield Line(found["summary"], {"ERROR": RED, "ACTIVE": GREEN}.get(status, BOLD))
    for text in found["more"]:
        yield Line(f"  {text}")
    if found["advice"]:
        yield Line("What would change it:", YELLOW)
        for text in found["advice"]:
            yield Line(f"  - {text}")
    fault = found["fault"]
    if fault is not None:
        yield Line(f"Fault: {fault['message']}")
    for action in found["actions"]:
        yield Line("")
        yield from _action(action)
    if found["older_actions"]:
        yield Line("")
        yield Line("Older actions are left out.", DIM)
    if not found["host_details"]:
        yield Line("")
        yield Line("Hosts and numbers are for administrators.", DIM)


def _action(action: Json) -> Iterator[Line]:
    yield Line(f"{action['action']}: {action['summary']} ({action['request_id']})", BOLD)
    if action["servers_in_request"] > 1:
        yield Line(f"  {action['servers_in_request']} servers were asked for in this request")
    yield from _timeline(action["timeline"])
    for attempt in action["attempts"]:
        yield from _attempt(attempt)


def _timeline(rows: list[Json]) -> Iterator[Line]:
    with_hosts = any(row.get("host") for row in rows)
    wide = max((len(str(row.get("host") or "")) for row in rows), default=0)
    wide = max(wide, len("host"))
    host = f"  {'host':{wide}}" if with_hosts else ""
    yield Line(f"  {'at ms':>9}  {'took ms':>8}  {'process':9}{host}  what", DIM)
    for row in rows:
        took = "" if row["took_ms"] is None else f"{row['took_ms']:.1f}"
        host = f"  {row.get('host') or '':{wide}}" if with_hosts else ""
        yield Line(
            f"  {row['at_ms']:>9.1f}  {took:>8}  {row['process']:9}{host}  {row['what']}".rstrip()
        )


def _attempt(attempt: Json) -> Iterator[Line]:
    where = attempt.get("host")
    outcome = attempt["outcome"].replace("_", " ")
    on = f" on {where}" if where else ""
    yield Line(f"  Attempt {attempt['attempt']}{on}: {outcome}", BOLD)
    if attempt.get("error"):
        yield Line(f"    Error: {attempt['error']}")
    elif attempt["cause_text"]:
        text = attempt["cause_text"]
        yield Line(f"    {text[:1].upper()}{text[1:]}.")
    for lost in attempt["losses"]:
        yield Line(f"    Recovery: {lost['text']}")
    decision = attempt["decision"]
    if decision is not None and "need" in decision:
        yield from decisions.lines(decision)
    elif decision is not None:
        yield Line("    Decision")
        for text in decision["text"].splitlines():
            yield Line(f"      {text}")
    elif attempt["alternate"]:
        yield Line("    The host was the next one of the last decision.")
    yield from _claim(attempt)


def _claim(attempt: Json) -> Iterator[Line]:
    claim = attempt.get("claim")
    if not claim:
        return
    yield Line(f"    Claim on {attempt['host']}" if attempt["host"] else "    Claim")
    for text in claim["text"]:
        yield Line(f"      {text}")
    generation = claim.get("limits_generation")
    if generation is not None:
        epoch, counter = generation
        yield Line(
            f"      The limits are from picture {epoch}.{counter} of the host, "
            f"{claim['limits_age']:.2f} s old"
            + (": older than the host's own" if attempt["stale_picture"] else "")
        )
