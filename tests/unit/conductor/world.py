# SPDX-License-Identifier: Apache-2.0
"""The world of the random walk: real database and conductor code, simulated bus, scheduler and
hosts, and faults at every point where a process, a message or a transaction may fail.

All choices come from one seeded generator, so a seed replays its walk. Time is the books' clock.
"""

import random
import sqlite3
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from novalite import exception
from novalite.conductor import manager
from novalite.db import services
from tests.unit.conductor import checks
from tests.unit.conductor.actors import TICK, Conductor, Crash
from tests.unit.conductor.hosts import Host
from tests.unit.db.books import new_server

OPTIONS = {
    "report_interval": 1,
    "service_down_time": 4,
    "conductor__begin_timeout": 2.0,
    "conductor__pending_grace": 1.0,
    "conductor__task_lease": 3.0,
}
FAULTS = (
    "loss",
    "duplicate",
    "late",
    "crash",
    "conductor_crash",
    "partition",
    "stall",
    "spawn_fails",
    "refuse",
    "destroy_fails",
    "delete",
    "no_scheduler",
    "bus_down",
    "deadlock",
)


class Violation(AssertionError):
    """An invariant is broken; the text is the walk."""


@dataclass
class Message:
    """A message under way."""

    kind: str
    host: str
    body: Any
    after: float = 0.0


