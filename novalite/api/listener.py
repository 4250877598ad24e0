# SPDX-License-Identifier: Apache-2.0
"""The listening socket of the API: handed over by who started the process, or opened here.

Used by ``api/manager.py``, and by ``cmd/api.py`` for the parent of workers. Workers accept from one
and the same socket (not from sockets of their own with SO_REUSEPORT): what has connected and waits
to be accepted is everybody's, so it is not lost when a worker ends.
"""

import socket

from oslo_config import cfg

from novalite import exception, systemd

BACKLOG = 128


def obtain(conf: cfg.ConfigOpts) -> socket.socket:
    """Return the socket that was handed over, or listen where the options say.

    :raises exception.ConfigurationError: what was handed over is none, or address or port cannot
        be had
    """
    descriptor = systemd.listening_fd()
    if descriptor is None:
        return _open(conf)
    try:
        return socket.socket(fileno=descriptor)
    except OSError as error:
        raise exception.ConfigurationError(
            reason=f"descriptor {descriptor} that was handed over is no socket: {error.strerror}"
        ) from error


def _open(conf: cfg.ConfigOpts) -> socket.socket:
    address, port = str(conf.osapi_compute_listen), int(conf.osapi_compute_listen_port)
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _name, target = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Answers are small and complete; waiting for more to send only delays them.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(target)
        listener.listen(BACKLOG)
    except OSError as error:
        raise exception.ConfigurationError(
            reason=f"cannot listen on osapi_compute_listen = {address}, "
            f"osapi_compute_listen_port = {port}: {error.strerror}"
        ) from error
    return listener
