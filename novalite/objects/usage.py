# SPDX-License-Identifier: Apache-2.0
"""What a server used in a span of time. It is computed and shown, never stored or sent."""

from dataclasses import dataclass

from novalite.objects.flavor import Flavor

_HOUR = 3600.0


@dataclass(slots=True)
class ServerUsage:
    """One server that ran at some time; times are seconds since the epoch, UTC."""

    uuid: str
    project_id: str
    name: str
    vm_state: str
    flavor: Flavor
    launched_at: float
    terminated_at: float | None = None

    @property
    def local_gb(self) -> int:
        """The disks of the flavor together."""
        return self.flavor.root_gb + self.flavor.ephemeral_gb

    def hours(self, start: float, stop: float) -> float:
        """Return how many hours it existed between *start* and *stop*, from its launch on."""
        begin = max(self.launched_at, start)
        end = stop if self.terminated_at is None else min(self.terminated_at, stop)
        return max(0.0, end - begin) / _HOUR

    def uptime(self, now: float) -> int:
        """Return the whole seconds from its launch until now, or until its end."""
        end = now if self.terminated_at is None else self.terminated_at
        return int(max(0.0, end - self.launched_at))
