# SPDX-License-Identifier: Apache-2.0
"""``novalite.wsgi:application``: the Compute API for gunicorn, uWSGI or any other WSGI server.

Importing this opens no connection: the first request of each process makes bus and database, so
that a server may load it once and fork afterwards. The configuration files are named by the
environment variable NOVALITE_CONFIG_FILES (separated by colons), default
/etc/novalite/novalite.conf. The threads are those of the server; NOVALITE_CONCURRENCY_BACKEND
says ``eventlet`` only if the server itself is green. With a database that is not at the revision of
this program requests are answered 503, the log says why, and each request looks again.
"""

import json
import logging
import os
import threading
from collections.abc import Iterable
from typing import Any

from novalite import concurrency

FILES = "NOVALITE_CONFIG_FILES"

os.environ.setdefault(concurrency.ENVIRONMENT, "threading")
concurrency.setup([])

_lock = threading.Lock()
_made: tuple[int, Any] | None = None
_conf: Any = None


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Serve one request."""
    answer: Iterable[bytes] = _application()(environ, start_response)
    return answer


def _application() -> Any:
    """Return this process's application; the first call makes it."""
    global _made
    made = _made
    if made is None or made[0] != os.getpid():
        with _lock:
            made = _made
            if made is None or made[0] != os.getpid():
                application = _make()
                if application is None:
                    return _unavailable
                made = _made = (os.getpid(), application)
    return made[1]


def _unavailable(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    from novalite import exception
    from novalite.api import errors

    body = json.dumps(errors.body(503, exception.DatabaseUnavailable().message())).encode()
    headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Retry-After", errors.RETRY_AFTER),
    ]
    start_response("503 Service Unavailable", headers)
    return [body]


def _make() -> Any:
    """Make bus, database and application; a forked process takes over the options alone.

    :returns: None if the tables are not those of this program
    """
    global _conf
    if _conf is None:
        _conf = _load()

    from novalite import rpc
    from novalite.api import manager
    from novalite.conf import load
    from novalite.db import engine, storage

    try:
        storage.check(_conf)
    except load.ConfigError as error:
        logging.getLogger(__name__).error("%s", error)
        return None
    made, _policy = manager.make_wsgi(
        _conf, rpc.Bus(_conf), engine.Database(_conf), rpc.Sender("wake-ups")
    )
    return made


def _load() -> Any:
    from novalite import conf as conf_module
    from novalite import log
    from novalite.api import policy
    from novalite.conf import load, messaging, rules

    conf = conf_module.CONF
    loader = load.Loader(
        conf,
        "novalite-api",
        [word for path in _files() for word in ("--config-file", path)],
        [log.register_opts, messaging.register_opts],
        [rules.check_bus, rules.check_database, policy.check_files],
    )
    cautions = loader.load()
    log.setup(conf, "novalite-api")
    for caution in cautions:
        logging.getLogger(__name__).warning("%s", caution)
    return conf


def _files() -> list[str]:
    return [path for path in os.environ.get(FILES, "").split(":") if path]
