# SPDX-License-Identifier: Apache-2.0
"""Options of [fake_libvirt]: the hypervisor that only plays its guests."""

from oslo_config import cfg

OPTS: list[cfg.Opt] = [
    cfg.IntOpt("vcpus", default=8, min=1, max=1_000_000, mutable=True, help="Threads of the host."),
    cfg.IntOpt(
        "memory_mb",
        default=16384,
        min=1,
        max=1_000_000_000,
        mutable=True,
        help="Memory of the host in MB.",
    ),
    cfg.IntOpt(
        "local_gb",
        default=200,
        min=0,
        max=1_000_000_000,
        mutable=True,
        help="Disk of the host in GB.",
    ),
    cfg.FloatOpt(
        "spawn_delay", default=0.0, min=0.0, mutable=True, help="Seconds that a spawn takes."
    ),
    cfg.FloatOpt(
        "spawn_jitter",
        default=0.0,
        min=0.0,
        mutable=True,
        help="Random seconds, at most, added to spawn_delay.",
    ),
    cfg.FloatOpt(
        "fail_spawn",
        default=0.0,
        min=0.0,
        max=1.0,
        mutable=True,
        help="Share of spawns that fail: 0 none, 1 all.",
    ),
    cfg.FloatOpt(
        "fail_destroy",
        default=0.0,
        min=0.0,
        max=1.0,
        mutable=True,
        help="Share of destroys that fail: 0 none, 1 all.",
    ),
    cfg.ListOpt(
        "nested",
        default=[],
        mutable=True,
        help="CPU features that the host lacks because it is a guest itself, vmx for example. With "
        "any, a guest that is to get them does not start: with [libvirt] cpu_mode host-model, or "
        "custom with one of them in cpu_model_extra_flags.",
    ),
    cfg.ListOpt(
        "nodes",
        default=[],
        help="Names of the nodes that one novalite-compute manages, all of the same size. Unset: "
        "one, named as the host. Read at the start only.",
    ),
    cfg.StrOpt(
        "store",
        help="SQLite file that keeps the domains. Unset: fake_libvirt-HOST.db in state_path. "
        "Read at the start only.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="fake_libvirt")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("fake_libvirt", OPTS)]
