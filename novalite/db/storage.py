# SPDX-License-Identifier: Apache-2.0
"""Opens the database for a program and tells in one line why it cannot be used.

Called at the start by ``cmd`` and at the first request by :mod:`novalite.wsgi`.
"""

import logging

import sqlalchemy as sa
from oslo_config import cfg

from novalite import exception
from novalite.conf.files import ConfigError, place
from novalite.db import engine, migrate

LOG = logging.getLogger(__name__)

# Backend -> the driver that novalite is tested with, and the extra that installs it.
_DRIVERS = {
    "postgresql": ("postgresql+psycopg", "postgresql"),
    "mysql": ("mysql+pymysql", "mysql"),
    "mariadb": ("mysql+pymysql", "mysql"),
}


def connect(conf: cfg.ConfigOpts, *, patient: bool = False) -> engine.Database:
    """Return the database; nothing is sent to it yet.

    :param patient: for migrations, whose statements may take as long as they need
    :raises ConfigError: the URL is not usable or the driver for it is not installed
    """
    where = place(conf, "connection", "database")
    try:
        return engine.Database(conf, patient=patient)
    except exception.ConfigurationError as error:
        raise ConfigError(f"{where}: {error.message()}") from None
    except sa.exc.NoSuchModuleError:
        kind = engine.url(conf).drivername
        raise ConfigError(f"{where}: there is no driver for {kind}://") from None
    except ImportError as error:
        kind = engine.url(conf).get_backend_name()
        scheme, extra = _DRIVERS.get(kind, (kind, kind))
        raise ConfigError(
            f"{where}: {error.name} is not installed; use {scheme}:// and install novalite[{extra}]"
        ) from None
    except OSError as error:
        raise ConfigError(f"{where}: {error.filename}: {error.strerror}") from None


def check(conf: cfg.ConfigOpts) -> None:
    """Refuse a database whose tables are not those of this program.

    One that cannot be reached is left for later: services may start before their database.

    :raises ConfigError: the URL or the tables are not usable
    """
    database = connect(conf)
    try:
        migrate.check(database)
    except exception.DatabaseUnavailable:
        LOG.warning("The database cannot be reached yet; it is tried again with each request")
    except exception.ConfigurationError as error:
        raise ConfigError(error.message()) from None
    finally:
        database.engine.dispose()
