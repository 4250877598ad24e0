# SPDX-License-Identifier: Apache-2.0
"""``novalite-scheduler``: finds hosts for servers."""

from typing import Any

from novalite.cmd import launch

PROGRAM = "novalite-scheduler"


def main() -> None:
    """Start the scheduler."""
    launch.main(PROGRAM, build, needs_database=True)


def build(conf: Any, bus: Any, fail: Any) -> Any:
    """Make the scheduler's manager."""
    import gc

    from novalite import exception
    from novalite.conductor import rpcapi as conductor_rpcapi
    from novalite.db import compute_nodes, engine
    from novalite.scheduler import manager

    # A decision over many hosts keeps many small reasons until it is done; with the default
    # thresholds the collector would walk over all of them again and again.
    gc.set_threshold(200_000, 20, 50)
    database = engine.Database(conf)

    def load(mark: float | None, known: Any) -> Any:
        return database.read(lambda conn: compute_nodes.pictures(conn, mark, known))

    try:
        return manager.SchedulerManager(conf, load, conductor_rpcapi.ConductorAPI(bus), fail)
    except exception.ConfigurationError as error:
        launch.die(PROGRAM, error.message())


if __name__ == "__main__":
    main()
