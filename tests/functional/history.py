# SPDX-License-Identifier: Apache-2.0
"""What was done with a server, as the database keeps it: every attempt with its details."""

import json
from dataclasses import dataclass
from typing import Any

from tests.functional import lines
from tests.functional.cloud import Cloud


@dataclass(frozen=True, slots=True)
class Event:
    """One step of the server's latest action."""

    name: str
    host: str
    attempt: int
    result: str | None
    details: dict[str, Any]


def events(cloud: Cloud, uuid: str) -> list[Event]:
    """Return all steps of the server's latest action, in the order of their start."""
    rows = cloud.rows(
        "select e.* from instance_action_events e join instance_actions a on a.id = e.action_id "
        "where a.id = (select max(id) from instance_actions where instance_uuid = :uuid) "
        "order by e.start, e.id",
        uuid=uuid,
    )
    return [
        Event(row["event"], row["host"], row["attempt"], row["result"], decoded(row["details"]))
        for row in rows
    ]


def decoded(value: Any) -> Any:
    """Return a JSON column, which some databases give as text."""
    return json.loads(value) if isinstance(value, str) else value


def spawns(cloud: Cloud, uuid: str) -> list[str]:
    """Return the hosts that have tried to make the server's guest, in their order."""
    hosts = [name for name in cloud.names if name.startswith("compute")]
    return [
        line.service
        for line in lines.read(cloud, *hosts)
        if line.instance == uuid and line.text == "Creating image"
    ]
