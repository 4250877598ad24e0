# SPDX-License-Identifier: Apache-2.0
"""The second half of a start, after the thread backend is chosen: options, logging, bus, manager.

Called by :mod:`novalite.cmd.launch` only. Nothing is sent to bus or database before all options
have been checked.
"""

import ctypes
import logging
import os
import signal
import sys
from collections.abc import Sequence

from oslo_config import cfg

from novalite import broker, concurrency, exception, log, rpc, service, systemd
from novalite import conf as conf_module
from novalite.cmd import launch, supervise
from novalite.conf import changes, load, messaging, rules
from novalite.conf.files import place

LOG = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1


def run(
    program: str,
    build: "launch.Build",
    argv: list[str] | None,
    *,
    needs_bus: bool,
    needs_database: bool,
    own_checks: Sequence[load.Rule] = (),
    workers: "launch.Count | None" = None,
    listen: "launch.Listen | None" = None,
) -> int:
    """Start *program* and return its exit code."""
    conf = conf_module.CONF
    checks: list[load.Rule] = list(own_checks)
    if needs_bus:
        checks.append(rules.check_bus)
    if needs_database:
        checks.append(rules.check_database)
    register = [log.register_opts, messaging.register_opts]
    words = sys.argv[1:] if argv is None else argv
    loader = load.Loader(conf, program, words, register, checks)
    try:
        cautions = loader.load()
        concurrency.check(conf.concurrency_backend)
    except (load.ConfigError, concurrency.BackendError) as error:
        launch.die(program, str(error))
    log.setup(conf, program)
    _warn(cautions)
    if systemd.WORKER in os.environ:
        _end_with_parent()
    elif workers is not None and workers(conf) > 1:
        _become_parent(conf, program, words, workers(conf), listen)
    LOG.info("%s starts on %s with %s", program, conf.host, concurrency.backend())
    refusal = _refusal(conf, needs_bus=needs_bus, needs_database=needs_database)
    if refusal is not None:
        LOG.error("%s", refusal)
        if _log_is_elsewhere():
            launch.die(program, refusal)
        return 1
    bus = rpc.Bus(conf) if needs_bus else None
    end = _End()
    manager = build(conf, bus, end.fail)

    def adjust(reading: changes.Reading) -> None:
        log.reload(conf, program, anew=reading.changes("DEFAULT.log_config_append"))

    end.service = service.Service(conf, program, manager, bus, loader.reread, adjust)
    return end.service.run()


def _become_parent(
    conf: cfg.ConfigOpts,
    program: str,
    words: list[str],
    count: int,
    listen: "launch.Listen | None",
) -> None:
    """Become the parent of workers; nothing but the listening socket is open in it."""
    try:
        listener = listen(conf) if listen is not None else None
    except exception.ConfigurationError as error:
        launch.die(program, error.message())
    settings = supervise.Settings(
        program=program,
        module=f"novalite.cmd.{program.removeprefix('novalite-')}",
        words=words,
        workers=count,
        listen=None if listener is None else listener.detach(),
        log=log.file(conf),
    )
    settings.become()


def _end_with_parent() -> None:
    """Let the kernel send SIGTERM when the parent of the workers has died."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent or parent == 1:
        sys.exit(1)


def _refusal(conf: cfg.ConfigOpts, *, needs_bus: bool, needs_database: bool) -> str | None:
    """Look at what the program depends on; return why it must not start, if so."""
    try:
        if needs_database:
            # Imported here since a compute never loads the database's code.
            from novalite.db import storage

            storage.check(conf)
        if needs_bus:
            broker.handshake(conf)
    except load.ConfigError as error:
        return str(error)
    except broker.Refused as error:
        return f"{place(conf, 'transport_url')}: {error}"
    return None


def _log_is_elsewhere() -> bool:
    """Tell whether the user who typed the command does not see the log."""
    handlers = logging.getLogger().handlers
    return all(getattr(handler, "stream", None) is not sys.stderr for handler in handlers)


def _warn(cautions: list[str]) -> None:
    for caution in cautions:
        LOG.warning("%s", caution)


class _End:
    """What a manager calls to end the process. The service is made after the manager."""

    def __init__(self) -> None:
        self.service: service.Service | None = None

    def fail(self, reason: str) -> None:
        """End the process with exit code 1."""
        if self.service is None:
            raise exception.NovaliteException(reason)
        self.service.fail(reason)
