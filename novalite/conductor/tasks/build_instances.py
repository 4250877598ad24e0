# SPDX-License-Identifier: Apache-2.0
"""How a boot works. This file is the map; compute/build.py is the other half.

step  process    code                                                      what happens
1     api        api.operations:create_servers                             rows first, then a cast
2     conductor  conductor.tasks.build_instances:BuildInstances.execute    take, call the scheduler
3     scheduler  scheduler.manager:SchedulerManager.select_destinations    filter, weigh, choose
4     conductor  conductor.tasks.build_instances:BuildInstances.start      attempt + 1, cast
5     compute    compute.build:build_and_run_instance                      claim, begin, spawn
6     conductor  conductor.tasks.build_instances:BuildInstances.reschedule another host, or ERROR

The rows decide, messages only wake: whatever is lost or comes twice is met by a compare-and-set in
db/builds.py and db/attempts.py, and what nobody drives any more is found by conductor/recovery.py.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from novalite import context as context_module
from novalite import crash, exception, log
from novalite.compute import rpcapi as compute_rpcapi
from novalite.conductor import leases as leases_module
from novalite.conductor.tasks import companions
from novalite.db import actions, builds
from novalite.db.engine import Database
from novalite.objects import base, loss, selection
from novalite.objects.action import ActionEvent
from novalite.objects.build import BuildRequest
from novalite.objects.decision import Decision
from novalite.objects.instance import Instance, InstanceFault
from novalite.objects.request_spec import Limits, Selection
from novalite.scheduler import rpcapi as scheduler_rpcapi

LOG = log.get(__name__)

EVENT = "conductor_schedule_and_build_instances"
# Seconds until another try when bus, database or every host is away (rules 5 and 14).
RETRY_DELAY = 2.0


@dataclass(slots=True)
class Plan:
    """What is to become of one taken build: a host, a fault, or neither (wait)."""

    taken: builds.Taken
    began: float
    chosen: Selection | None = None
    alternates: list[Selection] = field(default_factory=list)
    decision: Decision | None = None
    fault: InstanceFault | None = None

    def event(self, host: str, attempt: int) -> ActionEvent:
        """Return the step of the action's history that this plan is."""
        details: dict[str, Any] = {}
        if self.decision is not None:
            details["decision"] = base.encode(self.decision)
        if self.chosen is not None:
            details["host"], details["node"] = self.chosen.host, self.chosen.node
            details["limits"] = base.encode(self.chosen.limits)
        return ActionEvent(
            event=EVENT,
            host=host,
            start=self.began,
            finish=time.time(),
            result="Error" if self.fault else "Success",
            details=details,
            attempt=attempt,
        )


