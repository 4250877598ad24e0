# SPDX-License-Identifier: Apache-2.0
"""Log lines, taken apart: ``TIME PID LEVEL LOGGER [REQUEST COLUMNS] [instance: ID] TEXT``."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tests.functional.cloud import Cloud

LINE = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) (?P<pid>\d+) "
    r"(?P<shape>(?P<level>[A-Z]+) (?P<logger>[A-Za-z_][\w.]*) "
    r"\[(?P<request>-|req-[0-9a-f-]{36})(?: (?P<columns>[^]]*))?\] "
    r"(?:\[instance: (?P<instance>[0-9a-f-]{36})\] )?(?P<text>.*))"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a service's log.

    ``columns`` are user, project and three domains; ``shape`` is the line without time and pid.
    """

    service: str
    stamp: str
    level: str
    logger: str
    request: str
    columns: str
    instance: str | None
    text: str
    shape: str


def read(cloud: Cloud, *services: str) -> list[Line]:
    """Return the lines of these services, or of all, in the order of their time."""
    found = [line for name in services or cloud.names for line in _of(cloud, name)]
    return sorted(found, key=lambda line: line.stamp)


def _of(cloud: Cloud, name: str) -> Iterable[Line]:
    for text in cloud.log(name).splitlines():
        match = LINE.fullmatch(text)
        if match is not None:
            yield Line(
                service=name,
                stamp=match["stamp"],
                level=match["level"],
                logger=match["logger"],
                request=match["request"],
                columns=match["columns"] or "",
                instance=match["instance"],
                text=match["text"],
                shape=match["shape"],
            )


def steps(found: Iterable[Line]) -> list[tuple[int, str]]:
    """Return (number, service) of the lines that tell a step of the boot map."""
    numbers = ((re.match(r"step=(\d) ", line.text), line.service) for line in found)
    return [(int(match[1]), service) for match, service in numbers if match]
