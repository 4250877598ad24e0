# SPDX-License-Identifier: Apache-2.0
"""novalite-compute's endpoints and its life; the work itself is in build.py and destroy.py."""

import threading
from collections.abc import Callable
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg

from novalite import context as context_module
from novalite import exception, health, log, periodic, rpc
from novalite.compute import audit, build, destroy, registration, secure
from novalite.compute.fence import Fence, clock
from novalite.compute.hand import Hand
from novalite.compute.host import ComputeHost, Network, Volumes
from novalite.compute.identity import Identity
from novalite.compute.pool import Pool
from novalite.compute.power_sync import PowerSync
from novalite.compute.reporter import Conductor, Reporter
from novalite.compute.resource_tracker import ResourceTracker
from novalite.objects.audit import HostBooks
from novalite.objects.build import BuildRequest, DestroyRequest, Picture
from novalite.virt import driver as virt_driver

LOG = log.get(__name__)

DELETES_AT_ONCE = 10
ENDS_AT_ONCE = 4
DEFAULT_SPACING = 60.0


class ComputeManager:
    """Runs one compute host; ``novalite.manager.Manager`` for novalite-compute."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        conductor: Conductor,
        driver: virt_driver.ComputeDriver,
        network: Network,
        volumes: Volumes,
        fail: Callable[[str], None],
        clock: Callable[[], float] = clock,
    ):
        """Put the parts together; nothing is started or asked yet.

        :param fail: ends the process with exit code 1 and a reason
        :param clock: seconds, for the fence and the reports
        """
        self.conf = conf
        self._conductor = conductor
        self._fail = fail
        self._identity: Identity | None = None
        self._stopping = threading.Event()
        self._draining = False
        hand = Hand()
        fence = Fence(_limit(conf), self._secure_guests, clock)
        reporter = Reporter(
            conf,
            conductor,
            fence,
            hand.named,
            on_retired=self._retired,
            on_unknown=self._unknown,
        )
        self.host = ComputeHost(
            conf=conf,
            driver=driver,
            network=network,
            volumes=volumes,
            tracker=ResourceTracker(conf, driver),
            fence=fence,
            hand=hand,
            power=PowerSync(driver, reporter.tell),
            builds=Pool("build", conf.max_concurrent_builds),
            deletes=Pool("delete", DELETES_AT_ONCE),
            ends=Pool("end", ENDS_AT_ONCE),
            reporter=reporter,
        )
        self._auditor = audit.Audit(self.host, conductor)

    # -- life

    def init_host(self) -> None:
        """Register, sort out the guests, start the threads, and be heard once."""
        try:
            self.prepare()
        except exception.NovaliteException as error:
            self._fail(error.message())
            raise
        self.host.fence.run()
        self.host.reporter.start()
        if not self.host.reporter.acknowledged.wait(float(self.conf.report_interval)):
            LOG.warning("The first report is not acknowledged yet")

    def prepare(self) -> None:
        """Do everything of the start except the threads.

        :raises exception.NovaliteException: the start is refused or was stopped
        """
        self._identity = Identity(self.conf.state_path)
        self.host.driver.init_host()
        self.host.fence.start(self._register())
        self._update_available_resource()

    def endpoints(self) -> list[tuple[str, list[Any]]]:
        """One topic; what takes long goes to pools of its own at once."""
        return [("compute", [ComputeEndpoint(self)])]

    def periodic_tasks(self) -> list[periodic.Periodic]:
        """The audits of the resources and of the books, and the look at the power states."""
        return [
            periodic.Periodic(
                "update_available_resource",
                self._audit,
                lambda: _spacing(self.conf.update_resources_interval),
                jitter=1.0,
            ),
            periodic.Periodic(
                "audit_books",
                self._audit_books,
                lambda: _spacing(self.conf.audit_interval),
                jitter=1.0,
            ),
            periodic.Periodic(
                "sync_power_states",
                self._sync_power_states,
                lambda: _spacing(self.conf.sync_power_state_interval),
                jitter=1.0,
            ),
        ]

    def reload(self) -> None:
        """Take over reserved sizes, ratios, times, the hypervisor's options; tell it at once."""
        self.host.driver.reload(self.conf)
        self._update_available_resource()
        self.host.tracker.warn_of_reservations()
        self.host.builds.resize(self.conf.max_concurrent_builds)
        # A shorter limit holds from the next acknowledgement on, so one is asked for now.
        self.host.fence.configure(_limit(self.conf))
        self.host.reporter.report_now()

    def health_checks(self) -> list[health.Check]:
        """None of its own: what a compute knows comes and goes over the bus."""
        return []

    def drain(self, timeout: float) -> None:
        """Leave what has not begun to a recast, and let the rest end if it can."""
        self._draining = True
        self._stopping.set()
        for work in self.host.hand.drop_not_begun():
            self.host.forget(work)
        if not self.host.hand.wait_idle(timeout):
            LOG.warning("What is still in hand is left to the next start")

    def stop(self) -> None:
        """Stop all threads; no guest is touched."""
        self._draining = True
        self._stopping.set()
        for pool in (self.host.builds, self.host.deletes, self.host.ends):
            pool.stop()
        self.host.reporter.stop()
        self.host.fence.stop()
        if self._identity is not None:
            self._identity.release()

    def _register(self) -> float:
        identity = self._identity.value if self._identity is not None else ""
        try:
            sent_at = registration.register(self.host, self._conductor, identity, self._stopping)
        except exception.ConfigurationError as error:
            self.host.fence.close_for_good()
            self._fail(error.message())
            raise
        self._tell_pictures()
        return sent_at

    def _retired(self) -> None:
        """Another process has registered under this name: it owns everything now."""
        self._draining = True
        self.host.fence.close_for_good()
        self._fail(f"another novalite-compute has registered as host {self.host.name}")

    def _unknown(self) -> None:
        """The service's record is gone; a new one has to be made before anything else."""
        LOG.warning("The conductor does not know this service any more; it registers anew")
        self._register()

    def _secure_guests(self) -> None:
        secure.secure_guests(self.host)

    # -- periodic work

    def _audit(self) -> None:
        if self.conf.update_resources_interval >= 0:
            self._update_available_resource()
        for again in list(self.host.unmarked.values()):
            again()

    def _audit_books(self) -> None:
        if self.conf.audit_interval >= 0:
            audit.run(self._auditor)

    def _update_available_resource(self) -> None:
        self.host.tracker.update_available_resource(context_module.service_context())
        self._tell_pictures()

    def _tell_pictures(self) -> None:
        context = context_module.service_context().to_wire()
        for picture in self.host.tracker.pictures():
            self.host.reporter.tell(context, Picture(picture))

    def _sync_power_states(self) -> None:
        if self.conf.sync_power_state_interval >= 0:
            self.host.power.sync(context_module.service_context())

    # -- what the endpoints do

    def build_and_run_instances(self, builds: list[BuildRequest]) -> None:
        """Start to build; the rest of the boot is in build.py."""
        if not self._draining:
            build.build_and_run_instances(self.host, builds)

    def destroy_instances(self, requests: list[DestroyRequest]) -> None:
        """Start to remove; the rest is in destroy.py."""
        if not self._draining:
            destroy.destroy_instances(self.host, requests)

    def get_console_output(self, instance_uuid: str, tail_length: int | None) -> str:
        """Return the last lines of a guest's console, or all that is kept of it.

        :raises exception.InstanceNotReady: there is no guest yet
        """
        try:
            text = self.host.driver.get_console_output(instance_uuid)
        except exception.DomainNotFound:
            raise exception.InstanceNotReady(instance_id=instance_uuid) from None
        if tail_length is None or tail_length < 0:
            return text
        return "".join(text.splitlines(keepends=True)[-tail_length:]) if tail_length else ""

    def get_host_uptime(self, node: str) -> str:
        """Return how long the machine behind a node runs."""
        return self.host.driver.host_uptime(node)

    def audit_books(self, repair: bool) -> HostBooks:
        """Return nodes, claims and guests of this host, after putting the claims right if told."""
        return self._auditor.repair() if repair else self._auditor.books()


