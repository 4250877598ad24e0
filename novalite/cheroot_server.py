# SPDX-License-Identifier: Apache-2.0
"""cheroot, the HTTP server of the native threads, made safe against clients that take their time.

Only ``concurrency.wsgi_server`` makes one. cheroot reads a chunk whole, however large its client
says it is, and reads a body to its end before it answers; a client that stops sending then leaves
an error of ours in the log and gets no answer.
"""

import socket
from typing import Any

from cheroot import server, wsgi

# Most bytes of an unread body that are read only to keep a connection usable.
DRAINED = 1 << 20
# So much of a body is read at a time.
PIECE = 1 << 16
# Most bytes of the line that tells a chunk's size; extensions may follow the size.
SIZE_LINE = 256


class Pieces(server.ChunkedRFile):
    """The body of a chunked request, read in pieces whatever the size of its chunks."""

    def __init__(self, rfile: Any):
        super().__init__(rfile, maxlen=None)
        self._left = 0

    def _fetch(self) -> None:
        """Put the next piece into the buffer; after the last chunk nothing.

        :raises ValueError: this is no chunked coding
        :raises OSError: the client has gone or is silent for too long
        """
        if self.closed:
            return
        if self._left == 0:
            self._left = self._next_size()
            self.closed = self._left == 0
            if self.closed:
                return
        piece = self.rfile.read(min(self._left, PIECE))
        if not piece:
            raise ValueError("the body ends inside a chunk")
        self._left -= len(piece)
        self.buffer += piece
        if self._left == 0 and self.rfile.read(2) != b"\r\n":
            raise ValueError("a chunk does not end where it should")

    def _next_size(self) -> int:
        line = self.rfile.readline(SIZE_LINE)
        size = int(line.partition(b";")[0].strip(), 16) if line.endswith(b"\n") else -1
        if size < 0:
            raise ValueError("a chunk has no size")
        return size


class Request(server.HTTPRequest):
    """A request that is answered although its body was not read to the end."""

    def send_headers(self) -> None:
        """Send them; a connection whose body is not at its end by then is closed after it."""
        if not self.close_connection and not self._at_the_end():
            self.close_connection = True
        super().send_headers()

    def _at_the_end(self) -> bool:
        if self.chunked_read:
            return bool(self.rfile.closed)
        if self.rfile.remaining > DRAINED:
            return False
        try:
            while self.rfile.remaining and self.rfile.read(PIECE):
                pass
        except OSError:
            # Silent for too long, or gone.
            return False
        return bool(self.rfile.remaining == 0)


class Connection(server.HTTPConnection):
    RequestHandlerClass = Request


class Gateway(wsgi.Gateway_10):
    """What the application gets of a request."""

    def __init__(self, req: Any):
        if req.chunked_read:
            req.rfile = Pieces(req.conn.rfile)
        super().__init__(req)


class Server(wsgi.Server):
    """Serves *app* on a socket that is bound already."""

    ConnectionClass = Connection

    def __init__(self, listener: socket.socket, app: Any, **options: Any):
        super().__init__(listener.getsockname()[:2], app, **options)
        self.gateway = Gateway
        self._listener = listener

    def bind(self, *_args: Any, **_kwargs: Any) -> socket.socket:
        """Take the socket that is there instead of making one."""
        self.socket = self._listener
        return self._listener
