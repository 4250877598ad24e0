# SPDX-License-Identifier: Apache-2.0
"""``novalite whatif``: what other settings would do, before they are put in force.

Called by ``cmd/cloud.py``. It reads files, asks the cloud's API for its hosts if told to, decides
with the scheduler's own pipeline and prints both sides. Nothing in the cloud changes.
"""

import argparse
import gc
import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from novalite import concurrency, exception
from novalite.advisor import columns
from novalite.cmd import explain
from novalite.conf.files import ConfigError

if TYPE_CHECKING:
    from novalite.advisor.whatif.fleet import Host, Request
    from novalite.advisor.whatif.settings import Side


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the words of the command."""
    command.add_argument(
        "--config-file",
        action="append",
        required=True,
        metavar="NEW",
        help="the new settings; a nova.conf will do; may be given again",
    )
    command.add_argument(
        "--old-config-file",
        action="append",
        metavar="OLD",
        help="the settings to compare with (default: "
        f"{concurrency.DEFAULT_FILE} if it exists, else the defaults)",
    )
    hosts = command.add_mutually_exclusive_group(required=True)
    hosts.add_argument("--fleet", metavar="FLEET.yaml", help="the hosts")
    hosts.add_argument("--live", action="store_true", help="the hosts of the running cloud")
    command.add_argument("--workload", required=True, metavar="WORKLOAD.yaml", help="the requests")
    command.add_argument("--all", action="store_true", help="print all hosts and servers")
    explain.add_common(command, "table")


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison; 0 if there is one, 1 if not."""
    # The pipeline's factory brings the bus along, which is slow to import and not used here.
    concurrency.hush()
    # That a file uses former names is for `novalite-status config check` to tell.
    logging.basicConfig(level=logging.CRITICAL, format="%(message)s")
    from novalite.advisor.whatif import files, render, settings

    try:
        old = settings.load(_old_files(arguments.old_config_file))
        new = settings.load(arguments.config_file)
        hosts = _hosts(arguments, old)
        requests = files.workload(arguments.workload)
        body = _compared(old, new, hosts, requests)
    except (ConfigError, exception.NovaliteException) as error:
        text = error.message() if isinstance(error, exception.NovaliteException) else str(error)
        Console(stderr=True).print(
            f"novalite: {text}", markup=False, highlight=False, soft_wrap=True
        )
        return 1
    if arguments.format == "json":
        json.dump(body, sys.stdout, indent=2)
        print()
    else:
        columns.show(render.lines(body, arguments.all), Console())
    return 0


def _compared(
    old: "Side", new: "Side", hosts: "list[Host]", requests: "list[Request]"
) -> dict[str, Any]:
    from novalite.advisor.whatif import comparison

    former = gc.get_threshold()
    # As novalite-scheduler does: verdicts live long, and looking for garbage in them is in vain.
    gc.set_threshold(200_000, 20, 50)
    try:
        before = comparison.run(old, hosts, requests, new=False)
        after = comparison.run(new, hosts, requests, new=True)
    finally:
        gc.set_threshold(*former)
    return comparison.compare(before, after, old, new)


def _old_files(named: list[str] | None) -> list[str]:
    if named:
        return named
    default = concurrency.DEFAULT_FILE
    return [default] if Path(default).exists() else []


def _hosts(arguments: argparse.Namespace, old: "Side") -> "list[Host]":
    from novalite.advisor.whatif import files, live

    if arguments.fleet:
        return files.fleet(arguments.fleet)
    compute = explain.compute(arguments.state_dir, arguments.os_cloud)
    hosts, notes = live.hosts(compute, old)
    old.notes.extend(notes)
    return hosts
