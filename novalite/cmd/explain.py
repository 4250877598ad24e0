# SPDX-License-Identifier: Apache-2.0
"""``novalite explain SERVER``: what a server does and why, and what would change it.

Called by ``cmd/cloud.py``. It asks the Compute API with the user's own credentials, so a tenant is
told what a tenant may know. It never looks into a database or a log.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from novalite.advisor import cloud, columns, render
from novalite.devcloud import state


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the words of the command."""
    command.add_argument("server", metavar="SERVER", help="name or id, of a deleted one too")
    add_common(command, "text")


def add_common(command: argparse.ArgumentParser, default: str) -> None:
    """Add the words that all questions to a cloud have: format and credentials.

    :param default: what the format for people is called
    """
    command.add_argument(
        "-f",
        "--format",
        choices=(default, "json"),
        default=default,
        help=f"json: the API's answer as it is (default: {default})",
    )
    command.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        help="ask the cloud of `novalite up` in this directory, as its administrator (default: the "
        "cloud of --os-cloud or the OS_* variables, else the one in "
        f"{state.default_directory()})",
    )
    command.add_argument("--os-cloud", metavar="NAME", help="a cloud of clouds.yaml")


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation; 0 if there is one, 1 if not."""
    return answer(arguments, lambda found: found.explain(arguments.server), render.lines)


def answer(
    arguments: argparse.Namespace,
    ask: Callable[[cloud.Compute], Any],
    lines: Callable[[Any], Iterable[columns.Line]],
) -> int:
    """Ask the cloud that the words mean and print what it answers; 0 if it does, 1 if not."""
    try:
        body = ask(compute(arguments.state_dir, arguments.os_cloud))
    except cloud.CloudError as error:
        told = f"novalite: {error.message()}"
        Console(stderr=True).print(told, markup=False, highlight=False, soft_wrap=True)
        return 1
    if arguments.format == "json":
        json.dump(body, sys.stdout, indent=2)
        print()
    else:
        columns.show(lines(body), Console())
    return 0


def compute(state_dir: Path | None, name: str | None) -> cloud.Compute:
    """Return the Compute API that the words and the environment mean.

    :raises cloud.CloudError: there are no credentials
    """
    if state_dir is None and name is None and not cloud.has_credentials():
        default = state.default_directory()
        state_dir = default if (default / "clouds.yaml").exists() else None
    if state_dir is not None:
        # It is on this machine, whatever proxy the environment names.
        for variable in ("NO_PROXY", "no_proxy"):
            os.environ[variable] = f"127.0.0.1,{os.environ.get(variable, '')}".rstrip(",")
    return cloud.Compute(state_dir, name)
