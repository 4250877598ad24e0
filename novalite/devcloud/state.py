# SPDX-License-Identifier: Apache-2.0
"""What a development cloud remembers between two commands: ports, passwords, URLs, its size."""

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from novalite.devcloud import ports, processes
from novalite.devcloud.configuration import Endpoints
from novalite.devcloud.errors import CloudError


def default_directory() -> Path:
    """Return ~/.local/share/novalite, or its place under XDG_DATA_HOME."""
    data = os.environ.get("XDG_DATA_HOME")
    base = Path(data) if data and os.path.isabs(data) else Path.home() / ".local" / "share"
    return base / "novalite"


@dataclass(slots=True)
class Settings:
    """``transport_url`` and ``database_url`` are None when the cloud brings its own."""

    api_port: int
    identity_port: int
    image_port: int
    network_port: int
    admin_password: str = field(repr=False)
    demo_password: str = field(repr=False)
    service_password: str = field(repr=False)
    # A cloud that was made without one gets its port when it is started.
    volume_port: int = 0
    computes: int = 1
    conductors: int = 1
    schedulers: int = 1
    api_workers: int = 1
    transport_url: str | None = field(default=None, repr=False)
    database_url: str | None = field(default=None, repr=False)

    @property
    def endpoints(self) -> Endpoints:
        """The ports as URLs."""
        return Endpoints(
            api=self.api_port,
            identity=self.identity_port,
            image=self.image_port,
            network=self.network_port,
            volume=self.volume_port,
        )

    def repick_ports(self) -> None:
        """Choose new ports if one is taken by somebody else; only while nothing of ours runs."""
        names = ("api_port", "identity_port", "image_port", "network_port", "volume_port")
        if not all(port and ports.is_free(port) for port in (getattr(self, n) for n in names)):
            for name, port in zip(names, ports.free(len(names)), strict=True):
                setattr(self, name, port)


def new_settings() -> Settings:
    """Return settings with free ports and random passwords."""
    api, identity, image, network, volume = ports.free(5)
    return Settings(
        api_port=api,
        identity_port=identity,
        image_port=image,
        network_port=network,
        volume_port=volume,
        admin_password=secrets.token_urlsafe(18),
        demo_password=secrets.token_urlsafe(18),
        service_password=secrets.token_urlsafe(18),
    )


class State:
    """The state directory (mode 0700) with its settings file (mode 0600)."""

    def __init__(self, directory: Path):
        self.directory = directory.expanduser().absolute()
        self._file = self.directory / "cloud.json"

    def load(self) -> Settings | None:
        """Return what was saved; None if no cloud was ever made here."""
        try:
            return Settings(**json.loads(self._file.read_text()))
        except FileNotFoundError:
            return None

    def save(self, settings: Settings) -> None:
        """Keep the settings."""
        processes.write_private(self._file, json.dumps(asdict(settings), indent=1))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the directory, which is made if needed: one ``up`` or ``down`` at a time.

        :raises CloudError: it can be neither used nor made
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.directory.chmod(0o700)
        except OSError as error:
            raise CloudError(
                f"the state directory {self.directory} cannot be made: {error.strerror}"
            ) from error
        descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
