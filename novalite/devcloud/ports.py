# SPDX-License-Identifier: Apache-2.0
"""Free TCP ports on 127.0.0.1.

Called when a cloud's files are written. Nothing here may listen for longer than the check takes.
"""

import random
import socket
from pathlib import Path

_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 12000


def is_free(port: int) -> bool:
    """Tell whether a server could listen on 127.0.0.1:*port* now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def answers(port: int, host: str = "127.0.0.1") -> bool:
    """Tell whether something accepts connections on the port."""
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


def free(count: int) -> list[int]:
    """Return *count* different free ports.

    They lie below the kernel's range for outgoing connections: a server that is stopped for a
    moment must find its port again, and a client's connection must not have taken it meanwhile.

    :raises OSError: no free port was found
    """
    chosen: list[int] = []
    for port in random.sample(range(_LOWEST, _upper()), min(2000, _upper() - _LOWEST)):
        if len(chosen) == count:
            break
        if is_free(port):
            chosen.append(port)
    if len(chosen) < count:
        raise OSError(f"no {count} free ports between {_LOWEST} and {_upper()}")
    return chosen


def _upper() -> int:
    try:
        lowest_outgoing = int(_RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        lowest_outgoing = 32768
    # Some machines give nearly every port to outgoing connections; then any port will do.
    return lowest_outgoing if lowest_outgoing >= _LOWEST + 1000 else 32768
