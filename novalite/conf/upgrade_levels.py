# SPDX-License-Identifier: Apache-2.0
"""Options of [upgrade_levels]: the RPC versions that are spoken while services are upgraded."""

from oslo_config import cfg

_HELP = (
    "Newest RPC version that may be sent to novalite-%s, for example 1.0, while some of them are "
    "older than this process. Unset: the version that this process knows."
)
OPTS: list[cfg.Opt] = [
    cfg.StrOpt(name, regex=r"^\d+\.\d+$", help=_HELP % name)
    for name in ("compute", "conductor", "scheduler")
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="upgrade_levels")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("upgrade_levels", OPTS)]
