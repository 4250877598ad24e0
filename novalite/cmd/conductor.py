# SPDX-License-Identifier: Apache-2.0
"""``novalite-conductor``: drives actions and is the only writer for the computes."""

from typing import Any

from novalite.cmd import launch


def main() -> None:
    """Start the conductor."""
    launch.main(
        "novalite-conductor",
        build,
        needs_database=True,
        workers=lambda conf: int(conf.conductor.workers),
    )


def build(conf: Any, bus: Any, fail: Any) -> Any:
    """Make the conductor's manager."""
    from novalite import systemd
    from novalite.conductor import manager
    from novalite.db import engine

    database = engine.Database(conf)
    return manager.ConductorManager(conf, bus, database, fail, leads=systemd.worker() == 1)


if __name__ == "__main__":
    main()