class ComputeEndpoint:
    """Topic ``compute``."""

    target = messaging.Target(version="1.1")

    def __init__(self, manager: ComputeManager):
        self._manager = manager

    @rpc.expose
    def ping(self, context: context_module.RequestContext) -> str:
        """Answer ``pong``."""
        return "pong"

    @rpc.expose
    def build_and_run_instances(
        self, context: context_module.RequestContext, builds: list[BuildRequest]
    ) -> None:
        """See ComputeAPI.build_and_run_instances."""
        self._manager.build_and_run_instances(builds)

    @rpc.expose
    def destroy_instances(
        self, context: context_module.RequestContext, requests: list[DestroyRequest]
    ) -> None:
        """See ComputeAPI.destroy_instances."""
        self._manager.destroy_instances(requests)

    @rpc.expose
    def get_console_output(
        self,
        context: context_module.RequestContext,
        instance_uuid: str,
        tail_length: int | None,
    ) -> str:
        """See ComputeAPI.get_console_output."""
        try:
            return self._manager.get_console_output(instance_uuid, tail_length)
        except exception.InstanceNotReady as error:
            # An answer and no failure: it goes back without a traceback in this log.
            raise messaging.ExpectedException() from error

    @rpc.expose
    def get_host_uptime(self, context: context_module.RequestContext, node: str) -> str:
        """See ComputeAPI.get_host_uptime."""
        return self._manager.get_host_uptime(node)

    @rpc.expose
    def audit_books(self, context: context_module.RequestContext, repair: bool) -> HostBooks:
        """See ComputeAPI.audit_books."""
        return self._manager.audit_books(repair)


def _limit(conf: cfg.ConfigOpts) -> float:
    return float(conf.service_down_time - conf.report_interval)


def _spacing(seconds: int) -> float:
    return float(seconds) if seconds > 0 else DEFAULT_SPACING
