# SPDX-License-Identifier: Apache-2.0
"""What one novalite-compute consists of, and the few things that builds and destroys share.

The manager makes one :class:`ComputeHost` and passes it on; nothing in this package is global.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from oslo_config import cfg

from novalite import context as context_module
from novalite import exception, log
from novalite.compute.fence import Fence
from novalite.compute.hand import Hand, Work
from novalite.compute.pool import Pool
from novalite.compute.power_sync import PowerSync
from novalite.compute.reporter import Reporter
from novalite.compute.resource_tracker import ResourceTracker
from novalite.objects import build
from novalite.objects.block_device import BlockDevice
from novalite.objects.instance import NetworkInfo
from novalite.objects.request_spec import NetworkRequest
from novalite.virt import driver as virt_driver

# Nova's manager writes these lines; operators search for them under its name.
MANAGER_LOG = log.get(log.COMPUTE_MANAGER)


class Network(Protocol):
    """What compute asks of the network service; see ``network.client.NetworkClient``."""

    def allocate(
        self,
        context: context_module.RequestContext,
        instance_uuid: str,
        host: str,
        requested: list[NetworkRequest],
        security_groups: list[str],
        /,
    ) -> list[NetworkInfo]:
        """Make or take the wanted ports and bind them to *host*; what is there is used again."""

    def deallocate(
        self,
        context: context_module.RequestContext,
        instance_uuid: str,
        brought_ports: set[str],
        host: str | None,
        /,
    ) -> None:
        """Give back the ports of a server: all, or those that are bound to *host*."""


class Volumes(Protocol):
    """What compute asks of block storage; see ``volume.client.VolumeClient``."""

    def attach(
        self,
        context: context_module.RequestContext,
        instance_uuid: str,
        host: str,
        devices: Sequence[BlockDevice],
        is_cancelled: Callable[[], bool],
        on_made: Callable[[], None],
        /,
    ) -> list[BlockDevice]:
        """Make what is not there and attach all of it; what is there is used again."""

    def detach(
        self,
        context: context_module.RequestContext,
        instance_uuid: str,
        devices: Sequence[BlockDevice],
        host: str,
        /,
    ) -> None:
        """Take the server's volumes off *host*."""

    def release(
        self,
        context: context_module.RequestContext,
        instance_uuid: str,
        devices: Sequence[BlockDevice],
        /,
        *,
        built: bool,
    ) -> None:
        """Take all volumes off a server that goes; delete those that go with it."""


@dataclass(slots=True, eq=False)
class ComputeHost:
    """The parts of a compute service.

    ``builds`` runs network, volumes and spawn and is bounded by max_concurrent_builds, ``deletes``
    runs destroys, ``ends`` what follows an answer; so none of them waits behind another (rule 13).
    """

    conf: cfg.ConfigOpts
    driver: virt_driver.ComputeDriver
    network: Network
    volumes: Volumes
    tracker: ResourceTracker
    fence: Fence
    hand: Hand
    power: PowerSync
    builds: Pool
    deletes: Pool
    ends: Pool
    reporter: Reporter
    # Finished builds whose guest could not be marked as done yet; tried again at each audit.
    unmarked: dict[str, Callable[[], None]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of this service host."""
        return str(self.conf.host)

    def tell_picture(self, node: str) -> None:
        """Let the conductor know the books of *node* when no other message carries them."""
        item = build.Picture(self.tracker.picture(node))
        self.reporter.tell(context_module.service_context().to_wire(), item)

    def forget(self, work: Work) -> None:
        """Give back what dropped *work* held in memory: its question and its claim."""
        if work.ticket is not None:
            self.reporter.withdraw(work.ticket)
        self.tracker.release(work.node, work.instance_uuid, work.token)

    def guest_of(self, work: Work) -> virt_driver.GuestInfo | None:
        """Return the guest of exactly this attempt, if it is here."""
        guest = self.driver.get_guest(work.instance_uuid)
        return guest if guest is not None and made_by(guest, work) else None

    def deallocate_network(
        self,
        context: context_module.RequestContext,
        instance_uuid: str,
        brought: set[str],
        *,
        everywhere: bool = False,
    ) -> None:
        """Give a server's ports back; unless *everywhere*, only those bound to this host.

        Another host may be building the server by now and use its ports.

        :raises exception.NovaliteException: not all are given back
        """
        began = time.monotonic()
        host = None if everywhere else self.name
        self.network.deallocate(context, instance_uuid, brought, host)
        MANAGER_LOG.info(
            "Took %.2f seconds to deallocate network for instance.",
            time.monotonic() - began,
            context=context,
            instance=instance_uuid,
        )


def made_by(guest: virt_driver.GuestInfo, work: Work) -> bool:
    """Tell whether exactly this attempt has made the guest."""
    metadata = guest.metadata
    return (metadata.action_id, metadata.attempt) == (work.action_id, work.attempt)


def cause(error: Exception) -> str:
    """Return what may be told to a user about *error*: no traceback, no inner text."""
    if isinstance(error, exception.NovaliteException):
        return error.message()
    return f"Unexpected error: {type(error).__name__}"


def brought_ports(requested: Sequence[NetworkRequest] | None) -> set[str]:
    """Return the ports that the user brought; they outlive the server."""
    return {each.port_id for each in requested or () if each.port_id}
