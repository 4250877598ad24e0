# SPDX-License-Identifier: Apache-2.0
"""``novalite capacity`` and ``novalite why-not``: what administrators ask about hosts.

Called by ``cmd/cloud.py``. They ask the Compute API with the user's own credentials, which asks a
scheduler; nothing is selected for it.
"""

import argparse
from typing import Any

from novalite.advisor import hosts
from novalite.cmd import explain


def add_capacity(command: argparse.ArgumentParser) -> None:
    """Add the words of ``novalite capacity``."""
    command.add_argument("--flavor", required=True, metavar="FLAVOR", help="name or id")
    command.add_argument(
        "--hosts", nargs="+", metavar="HOST", default=[], help="only these (default: all)"
    )
    command.add_argument("--zone", metavar="ZONE", help="as if asked for in this zone")
    command.add_argument("--image", metavar="ID", help="as if made from this image")
    command.add_argument(
        "--volume-backed", action="store_true", help="the root disk is a volume, not on the host"
    )
    explain.add_common(command, "table")


def capacity(arguments: argparse.Namespace) -> int:
    """Print how many more servers fit; 0 if there is an answer, 1 if not."""

    def ask(compute: Any) -> Any:
        asked = {
            "hosts": arguments.hosts,
            "availability_zone": arguments.zone,
            "imageRef": arguments.image,
            "volume_backed": arguments.volume_backed,
        }
        given = {name: value for name, value in asked.items() if value}
        return compute.capacity(arguments.flavor, given)

    return explain.answer(arguments, ask, hosts.capacity)


def add_why_not(command: argparse.ArgumentParser) -> None:
    """Add the words of ``novalite why-not``."""
    command.add_argument("server", metavar="SERVER", help="name or id, of a deleted one too")
    command.add_argument(
        "host", metavar="HOST", nargs="?", help="host or node (default: all, each once)"
    )
    explain.add_common(command, "table")


def why_not(arguments: argparse.Namespace) -> int:
    """Print what the filters say of a host; 0 if there is an answer, 1 if not."""
    return explain.answer(
        arguments,
        lambda compute: compute.why_not(arguments.server, arguments.host),
        hosts.why_not,
    )
