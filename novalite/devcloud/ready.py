# SPDX-License-Identifier: Apache-2.0
"""Hears READY from services that are being started, as systemd would.

Each service gets an address of its own (an abstract socket, so no file is left and no path can be
too long). The sockets live as long as the start takes.
"""

import secrets
import select
import socket
from types import TracebackType


class ReadyListener:
    """Collects the notifications of the named services."""

    def __init__(self) -> None:
        self._sockets: dict[str, socket.socket] = {}
        self._status: dict[str, str] = {}
        self._ready: set[str] = set()

    def __enter__(self) -> "ReadyListener":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def address(self, name: str) -> str:
        """Return the value of NOTIFY_SOCKET for the service *name*."""
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        channel.setblocking(False)
        address = f"novalite-{secrets.token_hex(8)}"
        channel.bind("\0" + address)
        self._sockets[name] = channel
        return "@" + address

    def is_ready(self, name: str) -> bool:
        """Tell whether the service has said READY."""
        return name in self._ready

    def status(self, name: str) -> str:
        """Return what the service said last that it is doing."""
        return self._status.get(name, "")

    def listen(self, timeout: float) -> None:
        """Take what arrives; returns after the first messages or after *timeout* seconds."""
        names = {channel.fileno(): name for name, channel in self._sockets.items()}
        poller = select.poll()
        for descriptor in names:
            poller.register(descriptor, select.POLLIN)
        for descriptor, _event in poller.poll(timeout * 1000):
            self._take(names[descriptor])

    def _take(self, name: str) -> None:
        channel = self._sockets[name]
        while True:
            try:
                message = channel.recv(4096)
            except BlockingIOError:
                return
            for line in message.decode(errors="replace").splitlines():
                key, _, value = line.partition("=")
                if key == "READY" and value == "1":
                    self._ready.add(name)
                elif key == "STATUS":
                    self._status[name] = value

    def close(self) -> None:
        """Close all sockets."""
        for channel in self._sockets.values():
            channel.close()
        self._sockets.clear()
