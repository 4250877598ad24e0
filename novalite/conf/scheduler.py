# SPDX-License-Identifier: Apache-2.0
"""Options of [scheduler] and [filter_scheduler]."""

from oslo_config import cfg

OPTS: list[cfg.Opt] = [
    cfg.IntOpt(
        "workers",
        default=1,
        min=1,
        help="Processes of novalite-scheduler on this host. 1: one process without a parent.",
    ),
    cfg.IntOpt(
        "max_attempts",
        default=3,
        min=1,
        deprecated_group="DEFAULT",
        deprecated_name="scheduler_max_attempts",
        mutable=True,
        help="How many hosts a build may fail on, the first included. Also the length of a "
        "selection with its alternates.",
    ),
    cfg.FloatOpt(
        "host_refresh_interval",
        default=0.05,
        min=0.0,
        mutable=True,
        help="Least seconds between two looks for changed hosts in the database.",
    ),
    cfg.FloatOpt(
        "host_sweep_interval",
        default=60.0,
        min=1.0,
        mutable=True,
        help="Seconds between two readings of all hosts.",
    ),
]
FILTER_OPTS: list[cfg.Opt] = [
    cfg.ListOpt(
        "enabled_filters",
        default=[
            "ComputeFilter",
            "RetryFilter",
            "AvailabilityZoneFilter",
            "RamFilter",
            "DiskFilter",
            "CoreFilter",
            "ImagePropertiesFilter",
        ],
        deprecated_group="DEFAULT",
        deprecated_name="scheduler_default_filters",
        mutable=True,
        help="Filters in the order they run; class names, or module:Class for your own.",
    ),
    cfg.IntOpt(
        "host_subset_size",
        default=1,
        min=1,
        deprecated_group="DEFAULT",
        deprecated_name="scheduler_host_subset_size",
        mutable=True,
        help="One host is drawn at random from so many best ones.",
    ),
    cfg.BoolOpt(
        "shuffle_best_same_weighed_hosts",
        default=False,
        mutable=True,
        help="Draw at random among the hosts that share the best weight.",
    ),
    cfg.FloatOpt(
        "ram_weight_multiplier",
        default=1.0,
        deprecated_group="DEFAULT",
        deprecated_name="ram_weight_multiplier",
        mutable=True,
        help="Weight of free memory; negative stacks instead of spreading; 0 is off.",
    ),
    cfg.FloatOpt(
        "cpu_weight_multiplier",
        default=1.0,
        mutable=True,
        help="Weight of free vcpus (total x ratio - used).",
    ),
    cfg.FloatOpt(
        "disk_weight_multiplier",
        default=1.0,
        deprecated_group="DEFAULT",
        deprecated_name="disk_weight_multiplier",
        mutable=True,
        help="Weight of free disk.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="scheduler")
    conf.register_opts(FILTER_OPTS, group="filter_scheduler")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("scheduler", OPTS), ("filter_scheduler", FILTER_OPTS)]
