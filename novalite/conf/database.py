# SPDX-License-Identifier: Apache-2.0
"""Options of [database]."""

from oslo_config import cfg

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="SQLAlchemy URL of the database, for example sqlite:////var/lib/novalite/novalite.db, "
        "postgresql+psycopg://USER:PASSWORD@HOST/NAME or mysql+pymysql://USER:PASSWORD@HOST/NAME. "
        "Percent-encode special characters. Unset: novalite.db in state_path.",
    ),
    cfg.IntOpt("max_pool_size", default=10, min=1, help="Most connections of one process."),
    cfg.IntOpt(
        "max_retries",
        default=5,
        min=0,
        help="How often a transaction is repeated after a deadlock or a lock wait.",
    ),
    cfg.FloatOpt(
        "lock_timeout",
        default=15.0,
        min=0.1,
        help="Seconds a writer waits for SQLite's one write lock before it gives up.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="database")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("database", OPTS)]
