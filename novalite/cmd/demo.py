# SPDX-License-Identifier: Apache-2.0
"""``novalite demo``: boot one server with the unmodified ``openstack`` client and show how it went.

Called by ``cmd/cloud.py`` on a cloud that is up. It shows what the operator of the cloud could
find: the API through the client, the services' log files, and from the database the history of the
action with its details, which the API does not show.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from oslo_config import cfg
from rich.console import Console
from rich.table import Table

from novalite import conf as conf_module
from novalite.db import actions, engine
from novalite.devcloud import cloud, services
from novalite.devcloud.errors import DevCloudError
from novalite.objects import base
from novalite.objects.action import Action, ActionEvent
from novalite.objects.decision import Decision

NAME = "demo"
CLIENT_TIMEOUT = 120.0
_LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \d+ (?P<level>[A-Z]+) (?P<logger>\S+) "
    r"\[(?P<request>req-\S+)[^\]]*\] (?:\[instance: (?P<instance>\S+)\] )?(?P<message>.*)"
)
_STEP = re.compile(r"step=(\d+) (.*)")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One parsed line; ``time`` in seconds since the epoch."""

    service: str
    time: float
    logger: str
    message: str


@dataclass(frozen=True, slots=True)
class Moment:
    """One row of the timeline: seconds since the request came, seconds it took if it has an end."""

    at: float
    step: str
    process: str
    host: str
    took: float | None
    what: str


def run(devcloud: cloud.DevCloud, console: Console) -> int:
    """Boot a server, explain the boot; return 0 only if the server became ACTIVE.

    :raises DevCloudError: the client is missing or does not end
    """
    client = Client(devcloud)
    uuid, seconds = _create(client, console)
    if not uuid:
        return 1
    status = client.output("server", "show", "-f", "value", "-c", "status", uuid).strip()
    columns = ("Name", "Status", "Task State", "Power State", "Networks", "Image Name", "Host")
    words = [word for column in columns for word in ("-c", column)]
    console.print()
    client.shown(console, "server", "list", "--long", *words)
    _explain(devcloud, uuid, console)
    if status != "ACTIVE":
        client.shown(console, "server", "show", "-c", "status", "-c", "fault", uuid)
        return 1
    console.print(f"\nThe server is ACTIVE; the client took {seconds:.1f} s.", highlight=False)
    return 0


