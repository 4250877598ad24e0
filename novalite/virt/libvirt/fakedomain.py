# SPDX-License-Identifier: Apache-2.0
"""A domain of the fake libvirt. ``fakelibvirt`` makes these objects, the driver calls them."""

import time

from novalite.virt.libvirt import fakehost, fakestore
from novalite.virt.libvirt.fakenode import Constants, Node, libvirtError

# A domain in one of these states has a process.
_ACTIVE = (Constants.VIR_DOMAIN_RUNNING, Constants.VIR_DOMAIN_PAUSED)


def no_domain(uuid: str) -> libvirtError:
    """Return the error for a domain that is not there."""
    return libvirtError(
        f"Domain not found: no domain with matching uuid '{uuid}'", Constants.VIR_ERR_NO_DOMAIN
    )


class virDomain:
    """A domain. What the look-up has read answers the first question, so that it costs no second
    reading; everything later asks the store."""

    def __init__(self, node: Node, row: fakestore.DomainRow, fresh: bool = True):
        self._node = node
        self._store = node.store
        self._uuid = row.uuid
        self._name = row.name
        self._state: int | None = row.state if fresh else None
        self._metadata: dict[str, str] | None = row.metadata if fresh else None

    def name(self) -> str:
        """Return the name."""
        return self._name

    def UUIDString(self) -> str:
        """Return the uuid."""
        return self._uuid

    def _row(self) -> fakestore.DomainRow:
        row = self._node.ask(self._store.domain, self._uuid)
        if row is None:
            raise no_domain(self._uuid)
        return row

    def _forget(self) -> None:
        self._state = self._metadata = None

    def state(self, flags: int = 0) -> list[int]:
        """Return the state and its reason (always 0, unknown)."""
        state, self._state = self._state, None
        return [self._row().state if state is None else state, 0]

    def metadata(self, type: int, uri: str, flags: int = 0) -> str:
        """Return the element that is kept under a namespace."""
        kept, self._metadata = self._metadata, None
        found = (self._row().metadata if kept is None else kept).get(uri)
        if found is None:
            raise libvirtError(
                "metadata not found: Requested metadata element is not present",
                Constants.VIR_ERR_NO_DOMAIN_METADATA,
            )
        return found

    def setMetadata(
        self, type: int, metadata: str | None, key: str | None, uri: str, flags: int = 0
    ) -> int:
        """Replace the element that is kept under a namespace; None removes it."""
        self._forget()
        if not self._node.ask(self._store.set_metadata, self._uuid, uri, metadata):
            raise no_domain(self._uuid)
        return 0

    def XMLDesc(self, flags: int = 0) -> str:
        """Return the definition, with what libvirt adds to it."""
        found = self._node.ask(self._store.definition, self._uuid)
        if found is None:
            raise no_domain(self._uuid)
        xml, metadata, state = found
        return fakehost.describe_domain(xml, metadata, running=state in _ACTIVE)

    def createWithFlags(self, flags: int = 0) -> int:
        """Start the domain. Killed meanwhile, it is left defined and shut off."""
        self._forget()
        play = self._node.play
        delay = play.spawn_time()
        if delay > 0:
            time.sleep(delay)
        if play.draw(play.settings.fail_spawn):
            raise libvirtError(
                "internal error: process exited while connecting to monitor: the guest was told "
                "to fail by [fake_libvirt] fail_spawn",
                Constants.VIR_ERR_INTERNAL_ERROR,
            )
        if play.settings.nested:
            self._check_cpu(play.settings.nested)
        paused = bool(flags & Constants.VIR_DOMAIN_START_PAUSED)
        after = Constants.VIR_DOMAIN_PAUSED if paused else Constants.VIR_DOMAIN_RUNNING
        self._move((Constants.VIR_DOMAIN_SHUTOFF,), after, "domain is already running")
        return 0

    def _check_cpu(self, lacking: tuple[str, ...]) -> None:
        found = self._node.ask(self._store.definition, self._uuid)
        missing = fakehost.missing_features(found[0], lacking) if found else ()
        if missing:
            raise libvirtError(
                "unsupported configuration: guest and host CPU are not compatible: Host CPU does "
                f"not provide required features: {', '.join(missing)}",
                Constants.VIR_ERR_CONFIG_UNSUPPORTED,
            )

    def openConsole(self, dev_name: str | None, stream: "virStream", flags: int = 0) -> int:
        """Put what the guest has written to its serial console into *stream*."""
        if self._row().state not in _ACTIVE:
            raise libvirtError(
                "Requested operation is not valid: domain is not running",
                Constants.VIR_ERR_OPERATION_INVALID,
            )
        stream.feed(fakehost.boot_lines(self._name, self._uuid).encode())
        return 0

    def suspend(self) -> int:
        """Stop the CPUs of a running domain."""
        before = (Constants.VIR_DOMAIN_RUNNING, Constants.VIR_DOMAIN_PAUSED)
        self._move(before, Constants.VIR_DOMAIN_PAUSED, "domain is not running")
        return 0

    def resume(self) -> int:
        """Let the CPUs of a paused domain run."""
        before = (Constants.VIR_DOMAIN_PAUSED,)
        self._move(before, Constants.VIR_DOMAIN_RUNNING, "domain is not paused")
        return 0

    def destroy(self) -> int:
        """End the process of the domain; the definition stays."""
        play = self._node.play
        if play.draw(play.settings.fail_destroy):
            raise libvirtError(
                "Failed to terminate process with SIGKILL: Device or resource busy, as told by "
                "[fake_libvirt] fail_destroy",
                Constants.VIR_ERR_SYSTEM_ERROR,
            )
        self._move(_ACTIVE, Constants.VIR_DOMAIN_SHUTOFF, "domain is not running")
        return 0

    def undefineFlags(self, flags: int = 0) -> int:
        """Remove the definition."""
        self._forget()
        if not self._node.ask(self._store.undefine, self._uuid):
            raise no_domain(self._uuid)
        return 0

    def _move(self, before: tuple[int, ...], after: int, refusal: str) -> None:
        self._forget()
        if self._node.ask(self._store.move, self._uuid, before, after):
            return
        self._row()
        raise libvirtError(
            f"Requested operation is not valid: {refusal}", Constants.VIR_ERR_OPERATION_INVALID
        )


class virStream:
    """A stream of bytes out of the hypervisor, not blocking."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> None:
        """Add what is to be read; the hypervisor's side of the stream."""
        self._data += data

    def recv(self, nbytes: int) -> bytes | int:
        """Return some bytes, or -2 when there are none now."""
        if not self._data:
            return -2
        data, self._data = self._data[:nbytes], self._data[nbytes:]
        return data

    def abort(self) -> int:
        """Close the stream before its end."""
        self._data = b""
        return 0
