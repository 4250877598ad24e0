# SPDX-License-Identifier: Apache-2.0
"""Rules about values that an option's type cannot express, or that concern two options at once."""

from oslo_config import cfg

from novalite.conf import urls
from novalite.conf.files import ConfigError, place

# A compute fences itself one report_interval before it counts as down; with fewer reports than
# this in service_down_time a single lost one fences a healthy host.
_REPORTS = 4
_DATABASES = ("sqlite", "postgresql", "mysql", "mariadb")
_ENCODE = "cannot be parsed; percent-encode special characters"


def check(conf: cfg.ConfigOpts) -> list[str]:
    """Check what holds for every program; return warnings.

    :raises ConfigError: a rule is broken
    """
    report, down = conf.report_interval, conf.service_down_time
    if report >= down:
        raise ConfigError(
            f"{place(conf, 'report_interval')} = {report} must be less than "
            f"{place(conf, 'service_down_time')} = {down}"
        )
    renew, lease = conf.conductor.task_renew_interval, conf.conductor.task_lease
    if renew >= lease:
        # Every build in hand would count as lost by its conductor.
        raise ConfigError(
            f"{place(conf, 'task_renew_interval', 'conductor')} = {renew} must be less than "
            f"{place(conf, 'task_lease', 'conductor')} = {lease}"
        )
    if report * _REPORTS > down:
        return [
            f"service_down_time = {down} is less than {_REPORTS} times report_interval = {report}: "
            "one late report can make a healthy host look down"
        ]
    return []


def check_bus(conf: cfg.ConfigOpts) -> list[str]:
    """Check what a program with a connection to the bus needs; return warnings.

    :raises ConfigError: a rule is broken
    """
    where = place(conf, "transport_url")
    if not urls.is_clear(conf.transport_url):
        raise ConfigError(f"{where} {_ENCODE}")
    scheme = conf.transport_url.partition("://")[0]
    if scheme not in ("rabbit", "kombu"):
        raise ConfigError(f"{where}: {scheme}:// is not supported; allowed: rabbit://")
    rabbit = conf.oslo_messaging_rabbit
    pool, threads = rabbit.rpc_conn_pool_size, conf.executor_thread_pool_size
    if pool < threads:
        raise ConfigError(
            f"{place(conf, 'rpc_conn_pool_size', 'oslo_messaging_rabbit')} = {pool} must not be "
            f"less than {place(conf, 'executor_thread_pool_size')} = {threads}"
        )
    return []


def check_database(conf: cfg.ConfigOpts) -> list[str]:
    """Check what a program with a database needs; return warnings.

    :raises ConfigError: a rule is broken
    """
    url = conf.database.connection or ""
    scheme, separator, _ = url.partition("://")
    where = place(conf, "connection", "database")
    if separator and scheme.partition("+")[0] not in _DATABASES:
        raise ConfigError(
            f"{where}: {scheme}:// is not supported; allowed: {', '.join(_DATABASES)}"
        )
    if url and not url.startswith("sqlite") and not urls.is_clear(url):
        raise ConfigError(f"{where} {_ENCODE}")
    return []