class BuildInstances:
    """Drives open builds from "waits for a host" to "cast to a compute"."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        database: Database,
        scheduler: scheduler_rpcapi.SchedulerAPI,
        compute: compute_rpcapi.ComputeAPI,
        leases: leases_module.Leases,
    ):
        self.conf = conf
        self._database = database
        self._scheduler = scheduler
        self._compute = compute
        self._leases = leases

    def execute(self, reservations: list[str]) -> None:
        """Steps 2 to 4 for every open, not started build of these reservations.

        One transaction takes them, one call selects for all of them, one transaction starts them.
        """
        owner = self._leases.new_owner()
        try:
            taken = self._database.transaction(
                lambda conn: builds.take(conn, reservations, owner, self._leases.lease)
            )
            if not taken:
                return
            crash.point(self.conf, "conductor.after_take")
            for build in taken:
                LOG.info(
                    "step=2 build is taken",
                    context=build.context,
                    instance=build.action.instance_uuid,
                )
            plans = [plan for build in taken if (plan := self.reschedule(build))]
            planned = {plan.taken.action.id for plan in plans}
            plans += self._select([build for build in taken if build.action.id not in planned])
            crash.point(self.conf, "conductor.after_select")
            self.start(plans)
        finally:
            self._leases.drop(owner)

    def reschedule(self, taken: builds.Taken) -> Plan | None:
        """Step 6: go to the next alternate of the last selection, if there is one left."""
        left: list[Selection] = base.decode(taken.action.args.get("alternates", []))
        left = [candidate for candidate in left if candidate.host not in taken.action.failures]
        if not left or not taken.action.attempt:
            return None
        LOG.info(
            "step=6 the build goes to the next alternate",
            context=taken.context,
            instance=taken.action.instance_uuid,
        )
        return Plan(taken, time.time(), chosen=left[0], alternates=left[1:])

    def _select(self, waiting: list[builds.Taken]) -> list[Plan]:
        """Step 3: ask the scheduler, once for all that wait; a reservation is one request."""
        if not waiting:
            return []
        began = time.time()
        companions.fill(self._database, [build.spec for build in waiting])
        groups: dict[str, list[builds.Taken]] = {}
        for build in waiting:
            groups.setdefault(build.action.reservation_id, []).append(build)
        members = list(groups.values())
        requests = [
            selection.SelectRequest(
                key=key,
                specs=[build.spec for build in group],
                unused=[b.action.instance_uuid for b in group if b.action.attempt],
                context=group[0].context.to_wire(),
            )
            for key, group in enumerate(members)
        ]
        try:
            answers = self._scheduler.select_destinations(waiting[0].context, requests=requests)
        except exception.Unavailable:
            LOG.warning("No scheduler answers; %d builds wait", len(waiting))
            return [Plan(build, began) for build in waiting]
        plans = []
        for answer in answers:
            plans += self._plans(members[answer.key], answer, began)
        return plans

    def _plans(
        self, group: list[builds.Taken], answer: selection.SelectAnswer, began: float
    ) -> list[Plan]:
        """Turn one answer into a plan for each member of the reservation."""
        plans = []
        for index, taken in enumerate(group):
            plan = Plan(taken, began)
            if answer.decisions:
                plan.decision = answer.decisions[min(index, len(answer.decisions) - 1)]
            if answer.error is None:
                plan.chosen, *plan.alternates = answer.selections[index]
            elif not _may_come_back(answer):
                plan.fault = _no_valid_host(taken, answer, plan.decision)
            plans.append(plan)
        return plans

    def start(self, plans: list[Plan]) -> None:
        """Step 4: write attempt and target of each build, then cast it to its compute.

        A plan without a host ends the build in ERROR, or lets it wait.
        """
        started = self._database.transaction(lambda conn: self._write(conn, plans))
        crash.point(self.conf, "conductor.after_start")
        by_host: dict[str, list[BuildRequest]] = {}
        for taken, request in started:
            host = str(taken.action.target_host)
            by_host.setdefault(host, []).append(request)
            LOG.info(
                "step=4 attempt %d goes to host %s",
                request.attempt,
                host,
                context=taken.context,
                instance=request.instance.uuid,
            )
        for host, requests in by_host.items():
            self.cast(host, requests)
        crash.point(self.conf, "conductor.after_cast")

    def cast(self, host: str, requests: list[BuildRequest]) -> None:
        """Send builds to a compute; if the bus does not take them, recovery sends them again."""
        context = context_module.from_wire(requests[0].context)
        try:
            self._compute.build_and_run_instances(context, host=host, builds=requests)
        except Exception as error:
            LOG.warning(
                "%d builds for host %s were not sent (%s); they will be",
                len(requests),
                host,
                type(error).__name__,
            )

    def _write(
        self, conn: sa.Connection, plans: list[Plan]
    ) -> list[tuple[builds.Taken, BuildRequest]]:
        """Return what was started. The transaction may be repeated, so no plan is changed."""
        started: list[tuple[Plan, builds.Taken]] = []
        for plan in plans:
            taken = plan.taken
            if plan.fault is not None:
                # Of an attempt that never starts; the history of the last one stays as it is.
                event = plan.event(self.conf.host, taken.action.attempt + 1)
                if builds.fail_taken(conn, taken, plan.fault, event):
                    LOG.info(
                        "step=6 %s",
                        plan.fault.message,
                        context=taken.context,
                        instance=taken.action.instance_uuid,
                    )
            elif plan.chosen is None:
                if builds.give_back(conn, taken, RETRY_DELAY):
                    event = plan.event(self.conf.host, taken.action.attempt + 1)
                    event.event, event.result = loss.WAIT, None
                    actions.put_events(conn, taken.action.id, event.attempt, [event], new=False)
            elif build := self._start(conn, plan, plan.chosen):
                started.append((plan, build))
        found = builds.load_instances(conn, [build.action.instance_uuid for _, build in started])
        requests = []
        for plan, build in started:
            action = build.action
            event = plan.event(self.conf.host, action.attempt)
            actions.put_events(conn, action.id, action.attempt, [event], new=True)
            if action.instance_uuid in found:
                limits = plan.chosen.limits if plan.chosen else None
                requests.append((build, request_of(build, found[action.instance_uuid], limits)))
        return requests

    def _start(self, conn: sa.Connection, plan: Plan, chosen: Selection) -> builds.Taken | None:
        lease = float(self.conf.conductor.begin_timeout)
        return builds.start(conn, plan.taken, chosen.host, chosen.node, _args(plan), lease)


def request_of(taken: builds.Taken, instance: Instance, limits: Limits | None) -> BuildRequest:
    """Return the message that tells a compute to build this attempt."""
    return BuildRequest(
        action_id=taken.action.id,
        attempt=taken.action.attempt,
        node=taken.action.target_node or "",
        instance=instance,
        spec=taken.spec,
        limits=limits,
        context=taken.context.to_wire(),
    )


def _args(plan: Plan) -> dict[str, Any]:
    """What recovery or the next attempt needs to know of this one."""
    args = dict(plan.taken.action.args)
    args["alternates"] = base.encode(plan.alternates)
    if plan.chosen is not None:
        args["zone"] = plan.chosen.zone or args.get("zone")
        args["limits"] = base.encode(plan.chosen.limits)
    group = companions.guarded(plan.taken.spec)
    if group is not None:
        args["group"] = group
    return args


def _may_come_back(answer: selection.SelectAnswer) -> bool:
    """Tell whether the hosts that are missing are worth waiting for (rule 14)."""
    if answer.error != selection.NO_VALID_HOST:
        return False
    return answer.settling or (answer.only_compute_filter and answer.recently_seen)


def _no_valid_host(
    taken: builds.Taken, answer: selection.SelectAnswer, decision: Decision | None
) -> InstanceFault:
    """Word the fault; hosts are named in the details only, which administrators see."""
    reason = answer.reason
    failed = len(taken.action.failures)
    if failed:
        reason = f"{reason} The candidate hosts were used up: the build failed on {failed} of them."
    details = [*taken.action.args.get("tried", [])]
    if decision is not None:
        details.append(decision.text())
    return InstanceFault(
        code=500,
        message=exception.NoValidHost(reason=reason).message(),
        details="\n".join(details),
        created_at=time.time(),
    )
