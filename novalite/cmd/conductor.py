# SPDX-License-Identifier: Apache-2.0
"""``novalite-conductor``: drives actions and is the only writer for the computes."""

from typing import Any

from novalite.cmd import launch


def main() -> None:
    """Start the conductor."""
    launch.main("novalite-conductor", build, needs_database=True)


def build(conf: Any, bus: Any, fail: Any) -> Any:
    """Make the conductor's manager."""
    from novalite.conductor import manager
    from novalite.db import engine

    return manager.ConductorManager(conf, bus, engine.Database(conf), fail)
