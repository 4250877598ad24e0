# SPDX-License-Identifier: Apache-2.0
"""The messages of a build and of a delete between conductor and compute."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from novalite.objects import base
from novalite.objects.action import ActionEvent
from novalite.objects.block_device import BlockDevice
from novalite.objects.compute_node import ComputeNode
from novalite.objects.instance import Instance, InstanceFault, NetworkInfo
from novalite.objects.request_spec import Limits, RequestSpec
from novalite.objects.states import PowerState, Verdict


@base.register
@dataclass(slots=True)
class BuildRequest:
    """Conductor to compute: build this attempt of this server on this node.

    ``context`` is the RequestContext of the user as a dict, since one cast may carry builds of
    several requests.
    """

    VERSION: ClassVar[str] = "1.0"

    action_id: int
    attempt: int
    node: str
    instance: Instance
    spec: RequestSpec
    limits: Limits | None
    context: dict[str, Any]


@base.register
@dataclass(slots=True)
class DestroyRequest:
    """Conductor or API to compute: remove what there is of this server.

    ``attempt`` is the highest attempt that may be destroyed (rule 9); None means all, which only
    a delete says. ``action_id`` is the delete action, or None for a clean-up.
    """

    VERSION: ClassVar[str] = "1.0"

    instance: Instance
    node: str
    context: dict[str, Any]
    attempt: int | None = None
    action_id: int | None = None


@base.register
@dataclass(slots=True)
class InHand:
    """One piece of work that a compute has in hand; naming it in a report extends its deadline.

    It has no token: a report is of the host's present epoch, so what it names is in hand there
    now. The attempt of a delete is 0.
    """

    VERSION: ClassVar[str] = "1.0"

    action_id: int
    attempt: int


@base.register
@dataclass(slots=True)
class Begin:
    """The claim stands: may the build begin? Carries the claim and the picture with it in.

    ``resources`` are the claimed amounts by class: VCPU, MEMORY_MB, DISK_GB.
    """

    VERSION: ClassVar[str] = "1.0"

    action_id: int
    attempt: int
    token: str
    instance_uuid: str
    node: str
    resources: dict[str, int]
    picture: ComputeNode
    event: ActionEvent | None = None


@base.register
@dataclass(slots=True)
class Refusal:
    """The claim does not fit. ``stale`` tells that the limits came from an older picture than the
    node's own, so the host gets another chance with the picture sent along."""

    VERSION: ClassVar[str] = "1.0"

    action_id: int
    attempt: int
    token: str
    instance_uuid: str
    node: str
    reason: str
    stale: bool
    picture: ComputeNode
    guest_left: bool = False
    event: ActionEvent | None = None


@base.register
@dataclass(slots=True)
class Progress:
    """The build entered a task state, or a step of it started or ended; nobody waits for it.

    Without a ``task_state`` the server shows none; ``network_info`` None leaves what is there.
    """

    VERSION: ClassVar[str] = "1.0"

    action_id: int
    attempt: int
    token: str
    instance_uuid: str
    task_state: str | None = None
    network_info: list[NetworkInfo] | None = None
    events: list[ActionEvent] = field(default_factory=list)


@base.register
@dataclass(slots=True)
class Finish:
    """The build ended. With a fault it failed: ``reschedule`` tells if another host may be tried,
    ``guest_left`` that the guest could not be removed."""

    VERSION: ClassVar[str] = "1.1"

    action_id: int
    attempt: int
    token: str
    instance_uuid: str
    node: str
    picture: ComputeNode
    power_state: PowerState = PowerState.NOSTATE
    launched_at: float | None = None
    root_device_name: str | None = None
    network_info: list[NetworkInfo] = field(default_factory=list)
    events: list[ActionEvent] = field(default_factory=list)
    fault: InstanceFault | None = None
    reschedule: bool = True
    guest_left: bool = False
    block_devices: list[BlockDevice] = field(default_factory=list)


@base.register
@dataclass(slots=True)
class Gone:
    """Everything of this server up to ``attempt`` (None: all) is off the node, or cannot be taken
    off: then ``failure`` says why."""

    VERSION: ClassVar[str] = "1.0"

    instance_uuid: str
    node: str
    picture: ComputeNode
    attempt: int | None = None
    action_id: int | None = None
    failure: str | None = None
    events: list[ActionEvent] = field(default_factory=list)


@base.register
@dataclass(slots=True)
class Picture:
    """The node's books, on their own."""

    VERSION: ClassVar[str] = "1.0"

    picture: ComputeNode


@base.register
@dataclass(slots=True)
class PowerReport:
    """A guest is found in another power state than was last reported."""

    VERSION: ClassVar[str] = "1.0"

    instance_uuid: str
    node: str
    power_state: PowerState


ReportItem = Begin | Refusal | Progress | Finish | Gone | Picture | PowerReport


@base.register
@dataclass(slots=True)
class Envelope:
    """One item of a report with the request it belongs to.

    ``key`` is made by the sender and names the item's answer.
    """

    VERSION: ClassVar[str] = "1.0"

    key: int
    context: dict[str, Any]
    item: Any


@base.register
@dataclass(slots=True)
class Answer:
    """The conductor's answer to one item, or the ``error`` that only this item met."""

    VERSION: ClassVar[str] = "1.0"

    key: int
    verdict: Verdict | None = None
    reason: str = ""
    error: str | None = None


@base.register
@dataclass(slots=True)
class Report:
    """One call of a service to the conductor: the heartbeat and whatever gathered since the last.

    ``counter`` grows with each report of this epoch; one call is in flight at a time.
    """

    VERSION: ClassVar[str] = "1.0"

    host: str
    binary: str
    epoch: int
    counter: int
    in_hand: list[InHand] = field(default_factory=list)
    items: list[Envelope] = field(default_factory=list)


@base.register
@dataclass(slots=True)
class ReportAnswer:
    """``retired`` tells a process that a newer start of its service has registered: it must stop.
    ``unknown`` tells it that its service record is gone: it registers again."""

    VERSION: ClassVar[str] = "1.0"

    retired: bool = False
    unknown: bool = False
    answers: list[Answer] = field(default_factory=list)


@base.register
@dataclass(slots=True)
class Kept:
    """A server that the database says is ACTIVE on a node, with the attempt that built it."""

    VERSION: ClassVar[str] = "1.0"

    instance: Instance
    attempt: int


@base.register
@dataclass(slots=True)
class Registration:
    """The answer to a service's start: its epoch, and for a compute what it has to keep.

    ``refused`` is the reason why this process may not serve under this name (another node
    identity); nothing was changed then. ``kept`` are the servers at rest on this host with a
    guest; ``open`` are the servers (uuid) whose open build is at this host, their guests are left
    until begin is answered.
    """

    VERSION: ClassVar[str] = "1.0"

    epoch: int = 0
    kept: list[Kept] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    node_uuids: dict[str, str] = field(default_factory=dict)
    disabled: bool = False
    refused: str | None = None
