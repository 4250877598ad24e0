# SPDX-License-Identifier: Apache-2.0
"""Client of novalite-scheduler; the conductor uses it, and the API for questions.

1.0 first.
1.1 examine_hosts and count_capacity, for the API.
"""

import oslo_messaging as messaging

from novalite import context as context_module
from novalite import rpc
from novalite.objects.inquiry import CapacityReport, Examination
from novalite.objects.request_spec import RequestSpec
from novalite.objects.selection import SelectAnswer, SelectRequest

# A dead scheduler is noticed after so many seconds; a slow one, which shows that it lives, is
# waited for until long_rpc_timeout.
MONITOR_TIMEOUT = 10


class SchedulerAPI:
    """What others ask of a scheduler."""

    TARGET = messaging.Target(topic="scheduler", version="1.1")

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

    def examine_hosts(
        self,
        context: context_module.RequestContext,
        *,
        spec: RequestSpec,
        hosts: list[str],
        timeout: float,
    ) -> Examination:
        """Return what all filters say of these hosts for a request; nothing is selected.

        :param hosts: names of hosts or nodes; empty: all
        :param timeout: seconds
        :raises exception.BusUnavailable: no scheduler answered in time
        :raises exception.DatabaseUnavailable: the scheduler cannot read the hosts
        """
        examination: Examination = rpc.call(
            self._client.prepare(call_monitor_timeout=MONITOR_TIMEOUT),
            context,
            "examine_hosts",
            timeout,
            spec=spec,
            hosts=hosts,
        )
        return examination

    def count_capacity(
        self,
        context: context_module.RequestContext,
        *,
        spec: RequestSpec,
        hosts: list[str],
        timeout: float,
    ) -> CapacityReport:
        """Return how many such servers more fit these hosts; nothing is selected.

        :param hosts: names of hosts or nodes; empty: all
        :param timeout: seconds
        :raises exception.BusUnavailable: no scheduler answered in time
        :raises exception.DatabaseUnavailable: the scheduler cannot read the hosts
        """
        report: CapacityReport = rpc.call(
            self._client.prepare(call_monitor_timeout=MONITOR_TIMEOUT),
            context,
            "count_capacity",
            timeout,
            spec=spec,
            hosts=hosts,
        )
        return report
