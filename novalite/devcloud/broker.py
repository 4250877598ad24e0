# SPDX-License-Identifier: Apache-2.0
"""A private RabbitMQ node: own epmd, cookie, ports, data and account, all on 127.0.0.1.

``novalite up`` and the functional tests start one. It never touches a broker of the system, needs
no root and leaves neither a process nor a port behind. The server program of the package is run
directly: the wrapper in /usr/sbin changes the user or refuses.
"""

import base64
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from novalite.devcloud import ports, processes
from novalite.devcloud.errors import BrokerError, ProcessError

INSTALL = "sudo apt-get install --no-install-recommends rabbitmq-server"
PROGRAMS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "/usr/local/lib/rabbitmq/bin/rabbitmq-server")
NODE = "novalite@localhost"
USER = "novalite"
VHOST = "novalite"
START_TIMEOUT = 60.0

# A broker for one developer: idle schedulers sleep instead of spinning.
_ERLANG = "+S 2:2 +SDcpu 1:1 +SDio 1 +A 1 +sbwt none +sbwtdcpu none +sbwtdio none"

_CONFIG = """\
[
 {{rabbit, [
   {{tcp_listeners, [{{"127.0.0.1", {amqp}}}]}},
   {{num_tcp_acceptors, 2}},
   {{load_definitions, "{definitions}"}},
   {{log, [{{console, [{{enabled, true}}, {{level, warning}}]}}, {{file, [{{file, false}}]}}]}}
 ]}},
 {{kernel, [{{inet_dist_use_interface, {{127, 0, 0, 1}}}}]}}
].
"""


@dataclass(slots=True)
class _Settings:
    """What has to be the same at every start."""

    amqp: int
    distribution: int
    epmd: int
    password: str
    cookie: str
    vhosts: list[str] = field(default_factory=list)


