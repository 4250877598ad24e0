# SPDX-License-Identifier: Apache-2.0
"""A process that calls a conductor many times at once; as a program it can be thrown away.

``python -m tests.functional.callers TRANSPORT_URL COUNT TIMEOUT`` reports for a host that nobody
knows, COUNT times side by side. It prints its reply queue, and in the end what became of the calls.
"""

import sys
import time
from collections import Counter
from concurrent import futures

import kombu.transport
from oslo_config import cfg
from oslo_messaging._metrics import client as metrics
from oslo_messaging._tracing import client as tracing

from novalite import context, exception, rpc
from novalite.conductor import rpcapi
from novalite.conf import base, upgrade_levels
from novalite.conf import messaging as messaging_options
from novalite.objects import build

HOST = "nobody"
THREADS = 64


class Caller:
    """A client of the conductor with a bus of its own.

    :param url: transport_url
    """

    def __init__(self, url: str):
        conf = cfg.ConfigOpts()
        base.register_opts(conf)
        upgrade_levels.register_opts(conf)
        messaging_options.register_opts(conf)
        # The library registers these for the one ConfigOpts of a service only.
        conf.register_opts(tracing.oslo_messaging_tracing, group="oslo_messaging_tracing")
        conf.register_opts(metrics.oslo_messaging_metrics, group="oslo_messaging_metrics")
        conf([], default_config_files=[], default_config_dirs=[])
        conf.set_override("transport_url", url)
        conf.set_override("rpc_conn_pool_size", 8, group="oslo_messaging_rabbit")
        # What came first in this process may have used the transport that the bus replaces.
        kombu.transport._transport_cache.clear()
        self.bus = rpc.Bus(conf)
        self.conductor = rpcapi.ConductorAPI(self.bus)

    @property
    def reply_queue(self) -> str:
        """Name of the queue in which answers arrive."""
        return str(self.bus.transport._driver._get_reply_q())

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_what: object) -> None:
        self.bus.close()

    def report(self, timeout: float) -> tuple[str, float]:
        """Report once; return how it ended and the seconds it took."""
        report = build.Report(
            host=HOST, binary="nova-compute", epoch=1, counter=1, in_hand=[], items=[]
        )
        began = time.monotonic()
        try:
            answer = self.conductor.report_state(
                context.service_context(), report=report, timeout=timeout
            )
        except exception.BusUnavailable:
            return "none", time.monotonic() - began
        return "unknown" if answer.unknown else "odd", time.monotonic() - began

    def reports(self, count: int, timeout: float) -> list[tuple[str, float]]:
        """Report many times side by side."""
        with futures.ThreadPoolExecutor(min(count, THREADS)) as pool:
            return list(pool.map(lambda _number: self.report(timeout), range(count)))


if __name__ == "__main__":
    with Caller(sys.argv[1]) as made:
        print(made.reply_queue, flush=True)
        ends = made.reports(int(sys.argv[2]), float(sys.argv[3]))
        print(dict(Counter(how for how, _ in ends)), flush=True)
