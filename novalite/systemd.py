# SPDX-License-Identifier: Apache-2.0
"""What systemd tells a service and hears from it; the parent of workers speaks it to them too.

Standard library only: the parent of workers loads nothing else.
"""

import logging
import os
import socket
from collections.abc import Mapping

LOG = logging.getLogger(__name__)

# The socket that a parent of workers has opened for them, as the number of its descriptor.
LISTEN_FD = "NOVALITE_LISTEN_FD"
_FIRST_FD = 3
# Number of a worker among its siblings, from 1, in its environment.
WORKER = "NOVALITE_WORKER"


class Notifier:
    """Speaks systemd's notify protocol; does nothing when nobody listens."""

    def __init__(self, environ: Mapping[str, str] | None = None):
        environ = dict(os.environ) if environ is None else environ
        self._address = environ.get("NOTIFY_SOCKET", "")
        usec = environ.get("WATCHDOG_USEC", "")
        self.watchdog = int(usec) / 1e6 if usec.isdigit() else 0.0

    def send(self, *lines: str) -> None:
        """Send the state lines, for example ``READY=1``."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                channel.sendto("\n".join(lines).encode(), address)
        except (ConnectionRefusedError, FileNotFoundError):
            LOG.debug("Whoever wanted to be told %s has gone", lines[0])
        except OSError as error:
            LOG.warning("systemd could not be told %s: %s", lines[0], error)


def worker() -> int:
    """Return this process's number among the workers of its service; 1 without workers."""
    return int(os.environ.get(WORKER) or 1)


def listening_fd(environ: Mapping[str, str] | None = None) -> int | None:
    """Return the descriptor of a listening socket that was handed over, if there is one.

    It comes from the parent of workers, or from a systemd socket unit (socket activation).
    """
    environ = os.environ if environ is None else environ
    given = environ.get(LISTEN_FD, "")
    if given.isdigit():
        return int(given)
    count = environ.get("LISTEN_FDS", "")
    if environ.get("LISTEN_PID") == str(os.getpid()) and count.isdigit() and int(count) > 0:
        return _FIRST_FD
    return None
