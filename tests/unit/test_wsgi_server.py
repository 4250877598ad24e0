# SPDX-License-Identifier: Apache-2.0
"""The server of the API on native threads."""

import socket
from contextlib import ExitStack
from typing import Any

import pytest

from novalite import concurrency


def test_a_burst_of_clients_can_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "_backend", "threading")
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))
        made: Any = concurrency.wsgi_server(listener, None, threads=1)
        made._server.prepare()
        stack.callback(made.stop)
        # Nobody is served yet; the kernel answers as many as may wait.
        for _ in range(60):
            stack.enter_context(socket.create_connection(listener.getsockname(), timeout=2.0))
