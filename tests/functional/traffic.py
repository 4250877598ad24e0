# SPDX-License-Identifier: Apache-2.0
"""What users see while something is away: reads and new servers, again and again."""

import threading
import time
from collections import Counter
from dataclasses import dataclass

from novalite.devcloud.errors import ClientError
from tests.functional.cloud import Cloud

# Seconds between two requests of one kind, and for which a user waits for an answer.
SPACING = 0.25
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One answer: when it was asked for, its status (0: none) and how long it took, in seconds."""

    kind: str
    asked: float
    status: int
    seconds: float


class Traffic:
    """Users at work inside ``with``."""

    def __init__(self, cloud: Cloud):
        self._cloud = cloud
        self._ended = threading.Event()
        self.seen: list[Seen] = []
        self.accepted: list[str] = []
        self._threads = [
            threading.Thread(target=self._repeat, args=(kind,), daemon=True)
            for kind in ("read", "create")
        ]

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE)

    def _repeat(self, kind: str) -> None:
        api = self._cloud.api
        api.timeout = PATIENCE
        spacing = SPACING if kind == "read" else 4 * SPACING
        while not self._ended.wait(spacing):
            asked = time.monotonic()
            status = 0
            try:
                if kind == "read":
                    answer = api.request("GET", "/servers")
                else:
                    answer = api.create("traffic")
                    if answer.status == 202:
                        self.accepted.append(str(answer.body["server"]["id"]))
                status = answer.status
                assert "Traceback" not in str(answer.body) and "SELECT" not in str(answer.body)
            except ClientError:
                pass
            self.seen.append(Seen(kind, asked, status, time.monotonic() - asked))

    def between(self, began: float, ended: float, kind: str) -> list[Seen]:
        """Return what was asked for between two moments."""
        return [each for each in self.seen if each.kind == kind and began <= each.asked < ended]


def words(seen: list[Seen]) -> str:
    """Return how many answers of each status there were and the slowest of all."""
    counts = Counter(each.status for each in seen)
    slowest = max((each.seconds for each in seen), default=0.0)
    text = ", ".join(f"{count} x {status}" for status, count in sorted(counts.items()))
    return f"{text}; slowest {slowest:.1f} s"
