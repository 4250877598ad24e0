# SPDX-License-Identifier: Apache-2.0
"""``novalite demo``: boot one server with the unmodified ``openstack`` client and explain it.

Called by ``cmd/cloud.py`` on a cloud that is up. It shows what any administrator could find: the
API through the client, and the explanation that ``novalite explain`` prints.
"""

import os
import subprocess
import time

from rich.console import Console

from novalite.advisor import cloud as advisor_cloud
from novalite.advisor import render
from novalite.cmd import explain
from novalite.devcloud import cloud, services
from novalite.devcloud.errors import DevCloudError

NAME = "demo"
CLIENT_TIMEOUT = 120.0


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
    console.print()
    _print(console, f"$ novalite explain {NAME}")
    try:
        body = explain.compute(devcloud.directory, None).explain(uuid)
    except advisor_cloud.CloudError as error:
        raise DevCloudError(error.message()) from None
    render.show(body, console)


def _quoted(words: tuple[str, ...]) -> list[str]:
    return [f"'{word}'" if " " in word else word for word in words]


def _print(console: Console, text: str) -> None:
    # What others wrote is printed as it is: no colours, no markup, no line breaks of ours.
    console.print(text, markup=False, highlight=False, soft_wrap=True)
