# SPDX-License-Identifier: Apache-2.0
"""novalite-scheduler's endpoint: refreshes the hosts, decides, keeps what was selected in mind.

The deciding itself is the pure :mod:`novalite.scheduler.pipeline`; here are its surroundings:
options, locks, logging, RPC. It never writes to the database.
"""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg

from novalite import context as context_module
from novalite import exception, health, log, periodic, rpc
from novalite.conductor import rpcapi as conductor_rpcapi
from novalite.objects import selection
from novalite.objects.decision import Decision
from novalite.objects.inquiry import CapacityReport, Examination
from novalite.objects.request_spec import RequestSpec
from novalite.objects.selection import SelectAnswer, SelectRequest
from novalite.scheduler import filters, host_manager, inquiry, weights
from novalite.scheduler.fleet import Fleet
from novalite.scheduler.heartbeat import Heartbeat
from novalite.scheduler.host_state import HostState
from novalite.scheduler.pipeline import Outcome, Pipeline

LOG = log.get(__name__)
FILTER_LOG = log.get(log.FILTERS)


class SchedulerManager:
    """Finds hosts for servers.

    :param load: brings changed hosts, see :mod:`novalite.scheduler.host_manager`
    :param unplaced: tells which of these servers are still to be placed
    :param aggregates: brings the hosts' aggregates when they have changed
    :param fail: ends the process with a reason
    :param leads: keeps the record of the service, which all workers of a host share
    :param checks: tell whether what *load* reads from is there
    :raises exception.ConfigurationError: a filter is unknown
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        load: host_manager.Load,
        unplaced: host_manager.Unplaced,
        conductor: conductor_rpcapi.ConductorAPI,
        fail: Callable[[str], None],
        checks: Sequence[health.Check] = (),
        *,
        aggregates: host_manager.Aggregates = host_manager.no_aggregates,
        leads: bool = True,
    ):
        self.conf = conf
        self._checks = checks
        self._pipeline = make_pipeline(conf)
        self._hosts = host_manager.HostManager(load, _settings(conf), unplaced, aggregates)
        self._heartbeat = Heartbeat(conf, conductor, fail, leads=leads)

    # -- life

    def init_host(self) -> None:
        """Read all hosts, so that the first request need not wait for it."""
        try:
            self._hosts.refresh()
        except exception.Unavailable as error:
            LOG.warning("Hosts will be read with the first request: %s", error.message())

    def endpoints(self) -> list[tuple[str, list[Any]]]:
        """One topic."""
        return [("scheduler", [SchedulerEndpoint(self)])]

    def periodic_tasks(self) -> list[periodic.Periodic]:
        """Registration and heartbeat."""
        heartbeat = self._heartbeat
        return [periodic.Periodic("report_state", heartbeat.beat, heartbeat.spacing, at_once=True)]

    def health_checks(self) -> list[health.Check]:
        """The database, where the hosts are read."""
        return list(self._checks)

    def reload(self) -> None:
        """Use the options as they are now, from the next request on.

        :raises exception.ConfigurationError: a filter is unknown; the former ones stay
        """
        self._pipeline = make_pipeline(self.conf)
        self._hosts.configure(_settings(self.conf))

    def drain(self, timeout: float) -> None:
        """Requests run in the server's own threads, which are waited for."""

    def stop(self) -> None:
        """Nothing of ours is left to stop."""

    # -- what the endpoint does

    def select_destinations(
        self, context: context_module.RequestContext, requests: list[SelectRequest]
    ) -> list[SelectAnswer]:
        """Step 3: answer each request on its own; a trouble with one is no trouble of another.

        :raises exception.DatabaseUnavailable: the hosts cannot be read
        """
        pipeline = self._pipeline
        # What an earlier answer led to, a refusal for example, may be younger than the last look.
        self._hosts.refresh(fresh=any(request.unused for request in requests))
        answers = []
        for request in requests:
            answer = self._answer(pipeline, request, final=not self._hosts.selected())
            if answer is None:
                # What was selected may have come to nothing, or be gone again, by now.
                self._hosts.refresh(fresh=True)
                answer = self._answer(pipeline, request, final=True)
            if answer is not None:
                answers.append(answer)
            # A long batch must not keep the other green threads from the bus.
            time.sleep(0)
        return answers

    def examine_hosts(self, spec: RequestSpec, names: list[str]) -> Examination:
        """Tell what all filters say of hosts; nothing is selected and nothing changes.

        :raises exception.DatabaseUnavailable: the hosts cannot be read
        """
        pipeline = self._pipeline
        hosts, age = self._copies(spec)
        examiner = inquiry.Examiner(pipeline, hosts, spec)
        answer = examiner.examination(names, age)
        for index in inquiry.named(hosts, names)[0]:
            answer.hosts.append(examiner.verdict(index))
            time.sleep(0)
        return answer

    def count_capacity(self, spec: RequestSpec, names: list[str]) -> CapacityReport:
        """Count how many such servers more fit hosts; nothing is selected and nothing changes.

        :raises exception.DatabaseUnavailable: the hosts cannot be read
        """
        pipeline = self._pipeline
        hosts, age = self._copies(spec)
        demand = pipeline.demand(spec, hosts)
        indexes, unknown = inquiry.named(hosts, names)
        report = inquiry.report(demand.need, unknown, age)
        for index in indexes:
            counted = inquiry.capacity_of(pipeline, hosts[index], demand, spec.flavor.flavorid)
            report.hosts.append(counted)
            time.sleep(0)
        return report

    def _copies(self, spec: RequestSpec) -> tuple[list[HostState], float]:
        """Return copies of the hosts that do not count this server's own selection, and their age.

        Questions are answered outside of the lock, so that no build waits for them.
        """
        self._hosts.refresh(fresh=True)
        with self._hosts.hosts() as hosts:
            copies = [host.copy() for host in hosts]
            age = self._hosts.picture_age()
        for host in copies:
            host.release(spec.instance_uuid)
        return copies, age

    def _answer(
        self, pipeline: Pipeline, request: SelectRequest, *, final: bool
    ) -> SelectAnswer | None:
        """Decide one request; None if there is no host for it and *final* is not set."""
        with self._hosts.hosts() as hosts:
            return self._answer_from(hosts, pipeline, request, final)

    def _answer_from(
        self, hosts: Fleet, pipeline: Pipeline, request: SelectRequest, final: bool
    ) -> SelectAnswer | None:
        context = context_module.from_wire(request.context)
        specs = request.specs
        try:
            self._hosts.drop(request.unused)
            self._hosts.drop(spec.instance_uuid for spec in specs)
            began = time.perf_counter()
            outcome = pipeline.schedule(hosts, specs, self._hosts.picture_age())
            took = time.perf_counter() - began
        except Exception as error:
            LOG.exception("The scheduler could not decide", context=context)
            reason = f"The scheduler could not decide ({type(error).__name__})."
            if isinstance(error, exception.SchedulerExtensionBroken):
                reason = error.message()
            return SelectAnswer(request.key, error=selection.FAILED, reason=reason)
        for decision in outcome.decisions:
            decision.took = round(took / len(outcome.decisions), 6)
        if not outcome.found:
            if not final:
                return None
            return self._no_valid_host(request, outcome.decisions[0], context)
        self._hosts.select(specs, outcome.hosts)
        _log_selections(specs, outcome, context)
        return SelectAnswer(request.key, outcome.selections, outcome.decisions)

    def _no_valid_host(
        self,
        request: SelectRequest,
        decision: Decision,
        context: context_module.RequestContext,
    ) -> SelectAnswer:
        _log_filters(request, decision, context)
        return SelectAnswer(
            request.key,
            decisions=[decision],
            error=selection.NO_VALID_HOST,
            reason=_reason(request.specs[0], decision),
            only_compute_filter=decision.only("ComputeFilter"),
            recently_seen=self._hosts.recently_seen(),
            settling=self._is_settling(),
        )

    def _is_settling(self) -> bool:
        """Tell whether a host that is down may only not have been heard yet.

        After a start, or when the bus was away, this scheduler may be back before the hosts are.
        """
        short = self._heartbeat.answered_for() < float(self.conf.service_down_time)
        return short and self._hosts.any_away()


