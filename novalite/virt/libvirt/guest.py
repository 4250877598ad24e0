# SPDX-License-Identifier: Apache-2.0
"""One domain: what can be asked of it and done to it, in novalite's words and errors.

``host`` makes these objects, ``driver`` uses them. They keep no state: libvirt knows.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from novalite import exception
from novalite.objects.states import PowerState
from novalite.virt.driver import GuestInfo, GuestMetadata
from novalite.virt.libvirt import config


@contextmanager
def translated(
    libvirt: Any, instance_uuid: str = "-", word: Callable[[str], str] = str
) -> Iterator[None]:
    """Turn libvirt's error into ours.

    :raises DomainNotFound: for VIR_ERR_NO_DOMAIN
    :raises HypervisorError: for every other code
    """
    try:
        yield
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            raise exception.DomainNotFound(instance_uuid=instance_uuid) from error
        raise exception.HypervisorError(reason=word(str(error))) from error


class Guest:
    """A domain of a server."""

    def __init__(self, libvirt: Any, domain: Any):
        self._libvirt = libvirt
        self._domain = domain
        self.instance_uuid: str = domain.UUIDString()

    def info(self, node: str) -> GuestInfo | None:
        """Return what there is to know of the guest; None when the domain is not one of ours."""
        metadata = self.metadata()
        if metadata is None:
            return None
        return GuestInfo(
            self.instance_uuid, self._domain.name(), node, self.power_state(), metadata
        )

    def metadata(self) -> GuestMetadata | None:
        """Return the attempt that made the guest; None when the domain is not one of ours."""
        with translated(self._libvirt, self.instance_uuid):
            try:
                text = self._domain.metadata(
                    self._libvirt.VIR_DOMAIN_METADATA_ELEMENT,
                    config.GUEST_NS,
                    self._libvirt.VIR_DOMAIN_AFFECT_CONFIG,
                )
            except self._libvirt.libvirtError as error:
                if error.get_error_code() != self._libvirt.VIR_ERR_NO_DOMAIN_METADATA:
                    raise
                return None
        return config.parse_metadata(text)

    def set_metadata(self, metadata: GuestMetadata) -> None:
        """Replace the attempt's metadata in the definition of the domain."""
        with translated(self._libvirt, self.instance_uuid):
            self._domain.setMetadata(
                self._libvirt.VIR_DOMAIN_METADATA_ELEMENT,
                config.metadata_xml(metadata),
                config.GUEST_PREFIX,
                config.GUEST_NS,
                self._libvirt.VIR_DOMAIN_AFFECT_CONFIG,
            )

    def power_state(self) -> PowerState:
        """Return the state the domain is in now."""
        with translated(self._libvirt, self.instance_uuid):
            state, _reason = self._domain.state(0)
        return _power_states(self._libvirt)[state]

    def start_paused(self, word: Callable[[str], str] = str) -> None:
        """Create the domain with its CPUs stopped.

        :param word: makes of libvirt's text what the error says
        """
        with translated(self._libvirt, self.instance_uuid, word):
            self._domain.createWithFlags(self._libvirt.VIR_DOMAIN_START_PAUSED)

    def resume(self) -> None:
        """Let the CPUs run; harmless when they do."""
        self._unless(PowerState.RUNNING, self._domain.resume)

    def pause(self) -> None:
        """Stop the CPUs; harmless when they are."""
        self._unless(PowerState.PAUSED, self._domain.suspend)

    def power_off(self) -> None:
        """End the guest's process; harmless when there is none."""
        self._unless(PowerState.SHUTDOWN, self._domain.destroy)

    def undefine(self) -> None:
        """Remove the definition of a domain that is powered off."""
        flags = (
            self._libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
            | self._libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
            | self._libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
        )
        with translated(self._libvirt, self.instance_uuid):
            self._domain.undefineFlags(flags)

    def console(self, stream: Any) -> bytes:
        """Return what waits in the guest's console; nothing when it has no process.

        :param stream: a new stream of the guest's connection, not blocking
        """
        read = bytearray()
        with translated(self._libvirt, self.instance_uuid):
            try:
                self._domain.openConsole(None, stream, 0)
            except self._libvirt.libvirtError as error:
                if error.get_error_code() != self._libvirt.VIR_ERR_OPERATION_INVALID:
                    raise
                return b""
            # -2 says that there is nothing more now, b"" that the stream has ended.
            while isinstance(data := stream.recv(65536), bytes) and data:
                read += data
            stream.abort()
        return bytes(read)

    def _unless(self, state: PowerState, act: Any) -> None:
        """Call *act*; that it is refused does not matter when the guest is in *state* already."""
        with translated(self._libvirt, self.instance_uuid):
            try:
                act()
            except self._libvirt.libvirtError as error:
                invalid = error.get_error_code() == self._libvirt.VIR_ERR_OPERATION_INVALID
                if not invalid or self.power_state() is not state:
                    raise


def _power_states(libvirt: Any) -> dict[int, PowerState]:
    return {
        libvirt.VIR_DOMAIN_NOSTATE: PowerState.NOSTATE,
        libvirt.VIR_DOMAIN_RUNNING: PowerState.RUNNING,
        libvirt.VIR_DOMAIN_BLOCKED: PowerState.RUNNING,
        libvirt.VIR_DOMAIN_PAUSED: PowerState.PAUSED,
        libvirt.VIR_DOMAIN_SHUTDOWN: PowerState.SHUTDOWN,
        libvirt.VIR_DOMAIN_SHUTOFF: PowerState.SHUTDOWN,
        libvirt.VIR_DOMAIN_CRASHED: PowerState.CRASHED,
        libvirt.VIR_DOMAIN_PMSUSPENDED: PowerState.SUSPENDED,
    }
