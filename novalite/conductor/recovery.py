# SPDX-License-Identifier: Apache-2.0
"""Finds work that nobody drives any more and drives it (rules 4, 5, 6, 8, 14).

Runs in every conductor; what two of them find at the same time is decided by compare-and-set. A
dead process or a lost message is no failure of a host: it counts in drives, and the host stays
eligible.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from novalite import context as context_module
from novalite import exception, log
from novalite.compute import rpcapi as compute_rpcapi
from novalite.conductor import silence
from novalite.conductor.tasks import build_instances
from novalite.db import actions, builds, deletes, failures, instances, schema, services
from novalite.db.engine import Database, now
from novalite.network import client as network_client
from novalite.objects import base, loss
from novalite.objects.action import Action, ActionEvent
from novalite.objects.build import BuildRequest, DestroyRequest
from novalite.objects.request_spec import Limits, RequestSpec
from novalite.objects.service import Service
from novalite.objects.states import ActionState, Step
from novalite.volume import client as volume_client

LOG = log.get(__name__)

# Rows looked at in one pass.
PASS = 50
# Recasts of an attempt that has not begun; then another host gets the next attempt.
RECASTS = 3
# Seconds for which an action is left alone that cannot be looked at (its rows cannot be read).
PUT_OFF = 30.0

_a = schema.instance_actions
_c = schema.cleanups

_DUE = (
    sa.select(_a)
    .where(_a.c.state.in_(actions.OPEN), _a.c.deadline < now())
    .order_by(_a.c.deadline)
    .limit(PASS)
)
_DUE_CLEANUPS = (
    sa.select(_c)
    .where(_c.c.deadline < now(), _c.c.host.in_(sa.bindparam("hosts", expanding=True)))
    .order_by(_c.c.deadline)
    .limit(PASS)
)
_LATER = (
    sa.update(_a)
    .where(
        _a.c.id == sa.bindparam("action_id_"),
        _a.c.state == sa.bindparam("state_"),
        _a.c.attempt == sa.bindparam("attempt_"),
        _a.c.deadline == sa.bindparam("seen_"),
    )
    .values(
        deadline=now() + sa.bindparam("lease"),
        recasts=_a.c.recasts + sa.bindparam("recasts_"),
        drives=_a.c.drives + sa.bindparam("drives_"),
        args=sa.bindparam("args_"),
        updated=now(),
    )
)
_SPEC = sa.select(schema.request_specs.c.spec).where(
    schema.request_specs.c.instance_uuid == sa.bindparam("uuid_")
)


@dataclass(slots=True)
class _Pass:
    """What one transaction of a pass decided to send after its commit."""

    drive: list[str] = field(default_factory=list)
    builds: list[tuple[str, BuildRequest]] = field(default_factory=list)
    destroys: list[tuple[str, DestroyRequest]] = field(default_factory=list)


class Recovery:
    """One conductor's recovery."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        database: Database,
        compute: compute_rpcapi.ComputeAPI,
        network: network_client.NetworkClient,
        volumes: volume_client.VolumeClient,
        watch: silence.Watch,
        drive: Callable[[list[str]], None],
        flow: build_instances.BuildInstances,
    ):
        self.conf = conf
        self._database = database
        self._compute = compute
        self._network = network
        self._volumes = volumes
        self._watch = watch
        self._drive = drive
        self._flow = flow

    def run(self) -> None:
        """One pass: every open action past its deadline, then every clean-up that is due."""
        hosts = {
            service.host: service
            for service in self._database.read(lambda conn: services.list_all(conn, "nova-compute"))
        }
        due = self._database.read(
            lambda conn: [actions.from_row(row) for row in conn.execute(_DUE)]
        )
        for action in due:
            try:
                self._look(action, hosts)
            except exception.Unavailable:
                raise
            except Exception:
                # It must not stop the others, neither now nor in the next pass.
                LOG.exception("Recovery: action %d cannot be driven", action.id)
                self._database.transaction(
                    functools.partial(self._later, action=action, seconds=PUT_OFF)
                )
        self._cleanups(hosts)

    def _look(self, action: Action, hosts: dict[str, Service]) -> None:
        if action.action == "create":
            # A transaction may be repeated, so each run begins with the action as it was read.
            work = self._database.transaction(
                lambda conn: self._build(conn, dataclasses.replace(action), hosts)
            )
        else:
            work = self._delete(action, hosts)
        if work.drive:
            self._drive(work.drive)
        for host, request in work.builds:
            self._flow.cast(host, [request])
        self._destroy(work.destroys)

    # -- builds

    def _build(self, conn: sa.Connection, action: Action, hosts: dict[str, Service]) -> _Pass:
        work = _Pass()
        if action.step is Step.SCHEDULING:
            self._scheduling(conn, action, work)
            return work
        host = str(action.target_host)
        silent = self._silent(conn, host)
        if silent:
            lost = f"attempt {action.attempt}: host {host} fell silent"
            self._leave(conn, action, loss.SILENT, lost, work)
        elif not self._up(hosts, host):
            self._later(conn, action, 1.0)
        elif action.step is Step.STARTED and action.recasts >= RECASTS:
            lost = f"attempt {action.attempt}: host {host} did not begin after {RECASTS} more casts"
            self._leave(conn, action, loss.NOT_BEGUN, lost, work)
        else:
            self._recast(conn, action, work)
        return work

    def _scheduling(self, conn: sa.Connection, action: Action, work: _Pass) -> None:
        """A wake-up got lost, or the conductor that had taken the build is gone."""
        if action.state is ActionState.PENDING:
            if self._later(conn, action, float(self.conf.conductor.pending_grace)):
                work.drive.append(action.reservation_id)
            return
        lost = f"conductor {action.owner} did not renew its lease"
        self._leave(conn, action, loss.LEASE, lost, work)

    def _leave(
        self, conn: sa.Connection, action: Action, code: str, lost: str, work: _Pass
    ) -> None:
        begun = action.step is Step.BEGUN
        if builds.leave(conn, action, guest_may_be_left=begun, loss=lost, unless_renewed=True):
            self._lost(conn, action, code, lost)
            self._or_fail(conn, action, work)

    def _or_fail(self, conn: sa.Connection, action: Action, work: _Pass) -> None:
        fault = failures.exhausted(action, int(self.conf.scheduler.max_attempts))
        if fault is None:
            work.drive.append(action.reservation_id)
        else:
            builds.fail(conn, action, fault)

    def _recast(self, conn: sa.Connection, action: Action, work: _Pass) -> None:
        """The same attempt is cast to the same host again."""
        what = (
            "begun work was not named in two reports" if action.step is Step.BEGUN else "no begin"
        )
        lost = f"attempt {action.attempt}: {what}, cast again to {action.target_host}"
        if action.drives + 1 > loss.MAX_DRIVES:
            self._leave(conn, action, loss.RECAST, lost, work)
            return
        if not self._later(
            conn, action, float(self.conf.conductor.begin_timeout), recasts=1, lost=lost
        ):
            return
        self._lost(conn, action, loss.RECAST, lost)
        row = conn.execute(_SPEC, {"uuid_": action.instance_uuid}).first()
        found = builds.load_instances(conn, [action.instance_uuid])
        if row is None or action.instance_uuid not in found:
            return
        spec: RequestSpec = base.decode(row.spec)
        limits: Limits | None = base.decode(action.args.get("limits"))
        taken = builds.Taken(action, spec, builds.context_of(action))
        request = build_instances.request_of(taken, found[action.instance_uuid], limits)
        work.builds.append((str(action.target_host), request))

    # -- deletes

    def _delete(self, action: Action, hosts: dict[str, Service]) -> _Pass:
        host = str(action.target_host)
        silent = self._database.read(lambda conn: self._silent(conn, host))
        if silent or host not in hosts:
            self._give_back(action)
            self._database.transaction(lambda conn: self._delete_without(conn, action, host))
            return _Pass()
        up = self._up(hosts, host)
        return self._database.transaction(lambda conn: self._delete_again(conn, action, up))

    def _delete_without(self, conn: sa.Connection, action: Action, host: str) -> None:
        known = services.find(conn, host, "nova-compute")
        if known is None or self._silent(conn, host):
            deletes.finish_without_host(conn, action)
            if action.target_host:
                lost = f"host {host} is silent; the server is freed without it"
                self._lost(conn, action, loss.FREED, lost)

    def _delete_again(self, conn: sa.Connection, action: Action, up: bool) -> _Pass:
        if not up:
            self._later(conn, action, 1.0)
            return _Pass()
        lost = f"the delete was cast again to {action.target_host}"
        if not self._later(conn, action, float(self.conf.conductor.begin_timeout), lost=lost):
            return _Pass()
        self._lost(conn, action, loss.RECAST, lost)
        if action.drives + 1 > loss.MAX_DRIVES:
            losses = [*action.args.get("losses", []), lost]
            deletes.fail(conn, action, "the host did not answer after many casts", losses)
            return _Pass()
        instance = instances.get(conn, action.instance_uuid)
        request = DestroyRequest(
            instance=instance,
            node=action.target_node or "",
            context=builds.context_of(action).to_wire(),
            action_id=action.id,
        )
        return _Pass(destroys=[(str(action.target_host), request)])

    def _give_back(self, action: Action) -> None:
        """Give ports and volumes back in the place of a host that cannot."""
        context, uuid = builds.context_of(action), action.instance_uuid
        server = self._database.read(lambda conn: instances.get(conn, uuid, read_deleted=True))
        brought = {info.port_id for info in server.network_info if not info.owned}
        devices, built = server.block_devices, server.launched_at is not None
        acts: list[tuple[str, Callable[[], None]]] = [
            ("Ports", lambda: self._network.deallocate(context, uuid, brought))
        ]
        if devices:
            acts.append(
                ("Volumes", lambda: self._volumes.release(context, uuid, devices, built=built))
            )
        for what, act in acts:
            try:
                act()
            except exception.NovaliteException as error:
                LOG.warning(
                    "%s were not given back: %s",
                    what,
                    error.message(),
                    context=context,
                    instance=uuid,
                )

    # -- clean-ups

    def _cleanups(self, hosts: dict[str, Service]) -> None:
        """Tell hosts that are up which guests are not the servers' any more."""
        up = [host for host in hosts if self._up(hosts, host)]
        due = self._database.read(lambda conn: conn.execute(_DUE_CLEANUPS, {"hosts": up}).all())
        for row in due:
            request = self._database.transaction(functools.partial(self._cleanup, row=row))
            if request is not None:
                self._destroy([(row.host, request)])

    def _cleanup(self, conn: sa.Connection, *, row: sa.Row[Any]) -> DestroyRequest | None:
        """Push the clean-up's deadline; return what to cast if this pass got it."""
        changed = conn.execute(
            sa.update(_c)
            .where(
                _c.c.instance_uuid == row.instance_uuid,
                _c.c.host == row.host,
                _c.c.deadline == row.deadline,
            )
            .values(deadline=now() + float(self.conf.conductor.begin_timeout))
        ).rowcount
        if not changed:
            return None
        instance = instances.get(conn, row.instance_uuid, read_deleted=True)
        context = context_module.service_context()
        return DestroyRequest(
            instance=instance, node=row.node, context=context.to_wire(), attempt=row.attempt
        )

    # -- shared

    def _destroy(self, requests: list[tuple[str, DestroyRequest]]) -> None:
        context = context_module.service_context()
        for host, request in requests:
            try:
                self._compute.destroy_instances(context, host=host, requests=[request])
            except Exception as error:
                LOG.warning(
                    "A destroy for host %s was not sent (%s); it will be",
                    host,
                    type(error).__name__,
                )

    def _up(self, hosts: dict[str, Service], host: str) -> bool:
        """Tell whether the host can be told something. An operator's forced_down does not count: it
        keeps new work away, but the host goes on reporting, so its silence is never measured."""
        service = hosts.get(host)
        if service is None or service.age is None:
            return False
        return abs(service.age) <= float(self.conf.service_down_time)

    def _silent(self, conn: sa.Connection, host: str) -> bool:
        """Tell whether the host is silent by this conductor's watch and its row still agrees."""
        watched = self._watch.silent(host)
        if watched is None:
            return False
        service = services.find(conn, host, "nova-compute")
        return service is not None and (service.epoch, service.report_count) == watched

    def _later(
        self,
        conn: sa.Connection,
        action: Action,
        seconds: float,
        *,
        recasts: int = 0,
        lost: str | None = None,
    ) -> bool:
        """Push the deadline by compare-and-set; False if somebody else was faster."""
        args = dict(action.args)
        if lost:
            args["losses"] = [*args.get("losses", []), lost]
        changed = conn.execute(
            _LATER,
            {
                "action_id_": action.id,
                "state_": action.state.value,
                "attempt_": action.attempt,
                "seen_": action.deadline,
                "lease": seconds,
                "recasts_": recasts,
                "drives_": 1 if lost else 0,
                "args_": args,
            },
        )
        return bool(changed.rowcount)

    def _lost(self, conn: sa.Connection, action: Action, code: str, lost: str) -> None:
        """Say what got lost, and keep it as a step of the action's history."""
        moment = time.time()
        event = ActionEvent(loss.EVENT, str(self.conf.host), moment, moment, "Success")
        event.details = {"code": code, "text": lost}
        actions.put_events(conn, action.id, action.attempt, [event], new=True)
        LOG.warning(
            "Recovery: %s", lost, context=builds.context_of(action), instance=action.instance_uuid
        )


def watch_hosts(database: Database, watch: silence.Watch, longest_gap: float) -> None:
    """One look of the silence watch at the heartbeat counters."""
    began = time.monotonic()
    found = database.read(lambda conn: services.list_all(conn, "nova-compute"))
    if time.monotonic() - began > longest_gap:
        watch.reset()
        return
    watch.observe(found, longest_gap)
