# SPDX-License-Identifier: Apache-2.0
"""States of a server, of an action and of an answer."""

from enum import IntEnum, StrEnum


class VMState(StrEnum):
    """What the server is (Nova's vm_state)."""

    BUILDING = "building"
    ACTIVE = "active"
    ERROR = "error"
    DELETED = "deleted"
    STOPPED = "stopped"
    PAUSED = "paused"
    SUSPENDED = "suspended"


class TaskState(StrEnum):
    """What is being done with the server (Nova's task_state); None when it is at rest."""

    SCHEDULING = "scheduling"
    NETWORKING = "networking"
    BLOCK_DEVICE_MAPPING = "block_device_mapping"
    SPAWNING = "spawning"
    DELETING = "deleting"


class PowerState(IntEnum):
    """What the hypervisor says of the guest; the numbers are Nova's."""

    NOSTATE = 0
    RUNNING = 1
    PAUSED = 3
    SHUTDOWN = 4
    CRASHED = 6
    SUSPENDED = 7


class ActionState(StrEnum):
    """State of an instance action; pending and running are open, the rest is closed."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    ERROR = "error"
    SUPERSEDED = "superseded"


class Step(StrEnum):
    """How far an open action has come. ``scheduling`` waits for a conductor."""

    SCHEDULING = "scheduling"
    STARTED = "started"
    BEGUN = "begun"


class Verdict(StrEnum):
    """The conductor's answer to begin and finish (docs/architecture.md, rule 1)."""

    GO = "GO"
    RESUME = "RESUME"
    DROP = "DROP"
    DONE = "DONE"
    SUPERSEDED = "SUPERSEDED"


# The API's word for a vm_state.
STATUS: dict[VMState, str] = {
    VMState.BUILDING: "BUILD",
    VMState.ACTIVE: "ACTIVE",
    VMState.ERROR: "ERROR",
    VMState.DELETED: "DELETED",
    VMState.STOPPED: "SHUTOFF",
    VMState.PAUSED: "PAUSED",
    VMState.SUSPENDED: "SUSPENDED",
}
