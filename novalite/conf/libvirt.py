# SPDX-License-Identifier: Apache-2.0
"""Options of [libvirt]."""

from oslo_config import cfg

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "virt_type",
        default="kvm",
        choices=["kvm", "lxc", "qemu", "parallels"],
        mutable=True,
        help="Type of the domains.",
    ),
    cfg.IntOpt(
        "guest_overhead_mb",
        default=0,
        min=0,
        max=1_000_000,
        mutable=True,
        help="MB that the hypervisor takes beside the memory of each guest (QEMU's own); counted "
        "with the guest by scheduler and claim alike.",
    ),
    cfg.StrOpt(
        "cpu_mode",
        choices=["host-model", "host-passthrough", "custom", "none"],
        mutable=True,
        help="CPU of the guests. Unset: host-model for virt_type kvm and qemu, else none.",
    ),
    cfg.ListOpt(
        "cpu_models",
        default=[],
        deprecated_name="cpu_model",
        mutable=True,
        help="Named CPU models, for cpu_mode=custom only.",
    ),
    cfg.ListOpt(
        "cpu_model_extra_flags",
        default=[],
        mutable=True,
        help="CPU features that the guests get in addition, for cpu_mode=custom. With another mode "
        "they are ignored, with a warning at the start.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="libvirt")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("libvirt", OPTS)]