class SchedulerEndpoint:
    """Topic ``scheduler``."""

    target = messaging.Target(version="1.1")

    def __init__(self, manager: SchedulerManager):
        self._manager = manager

    @rpc.expose
    def select_destinations(
        self, context: context_module.RequestContext, requests: list[SelectRequest]
    ) -> list[SelectAnswer]:
        """See SchedulerAPI.select_destinations."""
        return self._manager.select_destinations(context, requests)

    @rpc.expose
    def examine_hosts(
        self, context: context_module.RequestContext, spec: RequestSpec, hosts: list[str]
    ) -> Examination:
        """See SchedulerAPI.examine_hosts."""
        return self._manager.examine_hosts(spec, hosts)

    @rpc.expose
    def count_capacity(
        self, context: context_module.RequestContext, spec: RequestSpec, hosts: list[str]
    ) -> CapacityReport:
        """See SchedulerAPI.count_capacity."""
        return self._manager.count_capacity(spec, hosts)


def make_pipeline(conf: cfg.ConfigOpts, rng: random.Random | None = None) -> Pipeline:
    """Return the pipeline that the options describe.

    :param rng: draws where the options ask for chance; by default one of its own
    :raises exception.ConfigurationError: a filter is unknown
    """
    options = conf.filter_scheduler
    return Pipeline(
        filters.load(options.enabled_filters, options, options.available_filters),
        weights.load(
            {name: float(options[name]) for name in weights.WEIGHERS}, options.weight_classes
        ),
        host_subset_size=int(options.host_subset_size),
        shuffle=bool(options.shuffle_best_same_weighed_hosts),
        max_attempts=int(conf.scheduler.max_attempts),
        rng=rng,
    )