class Broker:
    """One RabbitMQ node whose files are all in *directory*.

    :param vhosts: made at the first start
    :param log: file for what the node says
    """

    def __init__(
        self, directory: Path, vhosts: Iterable[str] = (VHOST,), log: Path | None = None
    ) -> None:
        self.directory = directory
        run = directory / "run"
        log = log or directory / "rabbitmq.log"
        self.epmd = processes.Process("epmd", run, log.with_name("epmd.log"))
        self.node = processes.Process("rabbitmq", run, log)
        self._vhosts = list(vhosts)
        self._settings: _Settings | None = None

    @property
    def settings(self) -> _Settings:
        """Ports and secrets, made once and kept in a file of mode 0600."""
        if self._settings is None:
            file = self.directory / "broker.json"
            if file.exists():
                self._settings = _Settings(**json.loads(file.read_text()))
            else:
                self._settings = self._new_settings()
                self._save()
        return self._settings

    @property
    def port(self) -> int:
        """The AMQP port."""
        return self.settings.amqp

    @property
    def processes(self) -> list[processes.Process]:
        """The processes in the order of their start."""
        return [self.epmd, self.node]

    def url(self, vhost: str = VHOST) -> str:
        """Return the transport_url of a vhost; it holds the password."""
        return f"rabbit://{USER}:{self.settings.password}@127.0.0.1:{self.port}/{vhost}"

    def alive(self) -> bool:
        """Tell whether the node's process runs."""
        return self.node.alive()

    def start(self) -> None:
        """Start the node and wait until it takes connections.

        :raises BrokerError: the server is not installed, or it ended; with its last lines
        """
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the node without waiting for it; does nothing if it runs.

        :raises BrokerError: the server is not installed, or a port is taken
        """
        program = server_program()
        if self.alive():
            return
        # A node that died by itself has left its epmd, which holds one of the ports.
        self.epmd.stop(5.0)
        self._check_ports()
        self._write_files()
        environment = self._environment()
        epmd = shutil.which("epmd", path=environment["PATH"]) or "epmd"
        try:
            self.epmd.start(
                [epmd, "-port", str(self.settings.epmd), "-address", "127.0.0.1"], environment
            )
            self.node.start([program], environment)
        except ProcessError as error:
            self.stop()
            raise BrokerError(str(error)) from None

    def wait_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until the last vhost takes an AMQP connection.

        :raises BrokerError: the node ended or does not answer within *timeout* seconds
        """
        end = time.monotonic() + timeout
        last = self.url(self.settings.vhosts[-1])
        while not (ports.answers(self.port) and refusal(last) is None):
            if not self.node.alive():
                raise BrokerError(str(self.node.died()))
            if time.monotonic() > end:
                raise BrokerError(
                    f"rabbitmq does not answer after {timeout:.0f} s; the end of "
                    f"{self.node.log}:\n{self.node.tail()}"
                )
            time.sleep(0.03)

    def stop(self, timeout: float = 20.0) -> None:
        """Stop node and epmd; the data stay, so that :meth:`start` continues with them."""
        self.node.stop(timeout)
        self.epmd.stop(5.0)

    def kill(self) -> None:
        """Kill node and epmd at once."""
        self.node.kill()
        self.epmd.stop(5.0)

    def add_vhosts(self, names: Iterable[str]) -> None:
        """Make vhosts on the running node; about 30 ms each.

        :raises BrokerError: the node does not do it
        """
        wanted = [name for name in names if name not in self.settings.vhosts]
        for name in wanted:
            _check_name(name)
            self._eval(
                f'rabbit_vhost:add(<<"{name}">>, <<"{USER}">>), rabbit_auth_backend_internal:'
                f'set_permissions(<<"{USER}">>, <<"{name}">>, <<".*">>, <<".*">>, <<".*">>, '
                f'<<"{USER}">>).'
            )
        self.settings.vhosts.extend(wanted)
        self._save()

    def add_vhost(self, name: str) -> str:
        """Make one vhost on the running node and return its transport_url."""
        self.add_vhosts([name])
        return self.url(name)

    def remove_vhost(self, name: str) -> None:
        """Remove a vhost with its queues, and close its connections."""
        self._eval(f'rabbit_vhost:delete(<<"{name}">>, <<"{USER}">>).')
        self.settings.vhosts.remove(name)
        self._save()

    def trace(self, vhost: str, on: bool) -> None:
        """Let the node copy every message of *vhost* to its exchange amq.rabbitmq.trace, or not."""
        self._eval(f'rabbit_trace:{"start" if on else "stop"}(<<"{vhost}">>).')

    def repick_ports(self) -> None:
        """Choose new ports if one of the old ones is taken by somebody else meanwhile."""
        settings = self.settings
        if not all(map(ports.is_free, (settings.amqp, settings.distribution, settings.epmd))):
            settings.amqp, settings.distribution, settings.epmd = ports.free(3)
            self._save()

    def _eval(self, expression: str) -> None:
        command = ["erl_call", "-sname", NODE, "-e"]
        done = subprocess.run(
            command,
            input=f"{expression}\n".encode(),
            env=self._environment(),
            capture_output=True,
            timeout=60,
        )
        answer = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode or "ok" not in answer:
            raise BrokerError(f"rabbitmq refused: {answer.strip()}")

    def _new_settings(self) -> _Settings:
        amqp, distribution, epmd = ports.free(3)
        for name in self._vhosts:
            _check_name(name)
        return _Settings(
            amqp=amqp,
            distribution=distribution,
            epmd=epmd,
            password=secrets.token_urlsafe(18),
            cookie=secrets.token_hex(16).upper(),
            vhosts=self._vhosts,
        )

    def _save(self) -> None:
        text = json.dumps(asdict(self.settings), indent=1)
        processes.write_private(self.directory / "broker.json", text)

    def _check_ports(self) -> None:
        for port in (self.settings.amqp, self.settings.distribution, self.settings.epmd):
            if not ports.is_free(port):
                raise BrokerError(f"rabbitmq: port {port} on 127.0.0.1 is taken by another program")

    def _write_files(self) -> None:
        directory = self.directory
        definitions = directory / "definitions.json"
        text = _CONFIG.format(amqp=self.port, definitions=definitions)
        processes.write_private(directory / "advanced.config", text)
        processes.write_private(definitions, json.dumps(self._definitions()))
        processes.write_private(directory / "enabled_plugins", "[].\n")
        processes.write_private(directory / "home" / ".erlang.cookie", self.settings.cookie)

    def _definitions(self) -> dict[str, object]:
        """The account and the vhosts; loading them at boot saves a call of rabbitmqctl for each."""
        salt = os.urandom(4)
        digest = hashlib.sha256(salt + self.settings.password.encode()).digest()
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        return {
            "users": [
                {
                    "name": USER,
                    "password_hash": base64.b64encode(salt + digest).decode(),
                    "hashing_algorithm": "rabbit_password_hashing_sha256",
                    "tags": "administrator",
                }
            ],
            "vhosts": [{"name": name} for name in self.settings.vhosts],
            "permissions": [
                {"user": USER, "vhost": name, **everything} for name in self.settings.vhosts
            ],
        }

    def _environment(self) -> dict[str, str]:
        """An environment made from nothing, so that settings of a system broker do not leak in."""
        directory = self.directory
        path = os.environ.get("PATH", "") + ":/usr/local/bin:/usr/bin:/bin"
        return {
            "PATH": path,
            "HOME": str(directory / "home"),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(self.settings.epmd),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "advanced.config"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(directory / "generated"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
            "RABBITMQ_FEATURE_FLAGS_FILE": str(directory / "feature_flags"),
            "RABBITMQ_MNESIA_BASE": str(directory / "data"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_NODENAME": NODE,
            "RABBITMQ_DIST_PORT": str(self.settings.distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _ERLANG,
            # The start script then becomes the server instead of watching over it, so that the
            # pid is the server's; with no NOTIFY_SOCKET nothing else follows from it.
            "RUNNING_UNDER_SYSTEMD": "true",
        }


def server_program() -> str:
    """Return the path of the RabbitMQ server's start program.

    :raises BrokerError: it is not installed; with the command that installs it
    """
    for program in PROGRAMS:
        if os.access(program, os.X_OK):
            return program
    raise BrokerError(
        "RabbitMQ is not installed: there is no "
        f"{PROGRAMS[0]}. Install it with\n\n    {INSTALL}\n\n"
        "or name a broker that runs already: --transport-url rabbit://USER:PASSWORD@HOST/VHOST"
    )


def refusal(url: str, timeout: float = 5.0) -> str | None:
    """Try the account and the vhost of a transport_url with a real AMQP handshake.

    :returns: None if the broker accepts them, otherwise the reason, without the password
    """
    address = re.sub(r"^(rabbit|kombu\+amqp)://", "amqp://", url)
    from kombu import connection as kombu_connection  # a third of a second that `ps` can do without

    make: Any = kombu_connection.Connection
    connection = make(address, connect_timeout=timeout)
    errors = (OSError, *connection.connection_errors, *connection.channel_errors)
    try:
        # connect() of kombu sleeps for seconds between its tries; this is one try.
        connection.transport.establish_connection().close()
    except errors as error:
        return f"{connection.hostname}:{connection.port}: {error}"
    finally:
        connection.release()
    return None


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise BrokerError(f"{name!r} cannot be the name of a vhost here")
