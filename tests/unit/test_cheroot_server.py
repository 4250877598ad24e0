# SPDX-License-Identifier: Apache-2.0
"""Bodies on native threads: chunks of any size, and answers to who sends no body."""

import io
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite import cheroot_server
from novalite.cheroot_server import DRAINED, PIECE, SIZE_LINE, Pieces

Ask = Callable[[bytes], bytes]


class Counted(io.BytesIO):
    """A stream that remembers the largest read it was asked for."""

    largest = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.largest = max(self.largest, size or 0)
        return super().read(size)


@given(st.lists(st.binary(min_size=1, max_size=300)), st.integers(1, 500))
def test_a_body_comes_out_as_it_went_in(chunks: list[bytes], size: int) -> None:
    coded = b"".join(b"%x;x=y\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    body = Pieces(io.BytesIO(coded + b"0\r\n\r\n"))
    found = b""
    while part := body.read(size):
        assert len(part) <= size
        found += part
    assert found == b"".join(chunks)
    assert body.closed


def test_a_large_chunk_is_not_read_whole() -> None:
    stream = Counted(b"ffffffffffff\r\n" + b"a" * (4 * PIECE))
    assert Pieces(stream).read(PIECE + 1) == b"a" * (PIECE + 1)
    assert stream.largest == PIECE


@pytest.mark.parametrize(
    "coded",
    [
        b"",
        b"x\r\nabc\r\n",
        b"-5\r\nabc\r\n",
        b"3",
        b"3\r\nab",
        b"3\r\nabcd\r\n",
        b"1;" + b"x" * SIZE_LINE + b"\r\na\r\n0\r\n\r\n",
    ],
)
def test_what_is_no_chunked_body(coded: bytes) -> None:
    with pytest.raises(ValueError):
        Pieces(io.BytesIO(coded)).read(100)


def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Read what is asked for by the URL and answer, even if it could not be had."""
    wanted = int(environ["PATH_INFO"][1:])
    try:
        read = len(environ["wsgi.input"].read(wanted)) if wanted else 0
        text = b"%d" % read
    except OSError:
        text = b"silent"
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]


@pytest.fixture
def errors() -> list[str]:
    return []


@pytest.fixture
def address(errors: list[str]) -> Iterator[Any]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = cheroot_server.Server(listener, app, numthreads=2, timeout=1)
    server.error_log = lambda message="", *_args, **_kwargs: errors.append(message)
    server.prepare()
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield listener.getsockname()
    server.stop()
    thread.join(10)


@pytest.mark.parametrize(
    ("read", "length", "sent", "answer", "stays"),
    [
        # All of it was read.
        (5, 5, 5, b"5", True),
        # The rest is read for the sake of the connection.
        (0, 5, 5, b"0", True),
        (2, DRAINED, DRAINED, b"2", True),
        # Too much to read for that.
        (2, DRAINED + 3, 2, b"2", False),
        # The client sends no more.
        (5, 5, 2, b"silent", False),
        (0, 5, 2, b"0", False),
    ],
)
def test_an_answer_whatever_became_of_the_body(
    address: Any,
    errors: list[str],
    read: int,
    length: int,
    sent: int,
    answer: bytes,
    stays: bool,
) -> None:
    head = f"POST /{read} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()
    with socket.create_connection(address, 10) as client:
        client.sendall(head + b"a" * sent)
        file = client.makefile("rb")
        assert file.readline() == b"HTTP/1.1 200 OK\r\n"
        headers = {line.strip().lower() for line in iter(file.readline, b"\r\n")}
        assert file.read(len(answer)) == answer
        assert (b"connection: close" in headers) != stays
        if stays:
            client.sendall(b"GET /0 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert file.readline() == b"HTTP/1.1 200 OK\r\n"
        else:
            assert file.read() == b""
    assert errors == []
