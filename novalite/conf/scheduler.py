# SPDX-License-Identifier: Apache-2.0
"""Options of [scheduler] and [filter_scheduler]."""

from oslo_config import cfg


def _multiplier(name: str, default: float, text: str, *, deprecated: bool = True) -> cfg.Opt:
    """Return the option of one weigher; those that are old had their name in [DEFAULT]."""
    return cfg.FloatOpt(
        f"{name}_weight_multiplier",
        default=default,
        deprecated_group="DEFAULT" if deprecated else None,
        mutable=True,
        help=f"{text} 0 is off. Metadata of this name on a host's aggregates replaces it there.",
    )


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
            "ComputeCapabilitiesFilter",
            "ImagePropertiesFilter",
            "ServerGroupAntiAffinityFilter",
            "ServerGroupAffinityFilter",
        ],
        deprecated_group="DEFAULT",
        deprecated_name="scheduler_default_filters",
        mutable=True,
        help="Filters in the order they run; class names, or module:Class for your own.",
    ),
    cfg.MultiStrOpt(
        "available_filters",
        default=["novalite.scheduler.filters.all_filters"],
        deprecated_group="DEFAULT",
        deprecated_name="scheduler_available_filters",
        mutable=True,
        help="What enabled_filters may name by the class alone: all_filters for those of this "
        "program, module.Class for one of your own. Nova's paths mean the same.",
    ),
    cfg.IntOpt(
        "max_instances_per_host",
        default=50,
        min=1,
        deprecated_group="DEFAULT",
        mutable=True,
        help="NumInstancesFilter refuses hosts with as many servers.",
    ),
    cfg.IntOpt(
        "max_io_ops_per_host",
        default=8,
        min=0,
        deprecated_group="DEFAULT",
        mutable=True,
        help="IoOpsFilter refuses hosts with as many builds, resizes and snapshots going on.",
    ),
    cfg.ListOpt(
        "isolated_images",
        default=[],
        deprecated_group="DEFAULT",
        mutable=True,
        help="IsolatedHostsFilter: ids of images that run on isolated_hosts only.",
    ),
    cfg.ListOpt(
        "isolated_hosts",
        default=[],
        deprecated_group="DEFAULT",
        mutable=True,
        help="IsolatedHostsFilter: hosts for isolated_images.",
    ),
    cfg.BoolOpt(
        "restrict_isolated_hosts_to_isolated_images",
        default=True,
        deprecated_group="DEFAULT",
        mutable=True,
        help="IsolatedHostsFilter: isolated_hosts take nothing but isolated_images.",
    ),
    cfg.StrOpt(
        "aggregate_image_properties_isolation_namespace",
        deprecated_group="DEFAULT",
        mutable=True,
        help="AggregateImagePropertiesIsolation looks only at metadata that begins with it.",
    ),
    cfg.StrOpt(
        "aggregate_image_properties_isolation_separator",
        default=".",
        deprecated_group="DEFAULT",
        mutable=True,
        help="What stands between that namespace and the rest of the name.",
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
    cfg.ListOpt(
        "weight_classes",
        default=["novalite.scheduler.weights.all_weighers"],
        deprecated_group="DEFAULT",
        deprecated_name="scheduler_weight_classes",
        mutable=True,
        help="Weighers in the order in which their weights are added up: all_weighers for those "
        "of this program, class names, or module:Class for your own. Nova's paths mean the same.",
    ),
    _multiplier("ram", 1.0, "Weight of free memory; negative stacks instead of spreading."),
    _multiplier("cpu", 1.0, "Weight of free vcpus (total x ratio - used).", deprecated=False),
    _multiplier("disk", 1.0, "Weight of free disk."),
    _multiplier("io_ops", -1.0, "Weight of the builds, resizes and snapshots going on."),
    _multiplier("num_instances", 0.0, "Weight of the number of servers.", deprecated=False),
    _multiplier(
        "soft_affinity", 1.0, "Weight of members of a server group of policy soft-affinity."
    ),
    _multiplier(
        "soft_anti_affinity",
        1.0,
        "Weight of being without members of a server group of policy soft-anti-affinity.",
    ),
    _multiplier(
        "build_failure",
        1000000.0,
        "Weight of having failed no build lately through the host's own fault.",
        deprecated=False,
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="scheduler")
    conf.register_opts(FILTER_OPTS, group="filter_scheduler")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("scheduler", OPTS), ("filter_scheduler", FILTER_OPTS)]
