# SPDX-License-Identifier: Apache-2.0
"""novalite-conductor's endpoints and threads; the flows themselves are in tasks/.

Two topics with a pool each: ``conductor`` (short calls of computes and schedulers) and
``conductor_tasks`` (wake-ups for flows).
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg

from novalite import context as context_module
from novalite import crash, exception, health, log, periodic, rpc
from novalite.compute import rpcapi as compute_rpcapi
from novalite.conductor import audit, leases, recovery, reports, silence
from novalite.conductor import rpcapi as conductor_rpcapi
from novalite.conductor.tasks import build_instances
from novalite.db import compute_nodes, services
from novalite.db.engine import Database
from novalite.network import client as network_client
from novalite.objects import build
from novalite.objects import service as service_module
from novalite.scheduler import rpcapi as scheduler_rpcapi
from novalite.volume import client as volume_client

LOG = log.get(__name__)

# Seconds between two looks for a database that is away at the start.
DATABASE_RETRY = 1.0
# Seconds until an audit that is switched off is asked for again.
DEFAULT_SPACING = 60.0
TOPICS = {
    "nova-compute": "compute",
    "nova-scheduler": "scheduler",
    "nova-conductor": "conductor",
}


class ConductorManager:
    """Registration, reports, and the driving of actions."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        bus: rpc.Bus,
        database: Database,
        fail: Callable[[str], None],
        *,
        leads: bool = True,
    ):
        """Put the parts together; nothing is started yet.

        :param leads: keeps the record of the service, which all workers of a host share
        """
        self.conf = conf
        self._leads = leads
        self._database = database
        self._fail = fail
        self._conductor = conductor_rpcapi.ConductorAPI(bus)
        self._reports = reports.Reports(conf, database)
        self._leases = leases.Leases(database, conf.host, float(conf.conductor.task_lease))
        compute = compute_rpcapi.ComputeAPI(bus)
        scheduler = scheduler_rpcapi.SchedulerAPI(bus)
        self._flow = build_instances.BuildInstances(
            conf, database, scheduler, compute, self._leases
        )
        self._flows = Flows(self._flow.execute)
        self._watch = silence.Watch(float(conf.service_down_time))
        self._recovery = recovery.Recovery(
            conf,
            database,
            compute,
            network_client.NetworkClient(conf),
            volume_client.VolumeClient(conf),
            self._watch,
            self._flows.drive,
            self._flow,
        )
        self._epoch = 0
        self._counter = 0

    # -- life

    def init_host(self) -> None:
        """Register this start in the services table; a database that is away is waited for."""
        while self._leads and not self._is_registered():
            time.sleep(DATABASE_RETRY)
        self._flows.start()

    def _is_registered(self) -> bool:
        try:
            self._register()
        except exception.DatabaseUnavailable:
            # Each try is told by db/engine.py already.
            return False
        return True

    def _register(self) -> None:
        service = self._database.transaction(
            lambda conn: services.register(
                conn, self.conf.host, "nova-conductor", "conductor", "", service_module.VERSION
            )
        )
        self._epoch, self._counter = service.epoch, 0

    def endpoints(self) -> list[tuple[str, list[Any]]]:
        """The short calls and the wake-ups, each with a pool of its own."""
        return [("conductor", [ConductorEndpoint(self)]), ("conductor_tasks", [TaskEndpoint(self)])]

    def periodic_tasks(self) -> list[periodic.Periodic]:
        """Heartbeat, renewal of leases, the silence watch, recovery, the audit."""
        conf = self.conf
        return [
            periodic.Periodic(
                "report_state", self._report_state, lambda: float(conf.report_interval)
            ),
            periodic.Periodic(
                "renew_leases",
                self._leases.renew,
                lambda: float(conf.conductor.task_renew_interval),
            ),
            periodic.Periodic("watch_hosts", self._watch_hosts, self._watch_interval),
            periodic.Periodic(
                "recovery", self._recovery.run, lambda: float(conf.conductor.recovery_interval)
            ),
            periodic.Periodic(
                "audit",
                self._audit,
                lambda: float(conf.conductor.audit_interval) or DEFAULT_SPACING,
                jitter=1.0,
            ),
        ]

    def health_checks(self) -> list[health.Check]:
        """The database; everything here is in it."""
        return [self._database.check()]

    def reload(self) -> None:
        """Take over what is not read at each use: the lease and the measure of silence."""
        self._watch.service_down_time = float(self.conf.service_down_time)
        self._leases.lease = float(self.conf.conductor.task_lease)
        try:
            # What is held was taken for the former lease; the next renewal may be later than that.
            self._leases.renew()
        except exception.DatabaseUnavailable:
            LOG.debug("The leases are renewed when the database is back")

    def drain(self, timeout: float) -> None:
        """Finish the flow that runs; what waits is found by another conductor or after a start."""
        self._flows.stop(timeout)

    def stop(self) -> None:
        """All threads are daemons and idle by now."""

    def _report_state(self) -> None:
        if not self._leads:
            return
        self._counter += 1
        counter, epoch, host = self._counter, self._epoch, self.conf.host
        taken = self._database.transaction(
            lambda conn: services.heartbeat(conn, host, "nova-conductor", epoch, counter)
        )
        if not taken:
            known = self._database.read(lambda conn: services.find(conn, host, "nova-conductor"))
            if known is None:
                self._register()
            elif known.epoch > epoch:
                self._fail(f"another conductor was started under the host name {host}")

    def _audit(self) -> None:
        if self._leads and self.conf.conductor.audit_interval:
            audit.run(self._database)

    # -- the silence watch

    def _watch_interval(self) -> float:
        """Return the seconds between two looks: at least eight in the time that is measured.

        Each look wakes the bus library about twenty times, which is most of what an idle conductor
        does; so with long times there are no more than are needed to tell a host's silence from
        this conductor's own.
        """
        return min(2.0, float(self.conf.service_down_time) / 8)

    def _watch_hosts(self) -> None:
        """Look at the counters, and at this conductor's own way to the bus.

        The bus is tested by a call that goes out and comes back to a conductor; while it fails,
        nobody's silence counts.
        """
        context = context_module.service_context()
        gap = max(2.0, 2 * self._watch_interval())
        try:
            began = time.monotonic()
            self._conductor.ping(context, timeout=gap)
            recovery.watch_hosts(self._database, self._watch, gap)
            if time.monotonic() - began > gap:
                self._watch.reset()
        except exception.Unavailable:
            self._watch.reset()

    # -- what the endpoints do

    def register(
        self, host: str, binary: str, identity: str, nodes: Sequence[str] = (), version: int = 0
    ) -> build.Registration:
        """Note a start and return its epoch, with what a compute has to keep."""

        def work(conn: Any) -> build.Registration:
            compute_nodes.check_owner(conn, host, nodes)
            topic = TOPICS.get(binary, "")
            service = services.register(conn, host, binary, topic, identity, version)
            compute = binary == "nova-compute"
            answer = reports.kept(conn, host) if compute else build.Registration()
            answer.epoch = service.epoch
            answer.disabled = service.disabled
            return answer

        try:
            answer = self._database.transaction(work)
        except exception.Conflict as error:
            LOG.warning("Registration of %s on %s refused: %s", binary, host, error.message())
            return build.Registration(refused=error.message())
        LOG.info("%s on %s is registered, epoch %d", binary, host, answer.epoch)
        return answer

    def get_kept(self, host: str) -> build.Registration:
        """Return what a host has to keep."""
        return self._database.read(lambda conn: reports.kept(conn, host))

    def take_report(self, report: build.Report) -> build.ReportAnswer:
        """Process a report and drive what waits for a conductor after it."""
        taken = self._reports.take(report)
        if taken.began:
            crash.point(self.conf, "conductor.after_begin")
        if taken.finished:
            crash.point(self.conf, "conductor.after_finish")
        self._flows.drive(taken.drive)
        return taken.answer

    def run_reservations(self, reservation_ids: list[str]) -> None:
        """Queue wake-ups; the flow's thread takes all that wait at once."""
        self._flows.drive(reservation_ids)


