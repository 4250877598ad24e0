# SPDX-License-Identifier: Apache-2.0
"""oslo.messaging's options, with the defaults that novalite needs.

They are registered here, before the transport is made: the library reads some of them only then,
and a wrong value has to be found before any message is sent.
"""

from typing import Any

import oslo_messaging.opts
from oslo_config import cfg

# Groups of drivers that novalite does not use are left out, so that they are not checked either.
_GROUPS = (None, "oslo_messaging_rabbit")

DEFAULTS: dict[str | None, dict[str, Any]] = {
    None: {
        "control_exchange": "novalite",
        # What dies with the process in the library's own queue comes back by its row; more threads
        # than this only add to the number of things that are half done.
        "executor_thread_pool_size": 8,
    },
    "oslo_messaging_rabbit": {
        # What a busy service has not taken stays with the broker, where a call whose caller has
        # given up goes away and a cast may go to somebody else. As many as it can have in hand may
        # be on their way; with 4 instead of 16 it was measured to wait for the broker.
        "rabbit_qos_prefetch_count": 16,
        # At least one connection for each thread that may call at the same time.
        "rpc_conn_pool_size": 64,
        # A broker that vanished without a FIN is noticed within this many seconds; a caller that
        # waits for an answer has given up by then and asks again.
        "heartbeat_timeout_threshold": 20,
        "kombu_reconnect_delay": 0.5,
        # Connecting is tried again after 1, 2, 3, then every 4 seconds: all services are back soon
        # after the broker is, and a broker that refuses the password is not flooded.
        "rabbit_retry_interval": 1,
        "rabbit_retry_backoff": 1,
        "rabbit_interval_max": 4,
        # An answer whose caller has gone is not worth a minute of a worker's time. But after a
        # restart of the broker a caller may be back several seconds later than who answers, and
        # the library gives a caller that it once gave up no answer for a whole minute.
        "kombu_missing_consumer_retry_timeout": 15,
    },
}


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of the bus and set novalite's defaults."""
    for group, opts in oslo_messaging.opts.list_opts():
        if group in _GROUPS:
            conf.register_opts(opts, group=group)
    for group, values in DEFAULTS.items():
        for name, value in values.items():
            conf.set_default(name, value, group=group)
