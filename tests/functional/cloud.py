# SPDX-License-Identifier: Apache-2.0
"""A real cloud for one test: the real programs as processes, a real broker, a database of its own.

``kill``, ``pause`` and ``restart`` are ordinary verbs here. Readiness is what services themselves
report, never a sleep. The code that starts processes and the broker is that of ``novalite up``.
"""

import configparser
import dataclasses
import os
import re
import secrets
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from novalite.devcloud import configuration, ports, services
from novalite.devcloud.broker import Broker
from novalite.devcloud.client import Client, password_token
from novalite.devcloud.configuration import Sections, Service
from tests.functional import api as api_module
from tests.functional import books as books_module
from tests.functional.waiting import eventually

FAST = Path(__file__).with_name("fast.conf")
PASSWORDS = {name: f"{name}-password" for name in ("admin", "demo", "service")}
_REREAD = re.compile(r"has read its options again|keeps its former options")


def sections_of(file: Path) -> Sections:
    """Return an option file as sections."""
    parser = configparser.RawConfigParser(default_section="")
    parser.read(file)
    return {name: dict(parser[name]) for name in parser.sections()}


class Cloud:
    """Services under one temporary directory, stopped and swept at the end of ``with``.

    :param broker: a running broker that can make vhosts, or None with *transport_url*
    :param template: SQLite file with all tables, copied instead of running the migrations
    :param auth: ``noauth2`` (no neighbours needed) or ``keystone``
    :param config: options for all services, over fast.conf
    :param own: service: options for it alone
    """

    def __init__(
        self,
        directory: Path,
        *,
        broker: Broker | None = None,
        transport_url: str | None = None,
        database_url: str | None = None,
        template: Path | None = None,
        computes: int = 1,
        conductors: int = 1,
        schedulers: int = 1,
        api_workers: int = 1,
        auth: str = "noauth2",
        api: bool = True,
        neighbors: bool | None = None,
        config: Mapping[str, Mapping[str, object]] | None = None,
        own: Mapping[str, Mapping[str, Mapping[str, object]]] | None = None,
    ):
        self.directory = directory
        self.broker = broker
        self.services = services.Services(directory)
        self._transport_url = transport_url
        self._database_url = database_url
        self._template = template
        self._vhost = f"test-{secrets.token_hex(6)}"
        self._engine: sa.Engine | None = None
        self._auth = auth
        self._found_image: str | None = None
        numbers = ports.free(5)
        self.endpoints = configuration.Endpoints(*numbers)
        made = configuration.services(
            self.endpoints,
            state_path=str(directory),
            computes=computes,
            conductors=conductors,
            schedulers=schedulers,
            api_workers=api_workers,
        )
        if not api:
            made = [service for service in made if service.name != "api"]
        if auth == "keystone" if neighbors is None else neighbors:
            made.insert(0, self._neighbors())
        self._services: dict[str, Service] = {service.name: service for service in made}
        self._config = configuration.merge(sections_of(FAST), config or {})
        self._own: dict[str, Sections] = {
            name: configuration.merge(service.own, (own or {}).get(name, {}))
            for name, service in self._services.items()
        }

    # -- life -------------------------------------------------------------------------------

    def __enter__(self) -> "Cloud":
        if self._transport_url is None:
            assert self.broker is not None
            if not self.broker.alive():
                self.broker.start()
            self._transport_url = self.broker.add_vhost(self._vhost)
        self._make_database()
        self.write()
        try:
            self.start()
            if "api" in self._services:
                self.api.post("/flavors", {"flavor": api_module.FLAVOR})
        except BaseException:
            self.print_logs()
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.print_logs()
        self.close()

    def close(self) -> None:
        """Kill everything; the data go with the temporary directory."""
        for name in self.services.recorded():
            self.services.process(name).kill()
        if self._engine is not None:
            self._engine.dispose()
        if self._database_url is not None:
            self._server_database("DROP")
        if self.broker is not None and self.broker.alive():
            if self._vhost in self.broker.settings.vhosts:
                self.broker.remove_vhost(self._vhost)

    def write(self) -> None:
        """Write all option files."""
        common = configuration.merge(
            configuration.common(
                self.endpoints,
                transport_url=str(self._transport_url),
                database_url=self.database_url,
                state_path=str(self.directory),
                service_password=PASSWORDS["service"] if "neighbors" in self._services else None,
            ),
            {"api": {"auth_strategy": self._auth}},
            self._config,
        )
        written = [
            Service(name=service.name, program=service.program, own=self._own[service.name])
            for service in self._services.values()
        ]
        self.services.write(common, written)

    def configure(self, sections: Mapping[str, Mapping[str, object]], *names: str) -> None:
        """Change options in the files of *names*, or in the common one; nobody reads them yet."""
        if not names:
            self._config = configuration.merge(self._config, sections)
        for name in names:
            self._own[name] = configuration.merge(self._own[name], sections)
        self.write()

    # -- verbs ------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """All services."""
        return list(self._services)

    def add_api(self) -> str:
        """Start one more novalite-api on a port of its own, and return its URL."""
        [port] = ports.free(1)
        name = f"api-{port}"
        first = self._services["api"]
        self._services[name] = dataclasses.replace(
            first, name=name, host=name, http=(f"http://127.0.0.1:{port}/",)
        )
        self._own[name] = configuration.merge(
            self._own["api"], {"DEFAULT": {"host": name, "osapi_compute_listen_port": port}}
        )
        self.write()
        self.start(name)
        return self.endpoints.compute_url.replace(f":{self.endpoints.api}/", f":{port}/")

    def start(self, *names: str) -> None:
        """Start services, or all, and wait until each is ready."""
        chosen = [self._services[name] for name in names or self._services]
        self.services.start(chosen, timeout=120.0)

    def launch(self, *names: str) -> None:
        """Start services without waiting, where what they need is away."""
        self.services.launch([self._services[name] for name in names])

    def stop(self, *names: str) -> None:
        """Stop services with SIGTERM and wait for their end."""
        killed = self.services.stop(names, timeout=15.0)
        assert not killed, f"did not end on SIGTERM: {killed}"

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Kill a service and wait for its end."""
        self.services.process(name).kill(number)

    def restart(self, *names: str) -> None:
        """Stop and start services."""
        self.stop(*names)
        self.start(*names)

    def pause(self, name: str) -> None:
        """Stop a process in its tracks; it neither works nor ends."""
        assert self.services.process(name).send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let a paused process go on."""
        assert self.services.process(name).send_signal(signal.SIGCONT)

    def reload(self, *names: str) -> None:
        """Send SIGHUP and wait until each has read its options."""
        before = {name: len(_REREAD.findall(self.log(name))) for name in names}
        for name in names:
            assert self.services.process(name).send_signal(signal.SIGHUP)
        for name, count in before.items():
            eventually(
                lambda name=name, count=count: len(_REREAD.findall(self.log(name))) > count,  # type: ignore[misc]
                what=f"{name} has read its options",
            )

    def alive(self, name: str) -> bool:
        """Tell whether the service's process runs."""
        return self.services.process(name).alive()

    def wait_dead(self, name: str, timeout: float = 20.0) -> None:
        """Wait until the process has ended by itself, at a crash point for example."""
        assert self.services.process(name).wait(timeout), f"{name} still runs"

    # -- looking ----------------------------------------------------------------------------

    def log(self, name: str) -> str:
        """Return the service's whole log."""
        file = self.services.logs / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def grep(self, name: str, pattern: str) -> list[str]:
        """Return the lines of a log that match."""
        return [line for line in self.log(name).splitlines() if re.search(pattern, line)]

    def wait_log(self, name: str, pattern: str, timeout: float = 20.0) -> str:
        """Wait for a line in a log and return it."""
        found = eventually(lambda: self.grep(name, pattern), timeout, f"{name} logs {pattern!r}")
        return found[-1]

    def print_logs(self, lines: int = 40) -> None:
        """Print the end of every log; pytest shows it when the test fails."""
        for file in sorted(self.services.logs.glob("*.log")):
            print(f"\n===== the end of {file}")
            print(self.services.process(file.stem).tail(lines))
        if self.broker is not None and not self.broker.alive():
            print(f"\n===== the end of {self.broker.node.log}\n{self.broker.node.tail(lines)}")

    @property
    def api(self) -> api_module.Api:
        """A client with the administrator's token."""
        return self.client()

    def client(self, user: str = "admin", project: str = "admin") -> api_module.Api:
        """Return a client for a user; keystone knows ``admin`` and ``demo``."""
        token = f"{user}:{project}"
        if self._auth == "keystone":
            token = password_token(self.endpoints.auth_url, user, PASSWORDS[user], project)
        return api_module.Api(self.endpoints.compute_url, token, image=self._image())

    def _image(self) -> str:
        """Return the image that servers are booted from; without neighbours any UUID is one."""
        if "neighbors" not in self._services:
            return api_module.IMAGE
        if self._found_image is None:
            token = password_token(self.endpoints.auth_url, "admin", PASSWORDS["admin"], "admin")
            glance = Client(self.endpoints.image_url, {"X-Auth-Token": token})
            self._found_image = str(glance.get("/v2/images?name=cirros")["images"][0]["id"])
        return self._found_image

    def rows(self, query: str, **values: Any) -> list[dict[str, Any]]:
        """Run a query on the cloud's database."""
        if self._engine is None:
            self._engine = sa.create_engine(self.database_url, poolclass=sa.NullPool)
        with self._engine.connect() as connection:
            found = connection.execute(sa.text(query), values)
            return [dict(row) for row in found.mappings()]

    def store(self, host: str) -> Path:
        """Return the file in which a compute's fake hypervisor keeps its guests."""
        return self.directory / host / f"fake_libvirt-{host}.db"

    def books(self) -> books_module.Books:
        """Compare servers, allocations, nodes and guests."""
        hosts = [service.host for service in self._services.values() if "compute" in service.name]
        return books_module.read(self.rows, {host: self.store(host) for host in hosts})

    def assert_books(self, timeout: float = 10.0) -> books_module.Books:
        """Wait until all books agree, and return them."""

        def agree() -> books_module.Books:
            books = self.books()
            assert not books.problems, "\n".join(books.problems)
            return books

        return eventually(agree, timeout)

    # -- database ---------------------------------------------------------------------------

    @property
    def transport_url(self) -> str:
        """URL of this cloud's own vhost."""
        return str(self._transport_url)

    def trace(self, on: bool) -> None:
        """Let the broker copy every message of this cloud to amq.rabbitmq.trace, or not."""
        assert self.broker is not None
        self.broker.trace(self._vhost, on)

    @property
    def database_url(self) -> str:
        """URL of this cloud's own database."""
        if self._database_url is None:
            return f"sqlite:///{self.directory}/novalite.db"
        url = sa.make_url(self._database_url)
        name = self._vhost.replace("-", "_")
        return url.set(database=name).render_as_string(hide_password=False)

    def _make_database(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._database_url is not None:
            self._server_database("CREATE")
        elif self._template is not None:
            shutil.copy(self._template, self.directory / "novalite.db")
            return
        self.write()
        sync = self.services.run_once("db-sync", "novalite-manage", "db", "sync")
        self.services.finish(sync, timeout=120.0)

    def _server_database(self, verb: str) -> None:
        engine = sa.create_engine(str(self._database_url), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text(f"{verb} DATABASE {self._vhost.replace('-', '_')}"))
        engine.dispose()

    def _neighbors(self) -> Service:
        return configuration.neighbors(
            self.endpoints,
            state_path=str(self.directory),
            passwords=PASSWORDS,
        )


def make_template(directory: Path) -> Path:
    """Return a SQLite file with all tables, made by the real command."""
    template = directory / "template.db"
    maker = services.Services(directory)
    maker.write({"database": {"connection": f"sqlite:///{template}"}}, [])
    maker.finish(maker.run_once("db-sync", "novalite-manage", "db", "sync"), timeout=120.0)
    # Whatever is still in the write-ahead log must be in the file that gets copied.
    engine = sa.create_engine(f"sqlite:///{template}")
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return template


def transport_url_from_environment() -> str | None:
    """Return the broker that the tests are to use instead of a private one."""
    return os.environ.get("NOVALITE_TEST_TRANSPORT_URL") or None


def database_url_from_environment() -> str | None:
    """Return the database server that the tests are to use instead of SQLite."""
    return os.environ.get("NOVALITE_TEST_DATABASE_URL") or None
