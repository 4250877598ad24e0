# SPDX-License-Identifier: Apache-2.0
"""Two computes and a few servers under random faults: the promises of the protocol must hold.

The computes are the real ones; the conductor keeps the rules in memory. Each walk is a row of
random steps (messages that come late or twice, lost reports and answers, kills, partitions with
their fence, moves, deletes, failing spawns, some of them in the middle of a spawn), then calm in
which everything that is still to do is done. After each step and at the end the invariants of
docs/architecture.md are checked.
"""

import random
from dataclasses import dataclass, field

import pytest

from novalite import exception
from novalite.compute import registration
from novalite.objects import build
from novalite.objects.build import BuildRequest, Kept
from novalite.objects.states import PowerState, Verdict, VMState
from tests.unit.compute.conftest import World, again, destroy_for, request_for

WALKS = 60
STEPS = 100
SERVERS = 3
HOSTS = ("host1", "host2")
# The deletes have actions of their own.
DELETE = 100_000_000


class Killed(BaseException):
    """The process dies in the middle of something."""


@dataclass
class Server:
    """One row of the database."""

    request: BuildRequest
    open: bool = True
    attempt: int = 1
    target: str = "host1"
    begun: bool = False
    token: tuple = ()
    active: bool = False
    host: str | None = None
    built: int | None = None
    deleting: bool = False
    deleted: bool = False
    failures: int = 0
    cleanup: dict = field(default_factory=dict)

    @property
    def uuid(self):
        return self.request.instance.uuid

    def is_kept_at(self, host):
        return self.active and not self.deleted and self.host == host

    def owns(self, host, attempt):
        return self.open and (self.attempt, self.target) == (attempt, host)

    def leave(self):
        """Go on with the next attempt on the other host."""
        if self.begun:
            self.cleanup[self.target] = self.attempt
        self.host, self.begun, self.token = None, False, ()
        self.attempt += 1
        self.target = HOSTS[1 - HOSTS.index(self.target)]

    def delete(self):
        """Open a delete in the place of whatever is open."""
        if self.deleting or self.deleted:
            return
        if self.open and self.begun:
            self.cleanup[self.target] = self.attempt
        self.open, self.deleting = False, True
        if self.host is None:
            self.end_delete()

    def end_delete(self):
        self.deleted, self.active, self.deleting, self.host = True, False, False, None


class Conductor:
    """The rules of begin, finish, refusal, gone and registration."""

    def __init__(self, servers):
        self.servers = {server.request.action_id: server for server in servers}
        self.by_uuid = {server.uuid: server for server in servers}
        self.epochs = dict.fromkeys(HOSTS, 0)
        self.counters = dict.fromkeys(HOSTS, 0)
        self.cut_off = set()
        self.fault = None

    def register(self, context, *, host, binary, identity, nodes, timeout):
        if host in self.cut_off:
            raise exception.BusUnavailable()
        self.epochs[host] += 1
        self.counters[host] = 0
        answer = self.get_kept(context, host=host, timeout=timeout)
        answer.epoch = self.epochs[host]
        return answer

    def get_kept(self, context, *, host, timeout):
        if host in self.cut_off:
            raise exception.BusUnavailable()
        answer = build.Registration()
        for server in self.servers.values():
            if server.is_kept_at(host):
                instance = again(server.request).instance
                instance.node, instance.power_state = "node1", PowerState.RUNNING
                instance.host, instance.vm_state = host, VMState.ACTIVE
                instance.action_id = DELETE if server.deleting else None
                answer.kept.append(Kept(instance, server.built))
            if server.open and server.target == host:
                answer.open.append(server.uuid)
        return answer

    def report_state(self, context, *, report, timeout):
        fault, self.fault = self.fault, None
        if report.host in self.cut_off or fault == "lost":
            raise exception.BusUnavailable()
        if report.epoch < self.epochs[report.host]:
            return build.ReportAnswer(retired=True)
        assert report.counter > self.counters[report.host]
        self.counters[report.host] = report.counter
        answers = [
            build.Answer(each.key, self.answer(report.host, report.epoch, each.item))
            for each in report.items
        ]
        if fault == "reply":
            raise exception.BusUnavailable()
        return build.ReportAnswer(answers=answers)

    def answer(self, host, epoch, item):
        if isinstance(item, build.Begin):
            return self.begin(host, epoch, item)
        if isinstance(item, build.Finish):
            return self.finish(host, epoch, item)
        if isinstance(item, build.Refusal):
            server = self.servers[item.action_id]
            own = not server.begun or server.token == (epoch, item.token)
            if server.owns(host, item.attempt) and (own or epoch > server.token[0]):
                server.leave()
        if isinstance(item, build.Gone) and item.failure is None:
            server = self.by_uuid[item.instance_uuid]
            bound = server.cleanup.get(host, DELETE)
            if item.attempt is None or bound <= item.attempt:
                server.cleanup.pop(host, None)
            if server.deleting and item.action_id is not None and server.host == host:
                server.end_delete()
        return Verdict.DONE

    def begin(self, host, epoch, item):
        server = self.servers[item.action_id]
        if not server.open:
            here = server.is_kept_at(host) and not server.deleting
            return Verdict.DROP if here and server.built == item.attempt else Verdict.SUPERSEDED
        if not server.owns(host, item.attempt):
            return Verdict.SUPERSEDED
        verdict = Verdict.RESUME if server.begun else Verdict.GO
        server.begun, server.token, server.host = True, (epoch, item.token), host
        return verdict

    def finish(self, host, epoch, item):
        server = self.servers[item.action_id]
        token = (epoch, item.token)
        owner = server.owns(host, item.attempt) and server.begun and server.token == token
        if item.fault is not None:
            if owner:
                server.failures += 1
                server.leave()
            return Verdict.DONE
        if owner:
            server.open, server.active, server.built = False, True, item.attempt
            return Verdict.DONE
        finished = server.token == token and server.built == item.attempt
        return Verdict.DONE if finished and not server.deleted else Verdict.SUPERSEDED


