# SPDX-License-Identifier: Apache-2.0
"""``novalite up`` and ``down``: the order in which a cloud comes to life and goes.

Called by ``cmd/cloud.py`` and ``cmd/demo.py``. Whatever fails on the way up, nothing that this
call started is left running.
"""

import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from novalite.devcloud import broker as broker_module
from novalite.devcloud import condition, configuration, processes, seed, services, state
from novalite.devcloud.client import Client, password_token
from novalite.devcloud.errors import CloudError

# What there may be more of from the start on; fields of Request and of the settings.
COUNTS = ("conductors", "schedulers", "api_workers")
# What, how, seconds: "rabbitmq", "127.0.0.1:25672", 3.4
Progress = Callable[[str, str, float], None]


@dataclass(frozen=True, slots=True)
class Status:
    """One line of ``novalite ps``; memory in kB, ``began`` in seconds since the epoch.

    ``health`` is empty for what is not a service of ours.
    """

    name: str
    pid: int | None
    where: str
    began: float
    memory: int
    health: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """What ``novalite up`` was asked for; None leaves it as it was, or at its default."""

    computes: int | None = None
    conductors: int | None = None
    schedulers: int | None = None
    api_workers: int | None = None
    transport_url: str | None = None
    database_url: str | None = None


class DevCloud:
    """The development cloud in one state directory."""

    def __init__(self, directory: Path):
        self.state = state.State(directory)
        self.directory = self.state.directory
        self.services = services.Services(self.directory)
        self.broker = broker_module.Broker(
            self.directory / "rabbitmq", log=self.directory / "logs" / "rabbitmq.log"
        )

    # -- up ---------------------------------------------------------------------------------

    def up(self, request: Request, progress: Progress) -> bool:
        """Bring up what does not run yet; return False if everything ran already.

        :raises DevCloudError: with the service's name and its last log lines
        """
        with self.state.lock():
            running = self.running()
            settings = self._settings(request, running)
            wanted = {service.name for service in self._all(settings)}
            if settings.transport_url is None:
                wanted |= {"rabbitmq", "epmd"}
            if wanted <= running:
                return False
            try:
                self._bring_up(settings, progress)
            except BaseException:
                self._stop(self._known() - running)
                raise
        return True

    def _settings(self, request: Request, running: set[str]) -> state.Settings:
        settings = self.state.load() or state.new_settings()
        for name in ("transport_url", "database_url"):
            url = getattr(request, name)
            if running and url is not None and url != getattr(settings, name):
                raise CloudError(
                    f"the cloud in {self.directory} runs with another {name}; "
                    "stop it first with: novalite down"
                )
            if not running:
                setattr(settings, name, url)
        self._count(request, settings, bool(running))
        if request.computes is not None:
            # Hosts are only added while the cloud runs; `down` first to have fewer.
            least = settings.computes if running else 0
            settings.computes = max(request.computes, least)
        if not running:
            settings.repick_ports()
            if settings.transport_url is None:
                self.broker.repick_ports()
        self.state.save(settings)
        return settings

    def _count(self, request: Request, settings: state.Settings, running: bool) -> None:
        """Take over how many of each are wanted; only before the start."""
        for name in COUNTS:
            count = getattr(request, name)
            if count is None or count == getattr(settings, name):
                continue
            if running:
                raise CloudError(
                    f"the cloud in {self.directory} runs with {name.replace('_', ' ')}: "
                    f"{getattr(settings, name)}; stop it first with: novalite down"
                )
            setattr(settings, name, count)

    def _bring_up(self, settings: state.Settings, progress: Progress) -> None:
        began = time.monotonic()
        self._start_broker(settings)
        self._write_files(settings)
        neighbors = self._neighbors(settings)
        # These two need no broker, and the broker's start leaves a processor idle.
        sync = self.services.run_once("db-sync", "novalite-manage", "db", "sync")
        self.services.start([neighbors], progress=_shown([neighbors], progress))
        self.services.finish(sync, timeout=120.0)
        progress("database", self._database(settings), time.monotonic() - began)
        self._wait_broker(settings)
        progress("rabbitmq", self._broker_place(settings), time.monotonic() - began)
        nova = self._nova(settings)
        self.services.start(nova, progress=_shown(nova, progress))
        self._seed(settings, nova, progress)

    def _start_broker(self, settings: state.Settings) -> None:
        if settings.transport_url is None:
            self.broker.launch()

    def _wait_broker(self, settings: state.Settings) -> None:
        if settings.transport_url is None:
            self.broker.wait_ready()
            return
        reason = broker_module.refusal(settings.transport_url)
        if reason is not None:
            raise CloudError(f"the broker of --transport-url does not let us in: {reason}")

    def _write_files(self, settings: state.Settings) -> None:
        common = configuration.common(
            settings.endpoints,
            transport_url=settings.transport_url or self.broker.url(),
            database_url=self._database_url(settings),
            state_path=str(self.directory),
            service_password=settings.service_password,
        )
        self.services.write(common, self._all(settings))
        admin = ("admin", "admin", settings.admin_password)
        demo = ("demo", "demo", settings.demo_password)
        clouds = configuration.clouds_yaml(
            settings.endpoints, {"novalite": admin, "novalite-demo": demo}
        )
        processes.write_private(self.clouds_file, clouds)
        processes.write_private(
            self.directory / "openrc",
            configuration.openrc(settings.endpoints, settings.admin_password),
        )

    def _seed(
        self, settings: state.Settings, nova: list[configuration.Service], progress: Progress
    ) -> None:
        began = time.monotonic()
        compute = self.client(settings)
        expected = [(service.binary, service.host) for service in nova if service.binary]
        missing = seed.wait_services_up(compute, expected, timeout=15.0)
        if missing:
            names = ", ".join(f"{binary} on {host}" for binary, host in missing)
            raise CloudError(f"the API does not show as up: {names}; see novalite logs")
        created = seed.create_flavors(compute)
        if created:
            progress("flavors", ", ".join(created), time.monotonic() - began)

    # -- reload, down, ps -------------------------------------------------------------------

    def down(self) -> list[str]:
        """Stop everything; return the names of what ran. The data stay."""
        if not self.directory.exists():
            return []
        with self.state.lock():
            names = self.running()
            self._stop(self._known())
        return sorted(names)

    def reload(self, name: str | None = None) -> list[str]:
        """Let running services, or one of them, read their options again; return who was told.

        :raises CloudError: it does not run
        """
        running = sorted(self.running() - {"rabbitmq", "epmd"})
        chosen = [each for each in running if name in (None, each)]
        if not chosen:
            if not running:
                raise CloudError(f"nothing runs in {self.directory}")
            raise CloudError(f"{name} does not run; there are: {', '.join(running)}")
        return [each for each in chosen if self.services.process(each).send_signal(signal.SIGHUP)]

    def _stop(self, names: Iterable[str]) -> None:
        """Stop in stages, so that what is asked by others goes after them."""
        ours = set(names) - {"rabbitmq", "epmd"}
        last = ours & {"conductor", "neighbors"}
        self.services.stop(ours - last)
        self.services.stop(last)
        if {"rabbitmq", "epmd"} & set(names):
            self.broker.stop()

    def running(self) -> set[str]:
        """Return the names of all processes of this cloud that run."""
        found = {name for name in self.services.recorded() if self.services.process(name).alive()}
        return found | {process.name for process in self.broker.processes if process.alive()}

    def _known(self) -> set[str]:
        """Return the names of all processes that were started, dead ones too."""
        broker = {process.name for process in self.broker.processes if process.identity}
        return set(self.services.recorded()) | broker

    def statuses(self) -> list[Status]:
        """Return what runs and what should run but has died, in the order of their start."""
        settings = self.state.load()
        if settings is None:
            return []
        places = self._places(settings)
        names = [name for name in places if name in self.services.recorded()]
        chosen = [process for process in self.broker.processes if process.identity]
        chosen += [self.services.process(name) for name in names]
        ours = {service.name: service for service in self._all(settings)}
        return [
            _status(
                process,
                places.get(process.name, ""),
                condition.of(ours[process.name], self.directory) if process.name in ours else "",
            )
            for process in chosen
        ]

    def logs(self) -> list[Path]:
        """Return all log files there are."""
        return sorted((self.directory / "logs").glob("*.log"))

    # -- what the cloud consists of ---------------------------------------------------------

    @property
    def clouds_file(self) -> Path:
        """clouds.yaml."""
        return self.directory / "clouds.yaml"

    def client(self, settings: state.Settings | None = None) -> Client:
        """Return a client of the Compute API with the administrator's token."""
        settings = settings or self.state.load()
        if settings is None:
            raise CloudError(f"there is no cloud in {self.directory}")
        token = password_token(
            settings.endpoints.auth_url, "admin", settings.admin_password, "admin"
        )
        return Client(settings.endpoints.compute_url, {"X-Auth-Token": token})

    def hosts(self) -> dict[str, str]:
        """Return the host of each service: compute1 runs on compute1."""
        settings = self.state.load()
        return {service.name: service.host for service in self._all(settings)} if settings else {}

    def _neighbors(self, settings: state.Settings) -> configuration.Service:
        return configuration.neighbors(
            settings.endpoints,
            state_path=str(self.directory),
            passwords={
                "admin": settings.admin_password,
                "demo": settings.demo_password,
                "service": settings.service_password,
            },
        )

    def _nova(self, settings: state.Settings) -> list[configuration.Service]:
        return configuration.services(
            settings.endpoints,
            state_path=str(self.directory),
            computes=settings.computes,
            conductors=settings.conductors,
            schedulers=settings.schedulers,
            api_workers=settings.api_workers,
        )

    def _all(self, settings: state.Settings) -> list[configuration.Service]:
        return [self._neighbors(settings), *self._nova(settings)]

    def _database_url(self, settings: state.Settings) -> str:
        return settings.database_url or f"sqlite:///{self.directory}/novalite.db"

    def _database(self, settings: state.Settings) -> str:
        return "as given" if settings.database_url else str(self.directory / "novalite.db")

    def _broker_place(self, settings: state.Settings) -> str:
        return "as given" if settings.transport_url else f"127.0.0.1:{self.broker.port}"

    def _places(self, settings: state.Settings) -> dict[str, str]:
        """Where each process is reached: an address, or the host's name on the bus."""
        places = {"rabbitmq": "", "epmd": "127.0.0.1"}
        if settings.transport_url is None:
            places["rabbitmq"] = f"127.0.0.1:{self.broker.port}"
        for service in self._all(settings):
            places[service.name] = service.http[0] if service.http else f"host {service.host}"
        return places


def _shown(chosen: list[configuration.Service], progress: Progress) -> services.Progress:
    """Turn the services' progress (name, seconds) into the cloud's."""
    where = {
        service.name: service.http[0] if service.http else f"host {service.host}"
        for service in chosen
    }
    return lambda name, seconds: progress(name, where[name], seconds)


def _status(process: processes.Process, where: str, health: str) -> Status:
    identity = process.identity
    pid = process.pid
    return Status(
        name=process.name,
        pid=pid,
        where=where,
        began=identity.began if identity else 0.0,
        memory=processes.memory_kb(pid) if pid else 0,
        health=health if pid else "",
    )
