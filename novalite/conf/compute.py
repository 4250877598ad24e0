# SPDX-License-Identifier: Apache-2.0
"""Options of novalite-compute in [DEFAULT]: what a host keeps back and promises."""

from oslo_config import cfg

OPTS: list[cfg.Opt] = [
    cfg.IntOpt(
        "reserved_host_memory_mb",
        default=512,
        min=0,
        max=1_000_000_000,
        mutable=True,
        help="MB of memory kept for the host itself; counted inside used memory.",
    ),
    cfg.IntOpt(
        "reserved_host_disk_mb",
        default=0,
        min=0,
        max=2_000_000_000,
        mutable=True,
        help="MB of disk kept for the host itself; counted inside used disk, rounded up to GB.",
    ),
    cfg.IntOpt(
        "reserved_host_cpus",
        default=0,
        min=0,
        max=1_000_000,
        mutable=True,
        help="Threads kept for the host itself; counted inside used vcpus.",
    ),
    cfg.FloatOpt(
        "cpu_allocation_ratio",
        default=16.0,
        min=0.0,
        deprecated_name="initial_cpu_allocation_ratio",
        mutable=True,
        help="How many vcpus are promised for each thread. 0.0 means not set: 16.0.",
    ),
    cfg.FloatOpt(
        "ram_allocation_ratio",
        default=1.5,
        min=0.0,
        deprecated_name="initial_ram_allocation_ratio",
        mutable=True,
        help="How many MB are promised for each MB of memory. 0.0 means not set: 1.5.",
    ),
    cfg.FloatOpt(
        "disk_allocation_ratio",
        default=1.0,
        min=0.0,
        deprecated_name="initial_disk_allocation_ratio",
        mutable=True,
        help="How many GB are promised for each GB of disk. 0.0 means not set: 1.0.",
    ),
    cfg.IntOpt(
        "update_resources_interval",
        default=0,
        mutable=True,
        help="Seconds between two audits of the resources. 0: every 60 s; negative: never.",
    ),
    cfg.IntOpt(
        "audit_interval",
        default=600,
        mutable=True,
        help="Seconds between two comparisons of the books of a host with its guests and with what "
        "the database says it has to keep; claims are put right. 0: every 60 s; negative: never.",
    ),
    cfg.IntOpt(
        "sync_power_state_interval",
        default=600,
        mutable=True,
        help="Seconds between two looks at the power state of all guests. Negative: never.",
    ),
    cfg.IntOpt(
        "max_concurrent_builds",
        default=10,
        min=0,
        mutable=True,
        help="Builds that one novalite-compute spawns at one time; 0: no limit.",
    ),
    cfg.IntOpt(
        "block_device_allocate_retries",
        default=60,
        min=0,
        mutable=True,
        help="How often a build looks again for a volume that is being made before it gives up.",
    ),
    cfg.IntOpt(
        "block_device_allocate_retries_interval",
        default=3,
        min=0,
        mutable=True,
        help="Most seconds between two of these looks.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("DEFAULT", OPTS)]
