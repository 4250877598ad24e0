# SPDX-License-Identifier: Apache-2.0
"""Client of novalite-scheduler; the conductor uses it.

1.0 first.
"""

import oslo_messaging as messaging

from novalite import context as context_module
from novalite import rpc
from novalite.objects.selection import SelectAnswer, SelectRequest

# A dead scheduler is noticed after so many seconds; a slow one, which shows that it lives, is
# waited for until long_rpc_timeout.
MONITOR_TIMEOUT = 10


class SchedulerAPI:
    """What others ask of a scheduler."""

    TARGET = messaging.Target(topic="scheduler", version="1.0")

    def __init__(self, bus: rpc.Bus):
        self._client = bus.client(self.TARGET, "scheduler")
        self._conf = bus.conf

    def select_destinations(
        self, context: context_module.RequestContext, *, requests: list[SelectRequest]
    ) -> list[SelectAnswer]:
        """Return an answer for each request, in their order; one call carries many.

        :raises exception.BusUnavailable: no scheduler answered
        :raises exception.DatabaseUnavailable: the scheduler cannot read the hosts
        """
        answers: list[SelectAnswer] = rpc.call(
            self._client.prepare(call_monitor_timeout=MONITOR_TIMEOUT),
            context,
            "select_destinations",
            float(self._conf.long_rpc_timeout),
            requests=requests,
        )
        return answers
