# SPDX-License-Identifier: Apache-2.0
"""A process of the control plane as the services table knows it."""

from dataclasses import dataclass
from typing import ClassVar

from novalite.objects import base

# What a service of this program can do, as a number that grows with every release that another
# service may have to know of; 0 is one that did not say. `novalite-status` names older ones.
VERSION = 1
# Older ones cannot work with this program.
OLDEST = 1


@base.register
@dataclass(slots=True)
class Service:
    """One service host; times are the database's clock in seconds since the epoch.

    ``age`` is the database's now minus ``last_seen_up`` at the moment of reading, so no other
    clock has to agree. ``epoch`` counts the starts, ``report_count`` the reports of this start.
    """

    VERSION: ClassVar[str] = "1.1"

    id: int
    uuid: str
    host: str
    binary: str
    topic: str = ""
    epoch: int = 0
    report_count: int = 0
    node_identity: str = ""
    disabled: bool = False
    disabled_reason: str | None = None
    forced_down: bool = False
    last_seen_up: float | None = None
    created_at: float = 0.0
    updated_at: float | None = None
    age: float | None = None
    version: int = 0

    def is_up(self, service_down_time: float) -> bool:
        """Tell whether the last report is recent enough; exactly at the limit is still up."""
        if self.forced_down or self.age is None:
            return False
        return abs(self.age) <= service_down_time
