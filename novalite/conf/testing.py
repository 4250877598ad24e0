# SPDX-License-Identifier: Apache-2.0
"""Options of [testing]: faults played on purpose; never set them on a real cloud."""

from oslo_config import cfg

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "crash_point",
        mutable=True,
        help="Named point at which the process kills itself (SIGKILL), for tests of recovery. "
        "With a trailing @FILE it does so only once: FILE is made at the crash.",
    ),
    cfg.StrOpt(
        "database_faults",
        regex=r"^(\s*\w+:\d+:\d+\s*(,|$))+$",
        help="Errors of a database server that writes to a table meet, as TABLE:NUMBER:TIMES with "
        "commas between, for tests: services:1213:2. TIMES 0 is always.",
    ),
    cfg.FloatOpt(
        "refresh_delay",
        default=0.0,
        min=0.0,
        mutable=True,
        help="Seconds by which a scheduler's look for changed hosts is held back.",
    ),
    cfg.BoolOpt(
        "compare_shortlists",
        default=False,
        mutable=True,
        help="Let a scheduler find out afresh all that it keeps from request to request each time "
        "it uses it, and fail the request when there is a difference.",
    ),
    cfg.BoolOpt(
        "ignore_generations",
        default=False,
        mutable=True,
        help="Let a compute take limits for fresh whatever picture they were computed from, for "
        "tests: a claim that stale limits refuse is then a failure of the host.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="testing")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("testing", OPTS)]
