# SPDX-License-Identifier: Apache-2.0
"""Named points at which a process can be made to die, so that tests of recovery are exact."""

import logging
import os
import signal
from pathlib import Path

from oslo_config import cfg

LOG = logging.getLogger(__name__)

POINTS = (
    "conductor.after_take",
    "conductor.after_select",
    "conductor.after_start",
    "conductor.after_cast",
    "conductor.after_begin",
    "conductor.after_finish",
    "build.before_claim",
    "build.after_claim",
    "build.after_begin",
    "build.after_network",
    "build.after_spawn",
    "build.after_finish",
    "volumes.after_create",
    "volumes.after_attach",
    "delete.after_mark",
    "delete.after_destroy",
)


def point(conf: cfg.ConfigOpts, name: str) -> None:
    """Kill this process with SIGKILL if ``[testing] crash_point`` names this point.

    ``POINT@FILE`` does it once: FILE is made first, and while it exists nothing happens.
    """
    wanted, _, once = str(conf.testing.crash_point or "").partition("@")
    if wanted != name:
        return
    if once:
        try:
            Path(once).touch(exist_ok=False)
        except FileExistsError:
            return
    LOG.warning("Crash point %s reached", name)
    os.kill(os.getpid(), signal.SIGKILL)
