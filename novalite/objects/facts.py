# SPDX-License-Identifier: Apache-2.0
"""What an explanation is made from, what it is, and the words that its parts share.

Filled by the API, read by objects/explanation.py and objects/trouble.py. Pure.
"""

from dataclasses import dataclass, field

from novalite.objects import advice
from novalite.objects.decision import Decision
from novalite.objects.history import History, duration
from novalite.objects.instance import InstanceFault
from novalite.objects.service import Service
from novalite.objects.states import STATUS

CONDUCTOR = "nova-conductor"
COMPUTE = "nova-compute"
CREATE = "create"
DELETES = ("delete", "forceDelete")


@dataclass(slots=True)
class Facts:
    """What is known of a server. ``histories``: the latest action first.

    ``cleanups`` are hosts that may still hold a guest which is not the server's any more.
    ``now`` in seconds since the epoch; ``down_time`` is service_down_time in seconds.
    """

    name: str
    vm_state: str
    now: float
    down_time: float
    task_state: str | None = None
    host: str | None = None
    node: str | None = None
    deleted: bool = False
    histories: list[History] = field(default_factory=list)
    fault: InstanceFault | None = None
    cleanups: list[str] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)

    @property
    def status(self) -> str:
        """The API's word for the state."""
        known = {state.value: word for state, word in STATUS.items()}
        return known.get(self.vm_state, "UNKNOWN")

    def find(self, *names: str) -> History | None:
        """Return the latest action of one of these names."""
        return next((each for each in self.histories if each.action.action in names), None)

    def open(self) -> History | None:
        """Return the action that is open, if there is one."""
        return next((each for each in self.histories if each.action.is_open), None)

    def service(self, host: str | None) -> Service | None:
        """Return the compute service of a host."""
        return next((s for s in self.services if s.host == host and s.binary == COMPUTE), None)


@dataclass(slots=True)
class Explanation:
    """``sentence`` is the answer; ``more`` are sentences that follow; ``advice`` may be empty."""

    sentence: str
    more: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)


def heard(facts: Facts, host: str | None) -> str:
    """Say when a host was last heard of, for administrators."""
    service = facts.service(host)
    if service is None:
        return f"There is no service nova-compute on {host} any more."
    if service.age is None:
        return f"{host} has never reported."
    forced = " and is forced down" if service.forced_down else ""
    state = "up" if service.is_up(facts.down_time) else "down"
    return (
        f"{host} last reported {duration(service.age)} ago{forced}: it counts as {state} "
        f"(service_down_time = {facts.down_time:g} s)."
    )


def bring_back(host: str | None, admin: bool) -> str:
    """Return what to do about a host that does not report."""
    if admin:
        return f"start novalite-compute on {host}, or see in its log why it does not report"
    return advice.ASK_OPERATORS


def advise(decision: Decision, admin: bool) -> list[str]:
    """Return what would let a host take such a server."""
    return advice.for_admin(decision) if admin else advice.for_tenant(decision)
