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
        mutable=True,
        help="How often a transaction is repeated after a deadlock or a lock wait.",
    ),
    cfg.IntOpt(
        "connect_timeout",
        default=3,
        min=2,
        help="Seconds within which a connection to a database server must be made.",
    ),
    cfg.IntOpt(
        "answer_timeout",
        default=10,
        min=2,
        help="Seconds after which a database server that does not answer a statement is given up "
        "and its connection closed. A wait for another transaction's lock ends after half of it "
        "and the transaction is repeated. Migrations are not bounded.",
    ),
    cfg.FloatOpt(
        "lock_timeout",
        default=15.0,
        min=0.1,
        mutable=True,
        help="Seconds a writer waits for SQLite's one write lock before it gives up.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="database")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("database", OPTS)]
