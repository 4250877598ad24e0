# SPDX-License-Identifier: Apache-2.0
"""The libvirt driver, as novalite-compute calls it.

It works on any object of the shape of the ``libvirt`` bindings. The definition of a domain is
written before anything else of a guest and removed after everything else, so whatever a kill
leaves behind can be found by its domain. It never reaches the bus or the database, and it decides
nothing about a guest that compute has not told it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg

from novalite import context as novalite_context
from novalite import exception, log
from novalite.objects.instance import Instance, NetworkInfo
from novalite.objects.request_spec import ImageMeta
from novalite.objects.states import PowerState
from novalite.virt.driver import GuestInfo, GuestMetadata, HostResources
from novalite.virt.libvirt import config
from novalite.virt.libvirt.guest import Guest
from novalite.virt.libvirt.host import Host

LOG = log.get(__name__)

MAX_CONSOLE_BYTES = 100 * 1024


class LibvirtDriver:
    """Implements ``virt.driver.ComputeDriver``; one connection for each node."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        libvirt: Any,
        uris: Mapping[str, str],
        on_reload: Callable[[cfg.ConfigOpts], None] | None = None,
    ):
        """Check the options; nothing is connected yet.

        :param libvirt: the bindings, or what looks like them
        :param uris: the connection of each node
        :param on_reload: told of changed options before the driver looks at its hosts again
        :raises ConfigurationError: options of [libvirt] contradict each other
        """
        self._cpu = config.cpu_policy(conf.libvirt)
        self._overhead = int(conf.libvirt.guest_overhead_mb)
        self._on_reload = on_reload
        directory = Path(conf.state_path) / "instances"
        self._hosts = {
            node: Host(libvirt, node, uri, directory / node) for node, uri in uris.items()
        }
        # Where a guest is, so that a driver of many nodes does not ask each of them.
        self._at: dict[str, Host] = {}

    def init_host(self) -> None:
        """Connect to all nodes."""
        for host in self._hosts.values():
            host.connect()
            self._at.update((info.instance_uuid, host) for info in host.guests())
        self._cpu = self._with_known_model(self._cpu)

    def reload(self, conf: cfg.ConfigOpts) -> None:
        """Take over changed options; when they contradict each other the old ones stay."""
        policy = config.cpu_policy(conf.libvirt)
        policy = self._with_known_model(policy)
        if self._on_reload is not None:
            self._on_reload(conf)
        for host in self._hosts.values():
            host.refresh()
        self._cpu, self._overhead = policy, int(conf.libvirt.guest_overhead_mb)

    def _with_known_model(self, policy: config.CpuPolicy) -> config.CpuPolicy:
        if policy.mode == "custom":
            for host in self._hosts.values():
                policy = policy.choose_model(host.cpu_models())
        return policy

    # What is there

    def nodes(self) -> list[str]:
        """Return the names of the nodes."""
        return list(self._hosts)

    def host_resources(self, node: str) -> HostResources:
        """Return the numbers of *node*.

        :raises HypervisorError: there is no such node
        """
        resources = self._host(node).resources()
        resources.guest_overhead_mb = self._overhead
        return resources

    def host_uptime(self, node: str) -> str:
        """Return what the program ``uptime`` says of the machine behind *node*.

        :raises HypervisorError: there is no such node
        """
        return self._host(node).uptime()

    def list_guests(self) -> list[GuestInfo]:
        """Return all guests of ours on all nodes."""
        return [info for host in self._hosts.values() for info in host.guests()]

    def get_guest(self, instance_uuid: str) -> GuestInfo | None:
        """Return the guest of this instance, or None."""
        found = self._find(instance_uuid)
        try:
            return found and found[1].info(found[0].node)
        except exception.DomainNotFound:
            return None

    def power_state(self, instance_uuid: str) -> PowerState:
        """Return the guest's power state; NOSTATE when there is no guest."""
        found = self._find(instance_uuid)
        try:
            return found[1].power_state() if found else PowerState.NOSTATE
        except exception.DomainNotFound:
            return PowerState.NOSTATE

    def get_console_output(self, instance_uuid: str) -> str:
        """Return the end of the guest's console log."""
        found = self._find(instance_uuid)
        if found is None:
            raise exception.DomainNotFound(instance_uuid=instance_uuid)
        host, guest = found
        # The log is written by a daemon beside libvirt; where there is none, the console is asked.
        text = _tail(host.console_log(instance_uuid))
        if text is None:
            text = host.console(guest)[-MAX_CONSOLE_BYTES:]
        return text.decode("utf-8", "replace")

    def _host(self, node: str | None) -> Host:
        if node is None and len(self._hosts) == 1:
            return next(iter(self._hosts.values()))
        try:
            return self._hosts[node or ""]
        except KeyError:
            raise exception.HypervisorError(
                reason=f"node {node} is not managed here; nodes: {', '.join(self._hosts)}"
            ) from None

    def _home(self, instance_uuid: str) -> Host | None:
        """Return the node of the guest; a driver of one node need not know that it is there."""
        if len(self._hosts) == 1:
            return self._host(None)
        return self._at.get(instance_uuid)

    def _find(self, instance_uuid: str) -> tuple[Host, Guest] | None:
        host = self._home(instance_uuid)
        guest = host.guest(instance_uuid) if host else None
        return (host, guest) if host and guest else None

    def _one(self, instance_uuid: str) -> Guest:
        found = self._find(instance_uuid)
        if found is None:
            raise exception.DomainNotFound(instance_uuid=instance_uuid)
        return found[1]

    # What is done

    def spawn(
        self,
        context: novalite_context.RequestContext,
        instance: Instance,
        image_meta: ImageMeta,
        network_info: Sequence[NetworkInfo],
        metadata: GuestMetadata,
        is_cancelled: Callable[[], bool],
    ) -> None:
        """Make the guest and leave it paused; see ``virt.driver.LifecycleDriver.spawn``."""
        host = self._host(instance.node)
        if self._at.get(instance.uuid, host) is not host:
            raise exception.HypervisorError(
                reason=f"the guest is on node {self._at[instance.uuid].node} already"
            )
        disks = host.disks(instance.uuid, config.disk_sizes(instance, image_meta.size))
        xml = config.domain_xml(
            instance,
            network_info,
            metadata,
            cpu=self._cpu,
            disks=disks,
            console_log=str(host.console_log(instance.uuid)),
            now=time.time(),
        )
        _check(instance, is_cancelled)
        self._at[instance.uuid] = host
        try:
            guest = host.define(xml)
            _check(instance, is_cancelled)
            LOG.info("Creating image", context=context, instance=instance.uuid)
            for disk in disks:
                host.create_disk(instance.uuid, disk)
            _check(instance, is_cancelled)
            guest.start_paused(self._cpu.blamed)
            _check(instance, is_cancelled)
        except exception.BuildCancelled:
            self.destroy(instance.uuid)
            raise
        except Exception:
            self._clean_up(context, instance)
            raise

    def _clean_up(self, context: novalite_context.RequestContext, instance: Instance) -> None:
        """Remove what a failed spawn made. Its error is the one to be raised, not that of this."""
        try:
            self.destroy(instance.uuid)
        except exception.HypervisorError as error:
            LOG.warning(
                "The failed spawn left its domain behind: %s",
                error.message(),
                context=context,
                instance=instance.uuid,
            )

    def finish_spawn(self, instance: Instance) -> None:
        """Let the guest run."""
        self._one(instance.uuid).resume()
        LOG.info("Instance spawned successfully.", instance=instance.uuid)

    def pause_guest(self, instance_uuid: str, by_fence: bool) -> None:
        """Pause the guest."""
        guest = self._one(instance_uuid)
        # The mark comes first: a guest that is marked and runs is resumed once more, a guest that
        # is paused without a mark would never be.
        self._mark(guest, by_fence)
        guest.pause()

    def unpause_guest(self, instance_uuid: str) -> None:
        """Let the guest run, then take the mark off, for the same reason."""
        guest = self._one(instance_uuid)
        guest.resume()
        self._mark(guest, False)

    def _mark(self, guest: Guest, paused_by_fence: bool) -> None:
        metadata = guest.metadata()
        if metadata is not None and metadata.paused_by_fence != paused_by_fence:
            metadata.paused_by_fence = paused_by_fence
            guest.set_metadata(metadata)

    def set_metadata(self, instance_uuid: str, metadata: GuestMetadata) -> None:
        """Replace the metadata of the guest."""
        self._one(instance_uuid).set_metadata(metadata)

    def destroy(self, instance_uuid: str) -> None:
        """Remove the guest with its disks and its console log."""
        host = self._home(instance_uuid)
        if host is None:
            return
        guest = host.guest(instance_uuid)
        if guest is not None:
            _unless_gone(guest.power_off)
        host.delete_disks(instance_uuid)
        _unlink(host.console_log(instance_uuid))
        if guest is not None:
            _unless_gone(guest.undefine)
        self._at.pop(instance_uuid, None)


def _check(instance: Instance, is_cancelled: Callable[[], bool]) -> None:
    if is_cancelled():
        raise exception.BuildCancelled(instance_uuid=instance.uuid)


def _unless_gone(act: Callable[[], None]) -> None:
    try:
        act()
    except exception.DomainNotFound:
        return


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise exception.HypervisorError(reason=f"cannot remove {path}: {error}") from error


def _tail(path: Path) -> bytes | None:
    """Return the last bytes of a file; None when it is not there."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - MAX_CONSOLE_BYTES))
            return stream.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise exception.HypervisorError(reason=f"cannot read {path}: {error}") from error
