# SPDX-License-Identifier: Apache-2.0
"""What novalite-compute may ask of a hypervisor: small protocols and the records they return.

Compute imports this module for its types and gets a driver from ``virt.loader``. A driver keeps
no books and decides nothing: it does what it is told on one host and tells what is there. It never
talks to the bus, the database or a neighbour. All methods may be called from many threads at one
time; of one instance, compute calls one method at a time (its instance lock).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from oslo_config import cfg

from novalite import context as novalite_context
from novalite.objects.instance import Instance, NetworkInfo
from novalite.objects.request_spec import ImageMeta
from novalite.objects.states import PowerState


@dataclass(slots=True)
class GuestMetadata:
    """Which attempt of which action made a guest; kept with the guest, not in memory.

    ``done`` is set once the conductor has acknowledged the finish of the attempt,
    ``paused_by_fence`` while the host's fence holds the guest paused.
    """

    action_id: int
    attempt: int
    done: bool = False
    paused_by_fence: bool = False
    token: str = ""


@dataclass(slots=True)
class GuestInfo:
    """One guest of ours as the hypervisor has it; ``name`` is the name of the domain."""

    instance_uuid: str
    name: str
    node: str
    power_state: PowerState
    metadata: GuestMetadata


@dataclass(slots=True)
class HostResources:
    """What one node has: threads, memory in MB, disk in GB.

    ``disk_available_least`` is what the file system can still take when every thin disk has grown
    to its full size; it may be negative, None means that it is not known.
    ``guest_overhead_mb`` is taken beside the memory of each guest. ``cpu_info`` and
    ``supported_instances`` ([arch, kvm or qemu, hvm]) are shared between calls: read only.
    """

    vcpus: int
    memory_mb: int
    local_gb: int
    disk_available_least: int | None = None
    guest_overhead_mb: int = 0
    hypervisor_type: str = "QEMU"
    hypervisor_version: int = 0
    cpu_info: dict[str, Any] = field(default_factory=dict)
    supported_instances: list[list[str]] = field(default_factory=list)


class LifecycleDriver(Protocol):
    """Makes, starts, pauses and removes guests. Every method may raise HypervisorError."""

    def spawn(
        self,
        context: novalite_context.RequestContext,
        instance: Instance,
        image_meta: ImageMeta,
        network_info: Sequence[NetworkInfo],
        metadata: GuestMetadata,
        is_cancelled: Callable[[], bool],
    ) -> None:
        """Make the guest on ``instance.node`` and leave it *paused*; :meth:`finish_spawn` runs it.

        ``instance.node`` may be None where the driver has one node only. *is_cancelled* is asked
        between the stages.

        :raises BuildCancelled: *is_cancelled* said so; what was made is gone again
        :raises HypervisorError: the hypervisor refused. What was made has been removed as far as
            that was possible; :meth:`destroy` tells whether something is left
        """

    def finish_spawn(self, instance: Instance) -> None:
        """Let the guest that :meth:`spawn` left paused run.

        :raises DomainNotFound: there is no such guest
        """

    def pause_guest(self, instance_uuid: str, by_fence: bool) -> None:
        """Pause the guest; *by_fence* is remembered in its metadata before it is paused.

        :raises DomainNotFound: there is no such guest
        """

    def unpause_guest(self, instance_uuid: str) -> None:
        """Let the guest run, then forget that a fence had paused it.

        :raises DomainNotFound: there is no such guest
        """

    def set_metadata(self, instance_uuid: str, metadata: GuestMetadata) -> None:
        """Replace the metadata of the guest; written when this returns.

        :raises DomainNotFound: there is no such guest
        """

    def destroy(self, instance_uuid: str) -> None:
        """Remove the guest with its disks and its console log; success when it is gone already.

        :raises HypervisorError: something is left; the guest can still be found
        """


class InspectDriver(Protocol):
    """Tells what is there. Every method may raise HypervisorError."""

    def nodes(self) -> list[str]:
        """Return the names of the nodes this driver manages."""

    def host_resources(self, node: str) -> HostResources:
        """Return what *node* has; costs the same whatever number of guests is there."""

    def host_uptime(self, node: str) -> str:
        """Return what the program ``uptime`` says of the machine behind *node*."""

    def list_guests(self) -> list[GuestInfo]:
        """Return all guests of ours on all nodes; domains of others are left out."""

    def get_guest(self, instance_uuid: str) -> GuestInfo | None:
        """Return the guest of this instance, or None."""

    def power_state(self, instance_uuid: str) -> PowerState:
        """Return the guest's power state; NOSTATE when there is no guest."""

    def get_console_output(self, instance_uuid: str) -> str:
        """Return the end of what the guest has written to its console, 100 KiB at most.

        :raises DomainNotFound: there is no such guest
        """


class ComputeDriver(LifecycleDriver, InspectDriver, Protocol):
    """A driver as novalite-compute holds it."""

    def init_host(self) -> None:
        """Connect to the hypervisor; must be called before anything else.

        :raises ConfigurationError: the configuration does not fit the hypervisor
        :raises HypervisorError: the hypervisor cannot be reached
        """

    def reload(self, conf: cfg.ConfigOpts) -> None:
        """Take over changed options (SIGHUP); guests that exist are not touched.

        :raises ConfigurationError: the options contradict each other; the old ones stay in force
        """
