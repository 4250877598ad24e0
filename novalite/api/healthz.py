# SPDX-License-Identifier: Apache-2.0
"""``GET /healthz``: for load balancers and monitors, in front of the application.

It needs no token, is not in the access log and answers within :data:`novalite.health.TIMEOUT`
seconds whatever is away. Without the database nothing can be served: 503. Without the bus reads
work and new requests are taken as rows, which are driven when it is back; so the answer is 200 with
the status ``degraded``, or a load balancer would take away what still works.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oslo_config import cfg

from novalite import broker, health
from novalite.db import engine

PATH = "/healthz"


def checks(conf: cfg.ConfigOpts, database: engine.Database) -> list[health.Check]:
    """Return what the API uses. It has no queue of its own, so the bus is tried by a new
    connection, which is what each of its casts may come to need."""

    def bus() -> None:
        broker.round_trip(conf, health.TIMEOUT)

    def nothing() -> None:
        raise broker.Refused("what failed was a new connection already")

    return [database.check(), health.Check("bus", bus, nothing, needed=False)]


class Healthz:
    """WSGI: answers /healthz itself and passes on everything else."""

    def __init__(self, application: Callable[..., Iterable[bytes]], found: Sequence[health.Check]):
        self._application = application
        self._health = health.Health(found)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one request."""
        if environ.get("PATH_INFO") != PATH or environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return self._application(environ, start_response)
        report = self._health.report()
        body = json.dumps(report.body()).encode() + b"\n"
        reason = "OK" if report.http_status == 200 else "Service Unavailable"
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
        ]
        start_response(f"{report.http_status} {reason}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
