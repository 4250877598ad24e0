# SPDX-License-Identifier: Apache-2.0
"""The servers of the API: bursts, and the end while somebody has just connected."""

import os
import socket
import subprocess
import sys
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


SCRIPT = """
from novalite import concurrency
concurrency.setup([])
import socket, threading, time

def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "4")])
    return [b"done"]

listener = socket.create_server(("127.0.0.1", 0))
server = concurrency.wsgi_server(listener, app, threads=10)
concurrency.spawn(server.serve)
address = listener.getsockname()

def ask(client):
    client.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    text = b""
    while not text.endswith(b"done"):
        part = client.recv(1000)
        assert part, text
        text += part
    return text

def accepted():
    if concurrency.backend() == "eventlet":
        return server._gate.fresh
    return sum(thread.conn is not None for thread in server._server.requests._threads)

def is_stopping():
    return server._gate._shut if concurrency.backend() == "eventlet" else not server._server.ready

def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)

ask(socket.create_connection(address, timeout=10))
until(lambda: accepted() == 0)
fresh = socket.create_connection(address, timeout=10)
until(lambda: accepted() == 1)
concurrency.spawn(server.stop)
until(is_stopping)
assert ask(fresh).startswith(b"HTTP/1.1 200")
"""


@pytest.mark.parametrize("backend", ["eventlet", "threading"])
def test_who_has_just_connected_is_answered(backend: str) -> None:
    """At the end of a server: a request that is on its way has a second to arrive."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "NOVALITE_CONCURRENCY_BACKEND": backend},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
