# SPDX-License-Identifier: Apache-2.0
"""The second half of a start, after the thread backend is chosen: options, logging, bus, manager.

Called by :mod:`novalite.cmd.launch` only. Nothing is sent to bus or database before all options
have been checked.
"""

import logging
from collections.abc import Callable

from novalite import concurrency, exception, log, rpc, service
from novalite import conf as conf_module
from novalite import manager as manager_module
from novalite.cmd import launch
from novalite.conf import load

LOG = logging.getLogger(__name__)


def run(
    program: str,
    build: "launch.Build",
    argv: list[str] | None,
    *,
    needs_bus: bool,
    needs_database: bool,
) -> int:
    """Start *program* and return its exit code."""
    conf = conf_module.CONF
    try:
        cautions = load.load(conf, program, argv, [log.register_opts])
        concurrency.check(conf.concurrency_backend)
    except (load.ConfigError, exception.ConfigurationError, concurrency.BackendError) as error:
        launch.die(program, str(error))
    log.setup(conf, program)
    for caution in cautions:
        LOG.warning("%s", caution)
    LOG.info("%s starts on %s with %s", program, conf.host, concurrency.backend())
    bus = rpc.Bus(conf) if needs_bus else None

    ending: list[Callable[[str], None]] = []
    manager: manager_module.Manager = build(conf, bus, lambda reason: ending[0](reason))
    process = service.Service(conf, program, manager, bus, lambda: load.reread(conf))
    ending.append(process.fail)
    return process.run()
