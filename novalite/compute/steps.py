# SPDX-License-Identifier: Apache-2.0
"""The steps of one attempt as the action's history shows them (instance action events).

Kept by the build in memory and sent along with what it reports. Times are seconds since the epoch.
"""

import time
from typing import Any

from novalite.objects.action import ActionEvent

# Step -> event. The whole build has Nova's name.
EVENTS = {
    "build": "compute__do_build_and_run_instance",
    "claim": "compute_claim",
    "network": "compute_network",
    "volumes": "compute_block_device_mapping",
    "spawn": "compute_spawn",
}
CLAIM = "claim"
SUCCESS = "Success"
ERROR = "Error"


class Steps:
    """What an attempt has done so far on this host."""

    def __init__(self, host: str, attempt: int):
        self._host = host
        self._attempt = attempt
        self._events: dict[str, ActionEvent] = {}
        self._made = time.time()

    def begin(self, step: str) -> None:
        """A step starts now; a step that starts over forgets its former start."""
        self._events[step] = ActionEvent(
            EVENTS[step], self._host, time.time(), attempt=self._attempt
        )

    def end(self, step: str, error: str | None = None) -> None:
        """A step that began has ended, well or with *error*."""
        event = self._events[step]
        event.finish = time.time()
        event.result = SUCCESS if error is None else ERROR
        if error is not None:
            # A report may be reading the former details at this moment.
            event.details = {**event.details, "error": error}

    def end_all(self, error: str) -> None:
        """End every step that is not ended yet with *error*."""
        for step, event in self._events.items():
            if event.finish is None:
                self.end(step, error)

    def claimed(self, numbers: dict[str, Any], error: str | None) -> None:
        """The claim is over; it began when this object was made."""
        event = ActionEvent(EVENTS[CLAIM], self._host, self._made, attempt=self._attempt)
        event.details = numbers
        self._events[CLAIM] = event
        self.end(CLAIM, error)

    @property
    def claim(self) -> ActionEvent | None:
        """The step of the claim, which goes with begin or the refusal."""
        return self._events.get(CLAIM)

    def report(self) -> list[ActionEvent]:
        """Return every other step as it is now; the conductor replaces what it has of them."""
        return [event for step, event in self._events.items() if step != CLAIM]

    def seconds(self, step: str) -> float:
        """Return how long a step that has ended took."""
        event = self._events.get(step)
        if event is None or event.finish is None:
            return 0.0
        return event.finish - event.start
