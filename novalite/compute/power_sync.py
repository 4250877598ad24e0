# SPDX-License-Identifier: Apache-2.0
"""Tells the conductor when a guest is found in another power state than was last reported.

Runs every sync_power_state_interval with one list of all guests. It reports and never changes a
guest: what a difference means is decided elsewhere.
"""

import threading
from collections.abc import Callable
from typing import Any

from novalite import context as context_module
from novalite import log
from novalite.objects import build
from novalite.objects.states import PowerState
from novalite.virt import driver as virt_driver

LOG = log.get(__name__)

Tell = Callable[[dict[str, Any], build.ReportItem], None]


class PowerSync:
    """Remembers the last reported power state of every finished server of this host."""

    def __init__(self, driver: virt_driver.InspectDriver, tell: Tell):
        self._driver = driver
        self._tell = tell
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, PowerState]] = {}

    def note(self, instance_uuid: str, node: str, state: PowerState) -> None:
        """Take note of a state that the conductor has."""
        with self._lock:
            self._known[instance_uuid] = (node, state)

    def forget(self, instance_uuid: str) -> None:
        """The server has left this host."""
        with self._lock:
            self._known.pop(instance_uuid, None)

    def sync(self, context: context_module.RequestContext) -> None:
        """Compare with what the hypervisor says and tell each difference once."""
        with self._lock:
            known = dict(self._known)
        if not known:
            return
        found = {guest.instance_uuid: guest.power_state for guest in self._driver.list_guests()}
        for instance_uuid, (node, before) in known.items():
            now = found.get(instance_uuid, PowerState.NOSTATE)
            if now is before:
                continue
            with self._lock:
                if self._known.get(instance_uuid) != (node, before):
                    continue
                self._known[instance_uuid] = (node, now)
            log_it = LOG.info if instance_uuid in found else LOG.warning
            log_it(
                "The guest's power state is %s, it was %s",
                now.name,
                before.name,
                context=context,
                instance=instance_uuid,
            )
            self._tell(context.to_wire(), build.PowerReport(instance_uuid, node, now))
