# SPDX-License-Identifier: Apache-2.0
"""``novalite-scheduler``: finds hosts for servers."""

from typing import Any

from novalite.cmd import launch


def main() -> None:
    """Start the scheduler."""
    launch.main(
        "novalite-scheduler",
        build,
        needs_database=True,
        checks=[check_filters],
        workers=lambda conf: int(conf.scheduler.workers),
    )


def check_filters(conf: Any) -> list[str]:
    """Check that filters and weighers exist; return a warning if there is no filter at all.

    :raises ConfigError: one is unknown
    """
    from novalite import exception
    from novalite.conf import files
    from novalite.scheduler import filters, weights

    options = conf.filter_scheduler
    try:
        option = "enabled_filters"
        enabled = filters.load(options.enabled_filters, options, options.available_filters)
        option = "weight_classes"
        weights.load({}, options.weight_classes)
    except exception.ConfigurationError as error:
        where = files.place(conf, option, "filter_scheduler")
        raise files.ConfigError(f"{where}: {error.message()}") from error
    where = files.place(conf, "enabled_filters", "filter_scheduler")
    return [] if enabled else [f"{where} is empty: hosts are not filtered at all"]


def build(conf: Any, bus: Any, fail: Any) -> Any:
    """Make the scheduler's manager."""
    import gc

    from novalite import systemd
    from novalite.conductor import rpcapi as conductor_rpcapi
    from novalite.db import aggregates, compute_nodes, engine, instances
    from novalite.scheduler import manager

    # A decision over many hosts keeps many small reasons until it is done; with the default
    # thresholds the collector would walk over all of them again and again.
    gc.set_threshold(200_000, 20, 50)
    database = engine.Database(conf)

    def load(mark: float | None, known: Any) -> Any:
        return database.read(lambda conn: compute_nodes.pictures(conn, mark, known))

    def unplaced(uuids: Any) -> set[str]:
        return database.read(lambda conn: instances.unplaced(conn, uuids))

    def aggregates_of(version: int | None) -> Any:
        return database.read(lambda conn: aggregates.of_hosts(conn, version))

    conductor = conductor_rpcapi.ConductorAPI(bus)
    checks = [database.check()]
    leads = systemd.worker() == 1
    return manager.SchedulerManager(
        conf, load, unplaced, conductor, fail, checks, aggregates=aggregates_of, leads=leads
    )


if __name__ == "__main__":
    main()
