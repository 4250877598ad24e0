# SPDX-License-Identifier: Apache-2.0
"""Who acts in the random walk beside the hosts: conductors, which run the real code, and what they
call, which is simulated."""

from novalite import exception
from novalite.conductor import leases, recovery, reports, silence
from novalite.conductor.tasks import build_instances
from novalite.db import services
from novalite.objects import selection
from novalite.objects.request_spec import Selection
from tests.unit.conductor.doubles import FakeVolumes

# Seconds that pass at one time.
TICK = 1.0


class Crash(BaseException):
    """The conductor that runs this code is killed here."""


class Door:
    """The database as one conductor sees it: before and after each transaction the world may go
    on, the conductor may die, and a transaction may have to be run twice."""

    def __init__(self, world, conductor, database):
        self._world, self._conductor, self._database = world, conductor, database

    def read(self, work):
        found = self._database.read(work)
        self._world.meanwhile(self._conductor)
        return found

    def transaction(self, work):
        self._world.meanwhile(self._conductor)
        if self._world.fault("deadlock"):
            self._rolled_back(work)
        found = self._database.transaction(work)
        self._world.meanwhile(self._conductor)
        return found

    def _rolled_back(self, work):
        class Deadlock(Exception):
            pass

        def doomed(conn):
            work(conn)
            raise Deadlock

        try:
            self._database.transaction(doomed)
        except Deadlock:
            pass


class Conductor:
    """One life of a conductor process."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        conf, door = world.books.conf, Door(world, self, world.books.database)
        self.queue = []
        self.busy = set()
        self.dead = False
        self.stalled_until = 0.0
        self.looked = -2
        self.leases = leases.Leases(world.books.database, name, conf.conductor.task_lease)
        self.flow = build_instances.BuildInstances(
            conf, door, Scheduler(world, self), Compute(world, self), self.leases
        )
        self.watch = silence.Watch(conf.service_down_time, lambda: world.clock.moment)
        self.recovery = recovery.Recovery(
            conf,
            door,
            Compute(world, self),
            Network(),
            FakeVolumes(),
            self.watch,
            self.queue.extend,
            self.flow,
        )
        self.reports = reports.Reports(conf, door)

    @property
    def stalled(self):
        return self.world.clock.moment < self.stalled_until

    def run(self, name, function, *args):
        """Run one thread's round; a crash ends the whole process."""
        self.busy.add(name)
        try:
            return function(*args)
        except Crash:
            self.world.bury(self)
            return None
        finally:
            self.busy.discard(name)

    def drive(self):
        wanted, self.queue[:] = list(dict.fromkeys(self.queue)), []
        self.run("flow", self.flow.execute, wanted)

    def look(self):
        self.looked = self.world.ticks
        self.run("recovery", self.recovery.run)

    def beat(self, found):
        """What the threads with a clock do: renewal and the silence watch."""
        if not self.stalled:
            self.leases.renew()
            self.watch.observe(found, 4 * TICK)


class Scheduler:
    """Chooses at random among the hosts that are up."""

    def __init__(self, world, conductor):
        self._world, self._conductor = world, conductor

    def select_destinations(self, _context, *, requests):
        self._world.meanwhile(self._conductor)
        if self._world.fault("no_scheduler"):
            raise exception.BusUnavailable()
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        known = self._world.books.read(services.list_all, "nova-compute")
        up = [s.host for s in known if s.is_up(self._world.down_time)]
        answer = selection.SelectAnswer(request.key)
        for spec in request.specs:
            allowed = [s for s in known if s.host not in spec.ignore_hosts]
            fit = [s.host for s in allowed if s.host in up]
            self._world.random.shuffle(fit)
            if not fit:
                answer.error, answer.reason = selection.NO_VALID_HOST, "There are not enough hosts."
                answer.only_compute_filter = bool(allowed)
                answer.recently_seen = any(s.age < 2 * self._world.down_time for s in allowed)
                answer.settling = self._world.is_settling() and len(up) < len(known)
                answer.selections = []
                return answer
            answer.selections.append([Selection(host, host, zone="nova") for host in fit[:3]])
        return answer


class Compute:
    """The conductor's client of the computes: messages onto the bus."""

    def __init__(self, world, conductor):
        self._world, self._conductor = world, conductor

    def _check(self):
        self._world.meanwhile(self._conductor)
        if self._world.fault("bus_down"):
            raise exception.BusUnavailable()

    def build_and_run_instances(self, _context, *, host, builds):
        self._check()
        for request in builds:
            self._world.send("build", host, request)

    def destroy_instances(self, _context, *, host, requests):
        self._check()
        for request in requests:
            self._world.send("destroy", host, request)


class Network:
    def deallocate(self, _context, _uuid, _brought):
        """Ports are not part of this world."""
