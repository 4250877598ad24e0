# SPDX-License-Identifier: Apache-2.0
"""How every service program starts. Each ``cmd/X.py`` calls :func:`main` and nothing else.

This module may only import the standard library and ``novalite.concurrency`` at its top: under
eventlet everything else must be imported after the standard library is patched.
"""

import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from novalite import concurrency

if TYPE_CHECKING:
    import socket

    from oslo_config import cfg

    from novalite import manager, rpc
    from novalite.conf import load

    Fail = Callable[[str], None]
    Build = Callable[[cfg.ConfigOpts, rpc.Bus | None, Fail], manager.Manager]
    Count = Callable[[cfg.ConfigOpts], int]
    Listen = Callable[[cfg.ConfigOpts], socket.socket]


def first(program: str) -> None:
    """Choose the thread backend; a wrong one ends the process with one line and exit code 1."""
    try:
        concurrency.setup()
    except concurrency.BackendError as error:
        die(program, str(error))


def die(program: str, reason: str) -> NoReturn:
    """Say in one line on stderr why *program* cannot start, and exit with code 1."""
    print(f"{program}: {' '.join(reason.split())}", file=sys.stderr)
    sys.exit(1)


def main(
    program: str,
    build: "Build",
    *,
    needs_bus: bool = True,
    needs_database: bool = False,
    checks: "Sequence[load.Rule]" = (),
    workers: "Count | None" = None,
    listen: "Listen | None" = None,
    argv: list[str] | None = None,
) -> None:
    """Start *program*, serve until a signal ends it, and exit.

    ``build(conf, bus, fail)`` makes the manager when options, logging and bus are there. ``fail``
    is a callable for the manager to keep: ``fail(reason)`` ends the process with exit code 1, from
    any thread. ``build`` imports what it needs inside itself, so that nothing is imported before
    the thread backend is chosen.

    :param needs_bus: make the bus, and refuse to start if the broker refuses the login; a broker
        that cannot be reached is waited for
    :param needs_database: refuse to start without a usable URL or with missing tables
    :param checks: the program's own rules about options; they run before anything is connected,
        and again when the options are read anew
    :param workers: reads how many processes are wanted; with more than one this process becomes
        their parent
    :param listen: opens the socket that the workers share
    :param argv: words of the command line, without the program; default ``sys.argv[1:]``
    """
    # Until the service listens to signals, one that ends a process by default must not.
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    first(program)
    from novalite.cmd import process

    needs: dict[str, Any] = {"needs_bus": needs_bus, "needs_database": needs_database}
    many: dict[str, Any] = {"workers": workers, "listen": listen}
    sys.exit(process.run(program, build, argv, own_checks=checks, **needs, **many))
