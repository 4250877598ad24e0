# SPDX-License-Identifier: Apache-2.0
"""Starts the services of a cloud side by side, waits until each is ready, stops them again.

Used by ``novalite up`` and, service by service, by the functional tests.
"""

import os
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from novalite.devcloud import processes
from novalite.devcloud.configuration import Sections, Service, render
from novalite.devcloud.errors import ProcessError, ServiceError
from novalite.devcloud.ready import ReadyListener

Progress = Callable[[str, float], None]

# What a service of ours must not inherit from the shell of its starter.
_DROPPED = ("PYTHONDONTWRITEBYTECODE", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Services:
    """The processes of one cloud.

    :param directory: keeps ``etc`` (configuration), ``run`` (pid files) and ``logs``
    """

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None):
        self.etc = directory / "etc"
        self.run = directory / "run"
        self.logs = directory / "logs"
        self._environment = environment_of_services(environment or {})
        self._processes: dict[str, processes.Process] = {}

    def write(self, common: Sections, services: Iterable[Service]) -> None:
        """Write novalite.conf and a file for each service, all of mode 0600."""
        processes.write_private(self.etc / "novalite.conf", render(common))
        for service in services:
            processes.write_private(self.etc / f"{service.name}.conf", render(service.own))

    def process(self, name: str) -> processes.Process:
        """Return the process called *name*, whether it was started or not."""
        if name not in self._processes:
            log = self.logs / f"{name}.log"
            self._processes[name] = processes.Process(name, self.run, log)
        return self._processes[name]

    def recorded(self) -> list[str]:
        """Return the names of all that was started and not stopped."""
        return processes.recorded(self.run)

    def command(self, program: str, *names: str) -> list[str]:
        """Return the command line of a program with novalite.conf and the files of *names*."""
        line = [find_program(program), "--config-file", str(self.etc / "novalite.conf")]
        for name in names:
            line += ["--config-file", str(self.etc / f"{name}.conf")]
        return line

    def start(
        self, services: Iterable[Service], timeout: float = 60.0, progress: Progress | None = None
    ) -> None:
        """Start all side by side and return when each is ready; those that run are left alone.

        What registers with a conductor is started when the conductors listen: a call to nobody
        would only be noticed by its time-out.

        :param progress: called with the name and the seconds it took, in the order of readiness
        :raises ServiceError: one ended, or was not ready in *timeout* seconds
        """
        began = time.monotonic()
        later = list(services)
        waiting: list[Service] = []
        with ReadyListener() as listener:
            while waiting or later:
                programs = {service.program for service in [*waiting, *later]}
                now = [service for service in later if service.after not in programs]
                later = [service for service in later if service not in now]
                waiting += self._launch(now, listener)
                listener.listen(0.02)
                for service in list(waiting):
                    if self._is_ready(service, listener):
                        waiting.remove(service)
                        if progress:
                            progress(service.name, time.monotonic() - began)
                    elif not self.process(service.name).alive():
                        raise ServiceError(str(self.process(service.name).died()))
                if waiting and time.monotonic() - began > timeout:
                    raise self._late(waiting[0], listener, timeout)

    def launch(self, services: Iterable[Service]) -> None:
        """Start those that do not run yet, without waiting for readiness.

        :raises ServiceError: a program cannot be executed
        """
        self._launch(services, None)

    def _launch(self, services: Iterable[Service], listener: ReadyListener | None) -> list[Service]:
        launched = []
        for service in services:
            process = self.process(service.name)
            if process.alive():
                continue
            environment = dict(self._environment)
            if service.binary and listener is not None:
                environment["NOTIFY_SOCKET"] = listener.address(service.name)
            try:
                process.start(self.command(service.program, service.name), environment)
            except ProcessError as error:
                raise ServiceError(str(error)) from None
            launched.append(service)
        return launched

    def run_once(self, name: str, program: str, *arguments: str) -> processes.Process:
        """Start a program that ends by itself, with novalite.conf; :meth:`finish` waits for it."""
        process = self.process(name)
        process.start([*self.command(program), *arguments], self._environment)
        return process

    def finish(self, process: processes.Process, timeout: float) -> None:
        """Wait for the end of what :meth:`run_once` started.

        :raises ServiceError: it failed or takes longer than *timeout* seconds
        """
        if not process.wait(timeout):
            process.stop(2.0)
            raise ServiceError(
                f"{process.name} does not end; the end of {process.log}:\n{process.tail()}"
            )
        if process.exit_code:
            raise ServiceError(str(process.died()))
        process.forget()

    def stop(self, names: Iterable[str], timeout: float = 15.0) -> list[str]:
        """Stop all of *names* at once; return those that had to be killed."""
        chosen = [self.process(name) for name in names]
        for process in chosen:
            process.terminate()
        end = time.monotonic() + timeout
        killed = []
        for process in chosen:
            if not process.join(max(0.0, end - time.monotonic())):
                killed.append(process.name)
        return killed

    def _is_ready(self, service: Service, listener: ReadyListener) -> bool:
        if service.binary and not listener.is_ready(service.name):
            return False
        return all(map(http_answers, service.http))

    def _late(self, service: Service, listener: ReadyListener, timeout: float) -> ServiceError:
        process = self.process(service.name)
        status = listener.status(service.name)
        return ServiceError(
            f"{service.name} is not ready after {timeout:.0f} s"
            f"{f' ({status})' if status else ''}; the end of {process.log}:\n{process.tail()}"
        )


def environment_of_services(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which services run: the caller's without what would mislead."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _DROPPED and not name.startswith("OS_")
    }
    # The neighbours are on this machine, whatever proxy the shell names for the world outside.
    kept["NO_PROXY"] = kept["no_proxy"] = "127.0.0.1,localhost"
    return {**kept, **extra}


def find_program(name: str) -> str:
    """Return the path of a console script: beside this interpreter, else from PATH.

    :raises ServiceError: it is not installed
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise ServiceError(f"{name} is not installed beside {sys.executable}")
    return found


def http_answers(url: str) -> bool:
    """Tell whether a server answers the URL, with any status below 500."""
    try:
        with _NO_PROXY.open(url, timeout=5.0):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return error.code < 500
    except OSError:
        return False
