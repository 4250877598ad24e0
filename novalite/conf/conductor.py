# SPDX-License-Identifier: Apache-2.0
"""Options of novalite-conductor: [conductor], the leases and deadlines of actions."""

from oslo_config import cfg

OPTS: list[cfg.Opt] = [
    cfg.IntOpt(
        "workers",
        default=1,
        min=1,
        help="Processes of novalite-conductor on this host. 1: one process without a parent.",
    ),
    cfg.FloatOpt(
        "task_lease",
        default=15.0,
        min=1.0,
        mutable=True,
        help="Seconds for which a conductor holds an action that it has taken.",
    ),
    cfg.FloatOpt(
        "task_renew_interval",
        default=5.0,
        min=0.2,
        mutable=True,
        help="Seconds between two renewals of what a conductor holds; less than task_lease.",
    ),
    cfg.FloatOpt(
        "recovery_interval",
        default=2.0,
        min=0.1,
        mutable=True,
        help="Seconds between two looks for work that got lost.",
    ),
    cfg.FloatOpt(
        "pending_grace",
        default=3.0,
        min=0.1,
        mutable=True,
        help="Seconds that a new action may wait for its message before recovery takes it.",
    ),
    cfg.FloatOpt(
        "begin_timeout",
        default=10.0,
        min=0.5,
        mutable=True,
        help="Seconds until a build that was cast to a host and has not begun is cast again, and "
        "a delete or a clean-up that the host has not answered.",
    ),
    cfg.FloatOpt(
        "audit_interval",
        default=600.0,
        min=0.0,
        mutable=True,
        help="Seconds between two comparisons of servers and allocations, in which differences are "
        "put right. 0: never.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="conductor")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("conductor", OPTS)]
