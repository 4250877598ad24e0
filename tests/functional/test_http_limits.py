# SPDX-License-Identifier: Apache-2.0
"""What strangers can do to the HTTP server: long heads, slow and silent clients, odd bodies."""

import contextlib
import socket
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.functional.cloud import Cloud

Make = Callable[..., Cloud]
TIMEOUT = 2
HEAD = "X-Auth-Token: admin:admin\r\nHost: x\r\n"
GOOD = '{"flavor": {"name": "NAME", "vcpus": 1, "ram": 64, "disk": 1}}'


class Plug:
    """One connection to the API, used by hand."""

    def __init__(self, cloud: Cloud):
        url = urllib.parse.urlsplit(cloud.endpoints.compute_url)
        self.socket = socket.create_connection((str(url.hostname), int(url.port or 0)), 30)
        self.file = self.socket.makefile("rb")

    def send(self, text: str) -> None:
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(text.encode("latin-1"))

    def status(self) -> int:
        """Read one answer, 0 if the connection was closed without one."""
        try:
            line = self.file.readline()
            length = 0
            while line and (header := self.file.readline().strip()):
                name, _, value = header.partition(b":")
                if name.lower() == b"content-length" and line.startswith(b"HTTP/"):
                    length = int(value)
            self.file.read(length)
        except ConnectionError:
            return 0
        if line and not line.startswith(b"HTTP/"):
            # Who sends no version gets an answer without a head.
            return 400
        return int(line.split()[1]) if line else 0

    def ask(self, text: str) -> int:
        self.send(text)
        return self.status()

    def is_closed(self) -> bool:
        try:
            return self.file.read(1) == b""
        except ConnectionError:
            return True


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    return make_class_cloud(
        config={"api": {"client_socket_timeout": TIMEOUT, "max_concurrent_requests": 20}}
    )


@pytest.fixture
def plug(cloud: Cloud) -> Iterator[Plug]:
    made = Plug(cloud)
    with made.socket:
        yield made


def memory_of(cloud: Cloud) -> int:
    """Return the resident memory of the API in KiB."""
    pid = cloud.services.process("api").pid
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


@pytest.mark.bus
class TestHttp:
    def test_heads_without_end(self, cloud: Cloud) -> None:
        before = memory_of(cloud)
        for head in (
            "GET /v2.1/" + "a" * 5_000_000,
            f"GET /v2.1/servers HTTP/1.1\r\n{HEAD}X-Long: " + "a" * 5_000_000,
            f"GET /v2.1/servers HTTP/1.1\r\n{HEAD}" + "X-Many: a\r\n" * 500_000,
            f"GET /v2.1/servers HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {'a' * 70_000}\r\n\r\n",
        ):
            with contextlib.closing((plug := Plug(cloud)).socket):
                assert plug.ask(head) in (0, 400, 413, 414, 431)
        assert memory_of(cloud) - before < 30_000
        assert cloud.api.request("GET", "/flavors").status == 200

    def test_silent_and_slow_clients_are_let_go(self, cloud: Cloud) -> None:
        plugs = [Plug(cloud) for _ in range(20)]
        began = time.monotonic()
        for number, plug in enumerate(plugs):
            # Nothing, half a head, a head without its body.
            text = f"POST /v2.1/flavors HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
            plug.send(("", text, f"{text}Content-Length: 100\r\n\r\n{{")[number % 3])
        # All threads are taken; the next client is served when they have been let go.
        assert cloud.api.request("GET", "/flavors").status == 200
        for plug in plugs:
            plug.socket.settimeout(10 * TIMEOUT)
            status = plug.status()
            assert status in (0, 400, 408), status
            plug.socket.close()
        assert time.monotonic() - began < 10 * TIMEOUT

    def test_a_refusal_leaves_no_body_behind(self, plug: Plug) -> None:
        """The next request on the connection is not read from the body of the refused one."""
        body = "GET /v2.1/flavors HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\n\r\n"
        first = plug.ask(
            f"POST /v2.1/servers HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        assert first == 401
        second = plug.ask(f"GET /v2.1/nothing HTTP/1.1\r\n{HEAD}\r\n")
        assert second in (0, 404)

    @pytest.mark.parametrize("size", [200_000, 50_000_000])
    def test_a_large_body_is_refused_unread(self, cloud: Cloud, plug: Plug, size: int) -> None:
        before = memory_of(cloud)
        plug.send(
            f"POST /v2.1/flavors HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
            f"Content-Length: {size}\r\n\r\n"
        )
        plug.socket.settimeout(5 * TIMEOUT)
        assert plug.status() == 413
        assert memory_of(cloud) - before < 20_000

    def test_chunked_bodies(self, cloud: Cloud) -> None:
        head = (
            f"POST /v2.1/flavors HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n"
        )
        text = GOOD.replace("NAME", "chunked")
        with contextlib.closing((plug := Plug(cloud)).socket):
            assert plug.ask(f"{head}{len(text):x}\r\n{text}\r\n0\r\n\r\n") == 200
        with contextlib.closing((plug := Plug(cloud)).socket):
            chunk = f"10000\r\n{' ' * 0x10000}\r\n"
            assert plug.ask(f"{head}{chunk * 5}0\r\n\r\n") in (0, 413)
        for wrong in ("xyz\r\n{}\r\n0\r\n\r\n", "-5\r\n{}\r\n0\r\n\r\n", "ffffffffffff\r\n{}"):
            with contextlib.closing((plug := Plug(cloud)).socket):
                plug.send(head + wrong)
                plug.socket.shutdown(socket.SHUT_WR)
                assert plug.status() in (0, 400, 408, 413)

    @pytest.mark.parametrize("length", ["x", "-1", "1e3", "5, 6", ""])
    def test_lengths_that_are_none(self, plug: Plug, length: str) -> None:
        plug.send(
            f"POST /v2.1/flavors HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
            f"Content-Length: {length}\r\n\r\n{{}}"
        )
        assert plug.status() in (0, 400, 408, 411)

    @pytest.mark.parametrize(
        "text",
        ["\r\n\r\n", "GET\r\n\r\n", "\x16\x03\x01\x02\x00", "GET / HTTP/9.9\r\n\r\n", "a b"],
    )
    def test_what_is_no_request(self, cloud: Cloud, plug: Plug, text: str) -> None:
        plug.send(text)
        plug.socket.shutdown(socket.SHUT_WR)
        assert plug.status() in (0, 200, 300, 400, 408, 505)
        assert cloud.api.request("GET", "/flavors").status == 200

    def test_nothing_of_it_is_an_error_of_ours(self, cloud: Cloud) -> None:
        assert cloud.grep("api", "Traceback|Unexpected exception") == []