class World:
    """Everything there is, and what may happen next."""

    def __init__(self, books, seed, budget, hosts=2, conductors=1):
        self.books, self.clock, self.seed = books, books.clock, seed
        self.random = random.Random(seed)
        # The checks look through a connection of their own, without the cost of SQLAlchemy.
        self.view = sqlite3.connect(books.database.url.database)
        self.down_time = float(books.conf.service_down_time)
        self.interval = float(books.conf.report_interval)
        self.budget = dict(budget)
        self.bus = []
        self.story = []
        self.depth = 0
        self.tokens = self.ticks = self.seen = 0
        # Walks differ in how fast time passes beside all else, and in how thick faults fall.
        self.tempo = self.random.choice((0.02, 0.05, 0.15))
        self.rash = self.random.choice((0.05, 0.15, 0.4))
        self.servers = []
        self.spent = []
        # When a scheduler's report was last not answered.
        self.unanswered = self.clock.moment
        self.conductors = [Conductor(self, f"c{n}") for n in range(conductors)]
        self.hosts = {f"h{n}": Host(self, f"h{n}") for n in range(hosts)}
        for host in self.hosts.values():
            host.restart()
            while host.state != "up":
                host.steps()[0][1]()

    # -- what the actors use

    def token(self):
        self.tokens += 1
        return f"t{self.tokens}"

    def send(self, kind, host, body):
        self.bus.append(Message(kind, host, body))

    def fault(self, name):
        """Spend one fault of this kind, perhaps."""
        if self.budget.get(name, 0) <= 0 or self.random.random() > self.rash:
            return False
        self.budget[name] -= 1
        self.spent.append(name)
        self.story.append(f"    ! {name}")
        return True

    def fail(self, text):
        lines = "\n".join(self.story[-120:])
        raise Violation(f"seed {self.seed}: {text}\n{lines}")

    def check_destroy(self, host, uuid, why):
        text = checks.wrong_destroy(self.view, host, uuid)
        if text:
            self.fail(f"{text}: {why}")

    def register(self, name):
        """What the conductor's endpoint does."""
        owner = SimpleNamespace(_database=self.books.database)
        answer = manager.ConductorManager.register(owner, name, "nova-compute", f"id-{name}")
        if answer.refused:
            self.fail(f"registration refused: {answer.refused}")
        return answer

    def is_settling(self):
        """Tell whether the scheduler's reports have been answered for a short time only."""
        return self.clock.moment - self.unanswered < self.down_time

    def bury(self, conductor):
        """A conductor was killed: another life begins, with an empty memory."""
        conductor.dead = True
        if conductor in self.conductors:
            index = self.conductors.index(conductor)
            self.conductors[index] = Conductor(self, conductor.name)

    def meanwhile(self, conductor):
        """A point between two transactions of a conductor: others go on, or it dies here."""
        if self.depth < 2 and self.budget and self.random.random() < 0.15:
            self.depth += 1
            for _ in range(self.random.randrange(1, 4)):
                self.step()
            self.depth -= 1
        if self.depth < 2 and self.fault("stall"):
            self.linger(conductor)
        if conductor.dead:
            raise Crash
        if self.fault("conductor_crash"):
            raise Crash

    def linger(self, conductor):
        """The whole process stands still in the middle of something, longer than its lease."""
        self.depth += 1
        self.stall(conductor)
        for _ in range(150):
            if not conductor.stalled:
                break
            self.step()
        conductor.stalled_until = 0.0
        self.depth -= 1

    # -- steps

    def step(self):
        """One thing happens."""
        faults = self.fault_choices() if self.random.random() < self.rash / 4 else []
        choices = faults or (self.random.random() > self.tempo and self.choices())
        label, function = self.random.choice(choices or [("time passes", self.tick)])
        self.story.append("  " * self.depth + label)
        function()
        self.check()

    def check(self):
        text = checks.two_guests(self)
        version = self.view.execute("PRAGMA data_version").fetchone()[0]
        if not text and self.seen != version:
            self.seen = version
            text = checks.books_disagree(self.view)
        if text:
            self.fail(text)

    def choices(self):
        found = [(f"{m.kind} {m.host}", lambda m=m: self.deliver(m)) for m in self.open_messages()]
        for host in self.hosts.values():
            found += [(f"{host.name} {label}", function) for label, function in host.steps()]
        for conductor in self.conductors:
            if not conductor.stalled:
                if conductor.queue and "flow" not in conductor.busy:
                    found.append((f"{conductor.name} drives {conductor.queue}", conductor.drive))
                if "recovery" not in conductor.busy and conductor.looked < self.ticks - 1:
                    found.append((f"{conductor.name} recovers", conductor.look))
        return found + self.repairs()

    def open_messages(self):
        """Those that can arrive now; an answer to a host that is cut off is lost on arrival."""
        awake = not all(conductor.stalled for conductor in self.conductors)
        now = self.clock.moment
        return [m for m in self.bus if m.after <= now and self.can_arrive(m, awake)]

    def can_arrive(self, message, awake):
        if message.kind in ("report", "wake"):
            return awake
        return message.kind == "answer" or self.hosts[message.host].reachable

    def fault_choices(self):
        """What may be done to processes; by preference to those that have work in hand."""
        found = []
        up = [host for host in self.hosts.values() if host.reachable]
        for host in self.tender(up):
            if self.budget.get("partition"):
                found.append((f"{host.name} is cut off", lambda host=host: self.cut(host)))
            if self.budget.get("crash"):
                found.append((f"{host.name} is killed", lambda host=host: self.kill(host)))
        if self.budget.get("delete") and self.servers:
            found.append(("the user deletes", self.delete))
        return found

    def tender(self, up):
        """Choose the hosts where a fault hurts most, mostly."""
        for stages in (("built", "spawning", "go"), ("claimed", "failed", "refused")):
            busy = [h for h in up if any(w.stage in stages for w in h.works.values())]
            if busy and self.random.random() < 0.6:
                return busy
        return up

    def repairs(self):
        """What was done to hosts comes to its end by itself."""
        found = []
        for host in self.hosts.values():
            if host.back <= self.clock.moment:
                if host.partitioned:
                    found.append((f"{host.name} is back", lambda host=host: self.heal(host)))
                if host.state == "dead":
                    found.append((f"{host.name} restarts", host.restart))
        return found

    def tick(self):
        """A second passes: fences first, since they fall earlier than silence is measured."""
        self.clock.advance(TICK)
        self.ticks += 1
        if all(conductor.stalled for conductor in self.conductors):
            self.unanswered = self.clock.moment
        for host in self.hosts.values():
            if host.state == "up":
                host.check_fence()
        found = self.books.read(services.list_all, "nova-compute")
        for conductor in self.conductors:
            conductor.beat(found)

    def cut(self, host):
        self.spend("partition")
        host.partitioned = True
        host.back = self.clock.moment + self.random.choice((1.7, 2.7, 5.0, 8.0, 15.0))

    def heal(self, host):
        host.partitioned = False

    def kill(self, host):
        self.spend("crash")
        host.crash()
        host.back = self.clock.moment + self.random.choice((0.0, 1.0, 5.0, 9.0))

    def stall(self, conductor):
        conductor.stalled_until = self.clock.moment + self.random.choice((1.0, 4.0, 6.0, 10.0))

    def spend(self, name):
        self.budget[name] -= 1
        self.spent.append(name)

    def delete(self, uuid=None):
        if uuid is None:
            self.spend("delete")
            uuid = self.random.choice(self.servers)
        try:
            opened = self.books.delete(uuid)
        except exception.InstanceNotFound:
            return
        if opened.request is not None:
            self.send("destroy", opened.host, opened.request)

    def deliver(self, message):
        if message not in self.bus:
            return
        if self.fault("late"):
            message.after = self.clock.moment + self.random.uniform(0.2, 8.0)
            return
        self.bus.remove(message)
        if self.fault("loss"):
            return
        if self.fault("duplicate"):
            self.bus.append(replace(message, after=self.clock.moment + self.random.uniform(0, 4)))
        if message.kind == "report":
            self.take_report(message.body)
        elif message.kind == "wake":
            self.random.choice(self.conductors).queue.extend(message.body)
        else:
            host = self.hosts[message.host]
            if message.kind == "answer":
                if host.reachable:
                    host.take_answer(*message.body)
            elif host.reachable:
                take = host.take_build if message.kind == "build" else host.take_destroy
                take(message.body)

    def take_report(self, report):
        conductor = self.random.choice([c for c in self.conductors if not c.stalled])
        taken = conductor.run("report", conductor.reports.take, report)
        if taken is not None and not conductor.dead:
            conductor.queue.extend(taken.drive)
            body = (report.epoch, report.counter, taken.answer)
            self.send("answer", report.host, body)

    def create(self, count, reservation_id):
        made = self.books.create(
            *[new_server(reservation_id) for _ in range(count)],
            grace=float(self.books.conf.conductor.pending_grace),
        )
        self.servers += [server.uuid for server in (made if count > 1 else [made])]
        self.send("wake", "", [reservation_id])

    # -- the end

    def settle(self, longest):
        """No more faults: everything goes on fairly until nothing is open; return the seconds."""
        self.budget = {}
        for message in self.bus:
            message.after = 0.0
        for host in self.hosts.values():
            if not host.doomed:
                host.partitioned = False
                if host.state == "dead":
                    host.restart()
        for conductor in self.conductors:
            conductor.stalled_until = 0.0
        began = self.clock.moment
        while True:
            self.round()
            if checks.at_rest(self):
                return self.clock.moment - began
            if self.clock.moment - began > longest:
                self.fail(f"not at rest after {longest} s: {checks.unrest(self)}")

    def round(self):
        """Half a second in which everybody gets a turn."""
        for _ in range(3):
            for message in self.open_messages():
                self.deliver(message)
            for host in self.hosts.values():
                for label, function in host.steps():
                    self.story.append(f"{host.name} {label}")
                    function()
            for conductor in self.conductors:
                if conductor.queue:
                    self.story.append(f"{conductor.name} drives {conductor.queue}")
                    conductor.drive()
            self.check()
        for conductor in self.conductors:
            conductor.look()
        self.story.append("time passes")
        self.tick()
        self.check()
