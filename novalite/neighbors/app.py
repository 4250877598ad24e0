# SPDX-License-Identifier: Apache-2.0
"""The four stand-ins as WSGI applications, and the server that runs them in one process.

novalite-neighbors starts :class:`Server`; tests take single applications from the ``make_*``
functions. The server listens before anything else, so that a taken port is said at once.
"""

import logging
import socket
import threading
from pathlib import Path
from typing import Any

from oslo_config import cfg

from novalite import concurrency, health, periodic
from novalite.conf.files import ConfigError
from novalite.neighbors import http, seed
from novalite.neighbors.endpoints import Endpoints
from novalite.neighbors.identity import app as identity
from novalite.neighbors.identity.tokens import Tokens
from novalite.neighbors.image import app as image
from novalite.neighbors.network import app as network
from novalite.neighbors.store import Store
from novalite.neighbors.volume import app as volume

LOG = logging.getLogger("novalite.neighbors")

SERVICES = ("identity", "image", "network", "volume")
# Most requests that one of the services handles at one time.
THREADS = 64


def check_conf(conf: cfg.ConfigOpts) -> None:
    """Refuse options without which nothing can be served.

    :raises ConfigError: naming section and option
    """
    if not conf.neighbors.admin_password:
        raise ConfigError("[neighbors] admin_password must be set: the user admin needs a password")


def open_store(conf: cfg.ConfigOpts) -> Store:
    """Open the neighbours' file, made and filled if it is new.

    :raises ConfigError: the file cannot be opened
    """
    check_conf(conf)
    options = conf.neighbors
    path = options.database or Path(conf.state_path) / "neighbors.db"
    try:
        store = Store(path)
    except Exception as error:
        raise ConfigError(f"[neighbors] database = {path} cannot be opened: {error}") from error
    seed.seed(
        store,
        {
            "admin": options.admin_password,
            "demo": options.demo_password or options.admin_password,
            "nova": options.service_password,
        },
    )
    return store


def configured_endpoints(conf: cfg.ConfigOpts) -> Endpoints:
    """Return where the services are when they listen on the configured ports."""
    return _endpoints(conf, {name: conf.neighbors[f"{name}_port"] for name in SERVICES})


def _endpoints(conf: cfg.ConfigOpts, ports: dict[str, int]) -> Endpoints:
    host = conf.neighbors.listen
    if host in ("0.0.0.0", "::"):
        host = conf.my_ip
    if ":" in host:
        host = f"[{host}]"
    urls = {name: f"http://{host}:{port}" for name, port in ports.items()}
    return Endpoints(
        region=conf.neighbors.region,
        compute=conf.neighbors.compute_endpoint.rstrip("/"),
        **urls,
    )


def make_identity(
    conf: cfg.ConfigOpts, store: Store, endpoints: Endpoints | None = None
) -> http.App:
    """Return identity v3."""
    return identity.make_app(store, _tokens(conf, store), endpoints or configured_endpoints(conf))


def make_image(conf: cfg.ConfigOpts, store: Store, endpoints: Endpoints | None = None) -> http.App:
    """Return image v2."""
    return image.make_app(store, _tokens(conf, store), endpoints or configured_endpoints(conf))


def make_network(
    conf: cfg.ConfigOpts, store: Store, endpoints: Endpoints | None = None
) -> http.App:
    """Return network v2.0."""
    return network.make_app(store, _tokens(conf, store), endpoints or configured_endpoints(conf))


def make_volume(conf: cfg.ConfigOpts, store: Store, endpoints: Endpoints | None = None) -> http.App:
    """Return block storage v3."""
    return volume.make_app(
        store,
        _tokens(conf, store),
        endpoints or configured_endpoints(conf),
        conf.neighbors.volume_create_time,
    )


def _tokens(conf: cfg.ConfigOpts, store: Store) -> Tokens:
    return Tokens(store, conf.neighbors.token_expiration)


_MAKERS = {
    "identity": make_identity,
    "image": make_image,
    "network": make_network,
    "volume": make_volume,
}


class Server:
    """Listens on four ports and serves until it is stopped."""

    def __init__(self, conf: cfg.ConfigOpts):
        """Listen, open the store, prepare the applications.

        :raises ConfigError: a port is taken, or the file cannot be opened
        """
        check_conf(conf)
        listeners = {name: _listen(conf, name) for name in SERVICES}
        ports = {name: listener.getsockname()[1] for name, listener in listeners.items()}
        self.endpoints = _endpoints(conf, ports)
        self._store = open_store(conf)
        self._servers = {
            name: concurrency.wsgi_server(
                listener, _MAKERS[name](conf, self._store, self.endpoints), threads=THREADS
            )
            for name, listener in listeners.items()
        }
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Serve, each service in a thread of its own."""
        for name, server in self._servers.items():
            self._threads.append(concurrency.spawn(server.serve, name=f"neighbors-{name}"))
            LOG.info("Serving %s on %s", name, getattr(self.endpoints, name))

    def stop(self, timeout: float) -> None:
        """Stop listening and give running requests *timeout* seconds."""
        for server in self._servers.values():
            concurrency.spawn(server.stop)
        for thread in self._threads:
            thread.join(timeout)
        self._store.close()


def _listen(conf: cfg.ConfigOpts, name: str) -> socket.socket:
    host, port = conf.neighbors.listen, conf.neighbors[f"{name}_port"]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Inherited by the connections. Without it an answer that leaves in two writes waits 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"[neighbors] {name}_port = {port} (on {host}) cannot be listened on: {error.strerror}"
        ) from error
    listener.listen(256)
    return listener


class NeighborsManager:
    """What novalite-neighbors runs: the server, under the common life of a service."""

    def __init__(self, conf: cfg.ConfigOpts):
        """Prepare the server.

        :raises ConfigError: see :class:`Server`
        """
        self._server = Server(conf)

    def init_host(self) -> None:
        """Start to serve."""
        self._server.start()

    def endpoints(self) -> list[tuple[str, list[Any]]]:
        """Return nothing: the neighbours are not on the bus."""
        return []

    def periodic_tasks(self) -> list[periodic.Periodic]:
        """Return nothing: there are none."""
        return []

    def reload(self) -> None:
        """Keep everything: no option of the neighbours can change while they run."""

    def health_checks(self) -> list[health.Check]:
        """None: all that is needed is in this process."""
        return []

    def drain(self, timeout: float) -> None:
        """Stop listening and let running requests end."""
        self._server.stop(timeout)

    def stop(self) -> None:
        """Do nothing more: the threads have ended with the sockets."""