class Client:
    """The real ``openstack`` command against this cloud."""

    def __init__(self, devcloud: cloud.DevCloud):
        self._program = services.find_program("openstack")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        self._environment = kept | {
            "OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file),
            "OS_CLOUD": "novalite",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run the client and return how it ended.

        :raises DevCloudError: it does not end
        """
        command = [self._program, *words]
        try:
            return subprocess.run(
                command,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=CLIENT_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise DevCloudError(
                f"openstack {' '.join(words)} takes longer than {CLIENT_TIMEOUT:.0f} s"
            ) from None

    def output(self, *words: str) -> str:
        """Return what the client prints.

        :raises DevCloudError: it failed; with its message
        """
        done = self.run(*words)
        if done.returncode:
            raise DevCloudError(f"openstack {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def shown(self, console: Console, *words: str) -> None:
        """Print a command and what it prints."""
        _print(console, f"$ openstack {' '.join(_quoted(words))}")
        _print(console, self.output(*words).rstrip())


def _create(client: Client, console: Console) -> tuple[str, float]:
    words = f"server create --flavor m1.tiny --image cirros --network private --wait {NAME}".split()
    console.print()
    _print(console, f"$ openstack {' '.join(words)}")
    began = time.monotonic()
    done = client.run(*words, "-f", "value", "-c", "id")
    seconds = time.monotonic() - began
    if done.stdout.strip():
        return done.stdout.strip(), seconds
    _print(console, done.stderr.strip() or "openstack printed nothing")
    # A server in ERROR makes the client fail without naming it; the newest of our name is it.
    listed = client.run(
        "server",
        "list",
        "--name",
        f"^{NAME}$",
        "--sort",
        "created_at:desc",
        "-f",
        "value",
        "-c",
        "ID",
    )
    return (listed.stdout.split() or [""])[0], seconds


def _explain(devcloud: cloud.DevCloud, uuid: str, console: Console) -> None:
    """Print timeline, decision and claim of the server's create."""
    database = engine.Database(_conf(devcloud.services.etc / "novalite.conf"))
    try:
        history = database.read(lambda conn: actions.list_for_instance(conn, uuid))
        create = next(action for action in history if action.action == "create")
        events = database.read(lambda conn: actions.events(conn, create.id))
    except StopIteration:
        raise DevCloudError(f"server {uuid} has no action create") from None
    finally:
        database.engine.dispose()
    lines = sorted(read_logs(devcloud.logs(), create.request_id), key=lambda line: line.time)
    console.print()
    console.print(timeline_table(create, moments(create, events, lines, devcloud.hosts())))
    for event in events:
        found = event.details.get("decision")
        if found:
            console.print("\n[bold]The scheduler's decision[/]")
            _print(console, _decision_text(found))
    console.print("\n[bold]The claim[/]")
    for line in lines:
        if line.logger == "novalite.compute.claims":
            _print(console, f"{line.service}  {line.message}")


def _decision_text(wire: object) -> str:
    decision = base.decode(wire)
    return decision.text() if isinstance(decision, Decision) else str(wire)


def _conf(file: Path) -> cfg.ConfigOpts:
    conf = conf_module.CONF
    conf_module.register_opts(conf)
    conf(["--config-file", str(file)], project="novalite", default_config_dirs=[])
    return conf


def read_logs(files: list[Path], request_id: str) -> Iterator[LogLine]:
    """Yield the lines of one request from all log files, file by file."""
    for file in files:
        with file.open(errors="replace") as text:
            for line in text:
                found = _LINE.match(line) if request_id in line else None
                if found and found["request"] == request_id:
                    yield LogLine(
                        file.stem, _seconds(found["time"]), found["logger"], found["message"]
                    )


def moments(
    create: Action, events: list[ActionEvent], lines: list[LogLine], hosts: dict[str, str]
) -> list[Moment]:
    """Return the timeline: the numbered steps of the logs and the events of the action.

    :param hosts: service: the host it runs on
    """
    # The action's row is made by the API's transaction: that is the first step.
    rows = [Moment(0.0, "1", "api", hosts.get("api", ""), None, "the request is accepted")]
    for line in lines:
        step = _STEP.match(line.message)
        if step and step[1] != "1":
            at = line.time - create.start
            process, host = line.service.rstrip("0123456789"), hosts.get(line.service, "")
            rows.append(Moment(at, step[1], process, host, None, step[2]))
    for event in events:
        took = event.finish - event.start if event.finish is not None else None
        what = event.event if event.result == "Success" else f"{event.event}: {event.result}"
        process = event.event.partition("_")[0]
        rows.append(Moment(event.start - create.start, "", process, event.host or "", took, what))
    return sorted(rows, key=lambda row: row.at)


def timeline_table(create: Action, rows: list[Moment]) -> Table:
    """Return the timeline as a table."""
    table = Table(title=f"The boot, {create.request_id}", title_justify="left", box=None)
    table.title_style = table.header_style = "bold"
    for heading in ("at ms", "step", "process", "host", "took ms", "what"):
        right = "right" if heading.endswith("ms") else "left"
        table.add_column(heading, justify=right, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        took = "" if row.took is None else f"{row.took * 1000:.1f}"
        table.add_row(f"{row.at * 1000:.0f}", row.step, row.process, row.host, took, row.what)
    return table


def _seconds(stamp: str) -> float:
    """Return the log's local time as seconds since the epoch."""
    return datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S.%f").astimezone(UTC).timestamp()


def _quoted(words: tuple[str, ...]) -> list[str]:
    return [f"'{word}'" if " " in word else word for word in words]


def _print(console: Console, text: str) -> None:
    # What others wrote is printed as it is: no colours, no markup, no line breaks of ours.
    console.print(text, markup=False, highlight=False, soft_wrap=True)
