# SPDX-License-Identifier: Apache-2.0
"""A private PostgreSQL server, and a proxy before it that can fall silent as a broken network does.

The server runs as the user that the distribution's package made, on a free port of 127.0.0.1 and in
a directory of its own; nothing is left.
"""

import contextlib
import os
import pwd
import select
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from novalite.devcloud import ports
from tests.functional.waiting import eventually

USER = "postgres"
_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


def missing() -> str | None:
    """Return why no server can be run here, or None."""
    if not _PROGRAMS:
        return "no PostgreSQL server is installed"
    if os.getuid() != 0 or not shutil.which("setpriv"):
        return "only root can run PostgreSQL as its own user"
    return None


class Server:
    """PostgreSQL, started and stopped as often as a test likes."""

    def __init__(self) -> None:
        self._bin = _PROGRAMS[-1].parent
        self._user = pwd.getpwnam(USER)
        self.directory = Path(tempfile.mkdtemp(prefix="novalite-pg-"))
        os.chown(self.directory, self._user.pw_uid, self._user.pw_gid)
        self.port = ports.free(1)[0]
        self._data = self.directory / "data"
        self._process: subprocess.Popen[bytes] | None = None
        words = ["-D", str(self._data), "--auth=trust", "--no-sync", "--no-locale", "-E", "UTF8"]
        subprocess.run(
            [*self._as_user(), str(self._bin / "initdb"), *words],
            cwd=self.directory,
            check=True,
            capture_output=True,
        )

    def _as_user(self) -> list[str]:
        user = self._user
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]

    def url(self, port: int | None = None) -> str:
        """Return the URL, through another port if one is given."""
        return f"postgresql+psycopg://{USER}@127.0.0.1:{port or self.port}/postgres"

    def start(self) -> None:
        """Start and wait until it takes connections."""
        options = {"port": self.port, "listen_addresses": "127.0.0.1", "fsync": "off"}
        words = [f"-c{name}={value}" for name, value in options.items()]
        words.append(f"-cunix_socket_directories={self.directory}")
        with open(self.directory / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*self._as_user(), str(self._bin / "postgres"), "-D", str(self._data), *words],
                cwd=self.directory,
                stdout=log,
                stderr=log,
            )
        engine = sa.create_engine(self.url(), poolclass=sa.NullPool)

        def answers() -> bool:
            try:
                with engine.connect():
                    return True
            except sa.exc.OperationalError:
                return False

        eventually(answers, 30.0, "PostgreSQL takes connections")

    def stop(self) -> None:
        """Stop at once; every connection is cut."""
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT: immediate shutdown
            self._process.wait(20)
            self._process = None

    def remove(self) -> None:
        """Stop and remove everything."""
        self.stop()
        shutil.rmtree(self.directory)


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Yield a server that runs."""
    server = Server()
    try:
        server.start()
        yield server
    finally:
        server.remove()


class Proxy:
    """Passes bytes on in both directions, or lets them vanish while nobody is told."""

    def __init__(self, target: int):
        self._target = target
        self._silent = threading.Event()
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def silence(self, on: bool) -> None:
        """Let everything vanish from now on, or no more; what has vanished stays away.

        Connections of before the silence never speak again.
        """
        if on:
            self._silent.set()
        else:
            self._silent.clear()

    def close(self) -> None:
        """End."""
        self._ended.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            if not select.select([self._listener], [], [], 0.1)[0]:
                continue
            client, _ = self._listener.accept()
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        # A server that refuses, and ends that go, close the other end too.
        with client, contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", self._target)) as server:
                self._between(client, server)

    def _between(self, client: socket.socket, server: socket.socket) -> None:
        other = {client: server, server: client}
        lost = False
        while not self._ended.is_set():
            for end in select.select(list(other), [], [], 0.1)[0]:
                lost = lost or self._silent.is_set()
                data = end.recv(65536)
                if not data:
                    return
                if not lost:
                    other[end].sendall(data)