class Walk:
    """Both computes, the random steps and the checks."""

    def __init__(self, confs, seed):
        self.random = random.Random(seed)
        self.servers = [Server(request_for()) for _ in range(SERVERS)]
        self.conductor = Conductor(self.servers)
        self.log = []
        self.dead = set()
        # A step inside a step: the outer one holds a lock and, if it is a kill, ends at once.
        self.inside = False
        self.worlds = {}
        for name in HOSTS:
            world = World(confs[name], conductor=self.conductor)
            self.worlds[name] = world
            self.watch(name, world.driver)
            world.start()

    def watch(self, name, driver):
        real = driver.destroy

        def destroy(uuid):
            guest, server = driver.guests.get(uuid), self.conductor.by_uuid[uuid]
            kept = server.is_kept_at(name) and not server.deleting
            assert not (guest and kept and guest.metadata.attempt == server.built), (
                f"the guest of an ACTIVE server is destroyed: {self.log}"
            )
            real(uuid)

        driver.destroy = destroy
        for hook in ("during_spawn", "after_spawn", "before_resume", "after_resume"):
            setattr(driver, hook, lambda _: self.meanwhile(name))

    def meanwhile(self, name):
        """Let something happen in the middle of a spawn; nothing that needs the same lock."""
        if self.inside or self.random.random() > 0.15:
            return
        self.inside = True
        try:
            steps = [self.message, self.old_message, self.report, self.delete, self.clean]
            step = self.random.choice([*steps, self.cut_off, self.die])
            self.log.append(f"in the spawn of {name}: {step.__name__}")
            if step == self.die:
                self.die(name)
            step()
        finally:
            self.inside = False

    def die(self, name):
        self.end_process(name)
        raise Killed

    def end_process(self, name):
        self.log.append(f"{name} is killed")
        self.worlds[name].kill()
        self.dead.add(name)

    def up(self):
        return [name for name in HOSTS if name not in self.dead]

    def some_host(self):
        return self.random.choice(self.up() or [None])

    def reachable(self, name):
        return name is not None and name not in self.dead | self.conductor.cut_off

    # Steps

    def message(self):
        """A build message comes, for the first time or again."""
        server = self.random.choice(self.servers)
        if server.open and self.reachable(server.target):
            self.deliver(server, server.target, server.attempt)

    def old_message(self):
        """A message of some attempt comes late."""
        name, server = self.some_host(), self.random.choice(self.servers)
        if self.reachable(name):
            self.deliver(server, name, self.random.randint(1, server.attempt))

    def deliver(self, server, name, attempt):
        self.log.append(f"build {self.servers.index(server)}.{attempt} at {name}")
        message = again(server.request, attempt=attempt)
        self.worlds[name].manager.build_and_run_instances([message])

    def report(self):
        name = self.some_host()
        if name:
            self.conductor.fault = self.random.choice([None, None, "lost", "reply"])
            self.log.append(f"report of {name}, {self.conductor.fault}")
            self.worlds[name].clock.advance(1.0)
            self.worlds[name].report()
            self.conductor.fault = None

    def job(self):
        hosts = [self.worlds[name].host for name in self.up()]
        pools = [p for host in hosts for p in (host.builds, host.deletes, host.ends) if p.jobs]
        if pools:
            self.log.append("job")
            try:
                self.random.choice(pools).run_one()
            except Killed:
                pass
            self.attend()

    def attend(self):
        """A fence has one report_interval for its guests; its thread is there at once."""
        for host in [self.worlds[name].host for name in self.up()]:
            host.fence.attend()
            if host.fence.is_closed():
                host.ends.run()

    def fail_spawn(self):
        name = self.some_host()
        if name and all(server.failures < 3 for server in self.servers):
            error = exception.HypervisorError(reason="played")
            self.worlds[name].driver.fail_spawn = self.random.choice([None, error])

    def cut_off(self):
        """A partition that lasts until the fence has fallen and has seen to the guests."""
        name = self.some_host()
        if self.reachable(name):
            self.log.append(f"{name} is cut off")
            world = self.worlds[name]
            self.conductor.cut_off.add(name)
            world.fence()
            if not self.inside:
                self.attend()

    def heal(self):
        for name in sorted(self.conductor.cut_off):
            self.log.append(f"{name} is heard again")
            self.conductor.cut_off.discard(name)

    def move(self):
        """The conductor has measured silence: builds go on elsewhere."""
        for server in self.servers:
            if server.open and not self.reachable(server.target):
                server.leave()

    def kill(self):
        name = self.some_host()
        if name:
            self.end_process(name)

    def restart(self):
        for name in sorted(self.dead - self.conductor.cut_off):
            self.log.append(f"{name} starts again")
            self.worlds[name].start()
            self.dead.discard(name)

    def delete(self):
        if self.random.random() < 0.2:
            self.random.choice(self.servers).delete()

    def clean(self):
        """What recovery does: clean-ups and deletes are cast to hosts that are up."""
        for server in self.servers:
            for name in filter(self.reachable, HOSTS):
                manager = self.worlds[name].manager
                if name in server.cleanup:
                    bound = server.cleanup[name]
                    manager.destroy_instances([destroy_for(again(server.request), attempt=bound)])
                if server.deleting and server.host == name:
                    action = DELETE + server.request.action_id
                    request = destroy_for(again(server.request), action_id=action)
                    manager.destroy_instances([request])

    def audit(self):
        """Whatever is going on, books that are written by their owners need no repair."""
        name = self.some_host()
        if self.reachable(name):
            self.log.append(f"audit of {name}")
            assert self.worlds[name].manager._auditor.run() == [], self.log

    # The walk

    def go(self):
        often = [self.message, self.message, self.report, self.report, self.job, self.job]
        often.append(self.audit)
        mend = [self.heal, self.heal, self.restart, self.restart, self.move, self.clean]
        harm = [self.old_message, self.fail_spawn, self.cut_off, self.kill, self.delete]
        for _ in range(STEPS):
            kind = self.random.choices([often, mend, harm], [7, 2, 1])[0]
            self.random.choice(kind)()
            self.check()
        self.calm()

    def calm(self):
        self.log.append("calm")
        self.heal()
        self.restart()
        self.inside = True
        for world in self.worlds.values():
            world.driver.fail_spawn = None
        for _ in range(6):
            for server in self.servers:
                if server.open:
                    self.deliver(server, server.target, server.attempt)
            self.clean()
            for world in self.worlds.values():
                world.settle()
                self.check()
        for server in self.servers:
            self.check_rest(server)
        for world in self.worlds.values():
            self.check_books(world)

    def check(self):
        for server in self.servers:
            # A host that is cut off counts too: its fence has fallen.
            running = [
                name for name in self.up() if server.uuid in self.worlds[name].driver.running()
            ]
            assert len(running) <= 1, f"two running guests: {self.log}"

    def check_rest(self, server):
        assert not server.open and not server.deleting and not server.cleanup, self.log
        for name, world in self.worlds.items():
            here = server.is_kept_at(name)
            assert (server.uuid in world.driver.guests) is here, (name, self.log)
            if here:
                guest = world.driver.guests[server.uuid]
                assert guest.power_state is PowerState.RUNNING, self.log
                assert guest.metadata.done and not guest.metadata.paused_by_fence

    def check_books(self, world):
        count = sum(server.is_kept_at(world.host.name) for server in self.servers)
        assert world.books().memory_mb_used == 512 + 512 * count, self.log
        assert world.books().current_workload == 0
        assert world.hand.wait_idle(0.0), self.log


@pytest.mark.parametrize("seed", range(WALKS))
def test_a_random_walk(make_conf, tmp_path, seed, monkeypatch):
    monkeypatch.setattr(registration, "SPACING", 0.0)
    confs = {name: make_conf(host=name, state_path=str(tmp_path / name)) for name in HOSTS}
    Walk(confs, seed).go()
