# SPDX-License-Identifier: Apache-2.0
"""Logging, set up once per process; the line's shape and the logger names are Nova's."""

import logging
from typing import Any

from oslo_config import cfg
from oslo_log import log

# Loggers whose name does not follow from the file they are used in: Nova's names, which operators
# grep for. Everything else uses its module's name.
ACCESS = "novalite.osapi_compute.wsgi.server"
REPORT = "novalite.scheduler.client.report"
COMPUTE_MANAGER = "novalite.compute.manager"
FILTERS = "novalite.filters"
LOGGERS = (ACCESS, REPORT, COMPUTE_MANAGER, FILTERS)

CONTEXT_FORMAT = (
    "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
    "[%(request_id)s %(user_identity)s] %(instance)s%(message)s"
)
DEFAULT_FORMAT = (
    "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [-] %(instance)s%(message)s"
)
USER_FORMAT = "%(user)s %(project)s %(domain)s %(user_domain)s %(project_domain)s"
QUIET = (
    "amqp=WARNING",
    "oslo.messaging=INFO",
    "oslo_messaging=INFO",
    "sqlalchemy=WARNING",
    "alembic=WARNING",
    "urllib3=WARNING",
    "urllib3.connectionpool=WARNING",
    "keystonemiddleware=WARNING",
    "keystoneauth=WARNING",
    "oslo_policy=WARNING",
    "stevedore=WARNING",
    "oslo.cache=WARNING",
    "dogpile=WARNING",
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register oslo.log's options with novalite's formats and quiet libraries as defaults."""
    log.register_options(conf)
    log.set_defaults(logging_context_format_string=CONTEXT_FORMAT, default_log_levels=list(QUIET))
    conf.set_default("logging_default_format_string", DEFAULT_FORMAT)
    conf.set_default("logging_user_identity_format", USER_FORMAT)


def setup(conf: cfg.ConfigOpts, program: str) -> None:
    """Start logging for *program* as the options say."""
    log.setup(conf, program)
    # A record costs a third less without the three lookups nobody prints.
    logging.logThreads = False
    logging.logMultiprocessing = False


def get(name: str) -> Any:
    """Return the logger *name* whose calls take ``context=`` and ``instance=`` (a uuid)."""
    return _Adapter(logging.getLogger(name), {})


class _Adapter(logging.LoggerAdapter):  # type: ignore[type-arg]
    """Carries the context and the instance's uuid to oslo.log's formatter."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        extra = dict(kwargs.pop("extra", None) or {})
        for name in ("context", "instance"):
            value = kwargs.pop(name, None)
            if value is not None:
                extra[name] = value
        if "instance" in extra:
            extra["instance"] = f"[instance: {extra['instance']}] "
        kwargs["extra"] = extra
        return msg, kwargs