def _settings(conf: cfg.ConfigOpts) -> host_manager.Settings:
    return host_manager.Settings(
        service_down_time=float(conf.service_down_time),
        refresh_interval=float(conf.scheduler.host_refresh_interval + conf.testing.refresh_delay),
        sweep_interval=float(conf.scheduler.host_sweep_interval),
        default_zone=conf.default_availability_zone,
        compare=bool(conf.testing.compare_shortlists),
    )


def _log_selections(
    specs: list[RequestSpec], outcome: Outcome, context: context_module.RequestContext
) -> None:
    for spec, picked, decision in zip(specs, outcome.selections, outcome.decisions, strict=True):
        LOG.info(
            "step=3 host %s is selected, alternates %s; %s",
            picked[0].host,
            [alternate.host for alternate in picked[1:]],
            decision.summary(),
            context=context,
            instance=spec.instance_uuid,
        )


def _reason(spec: RequestSpec, decision: Decision) -> str:
    """Return the text of NoValidHost; a host that was named in the request may be named here."""
    text = decision.reason_text()
    if not decision.forced:
        return text
    name = spec.force_host or spec.force_node
    codes = {code for count in decision.filters for code in count.codes}
    if "already_tried" in codes:
        return f"{text} Only host {name} was asked for, and the build failed there."
    if "host_down" in codes:
        return f"{text} Host {name} is down."
    if spec.force_node is None:
        return f"{text} Host {name} was not found."
    on = f" on host {spec.force_host}" if spec.force_host else ""
    return f"{text} Node {spec.force_node} was not found{on}."


def _log_filters(
    request: SelectRequest, decision: Decision, context: context_module.RequestContext
) -> None:
    """Write the two lines that operators look for."""
    spec = request.specs[0]
    results = []
    for count in decision.filters:
        results.append(f"{count.filter}: (start: {count.start}, end: {count.end})")
        if count.end == 0:
            FILTER_LOG.info("Filter %s returned 0 hosts", count.filter, context=context)
            break
    FILTER_LOG.info(
        "Filtering removed all hosts for the request with instance ID '%s'. Filter results: %s",
        spec.instance_uuid,
        results,
        context=context,
    )
    if decision.forced:
        LOG.info(
            "No hosts matched due to not matching 'force_hosts' value of '%s'",
            spec.force_host or spec.force_node,
            context=context,
        )