class Flows:
    """The thread that drives open builds: what arrives while it works goes into its next round."""

    def __init__(self, execute: Callable[[list[str]], None]):
        self._execute = execute
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="flows", daemon=True)

    def start(self) -> None:
        """Start the thread, once."""
        if not self._thread.is_alive():
            self._thread.start()

    def drive(self, reservation_ids: list[str]) -> None:
        """Queue reservations."""
        for reservation_id in reservation_ids:
            self._queue.put(reservation_id)

    def stop(self, timeout: float) -> None:
        """Let the running round end."""
        self._queue.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            wanted = [self._queue.get()]
            while not self._queue.empty() and len(wanted) < 200:
                wanted.append(self._queue.get())
            names = list(dict.fromkeys(name for name in wanted if name is not None))
            try:
                if names:
                    self._execute(names)
            except exception.NovaliteException as error:
                LOG.warning("A round of builds is left to recovery: %s", error.message())
            except Exception:
                LOG.exception("A round of builds is left to recovery")
            if None in wanted:
                return


class ConductorEndpoint:
    """Topic ``conductor``."""

    target = messaging.Target(version="1.2")

    def __init__(self, manager: ConductorManager):
        self._manager = manager

    @rpc.expose
    def ping(self, context: context_module.RequestContext) -> str:
        """Answer ``pong``."""
        return "pong"

    @rpc.expose
    def register(
        self,
        context: context_module.RequestContext,
        host: str,
        binary: str,
        identity: str,
        nodes: list[str],
        version: int = 0,
    ) -> build.Registration:
        """See ConductorAPI.register."""
        return self._manager.register(host, binary, identity, nodes, version)

    @rpc.expose
    def report_state(
        self, context: context_module.RequestContext, report: build.Report
    ) -> build.ReportAnswer:
        """See ConductorAPI.report_state."""
        return self._manager.take_report(report)

    @rpc.expose
    def get_kept(self, context: context_module.RequestContext, host: str) -> build.Registration:
        """See ConductorAPI.get_kept."""
        return self._manager.get_kept(host)


class TaskEndpoint:
    """Topic ``conductor_tasks``."""

    target = messaging.Target(version="1.0")

    def __init__(self, manager: ConductorManager):
        self._manager = manager

    @rpc.expose
    def run_reservations(
        self, context: context_module.RequestContext, reservation_ids: list[str]
    ) -> None:
        """See ConductorTaskAPI.run_reservations."""
        self._manager.run_reservations(reservation_ids)
