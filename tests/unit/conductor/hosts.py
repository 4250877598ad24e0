# SPDX-License-Identifier: Apache-2.0
"""A compute host for the random walk: the compute's half of the durable action protocol, in memory.

Every method is one atomic step of the process (or of its death). Guests live in ``domains``, which
a crash leaves alone; everything else is the process's memory.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from novalite.objects import build
from novalite.objects.action import ActionEvent
from novalite.objects.instance import InstanceFault
from novalite.objects.states import PowerState, Verdict
from tests.unit.db.books import RESOURCES, picture


@dataclass
class Domain:
    """A guest with what its metadata says."""

    action: int
    attempt: int
    running: bool = False
    done: bool = False


@dataclass
class Work:
    """An attempt in hand. Stages: claimed, go, spawning, built, failed, refused."""

    request: build.BuildRequest
    token: str
    stage: str = "claimed"
    kill: build.DestroyRequest | None = None
    marked: bool = False
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def uuid(self):
        return self.request.instance.uuid

    @property
    def key(self):
        return self.request.action_id, self.request.attempt


@dataclass
class Call:
    """The one report in flight: what each of its keys stands for."""

    counter: int
    sent: float
    fences: int
    keys: dict[int, Any]


class Host:
    """One compute host. ``state``: up, dead, or starting (not registered yet)."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.domains = {}
        self.partitioned = False
        self.doomed = False
        # When a fault that was done to it ends.
        self.back = 0.0
        self.state = "dead"
        self.forget()

    def forget(self):
        self.epoch = self.counter = 0
        self.works, self.gone, self.call = {}, [], None
        self.fenced, self.fences = False, 0
        self.acknowledged = self.sent = 0.0
        self.registration = None

    @property
    def reachable(self):
        return self.state == "up" and not self.partitioned

    # -- life of the process

    def crash(self):
        """kill -9: guests stay as they are."""
        self.forget()
        self.state = "dead"

    def restart(self):
        self.state = "starting"

    def register(self):
        """Call the conductor; the answer is used in a later step."""
        self.acknowledged = self.world.clock.moment
        answer = self.world.register(self.name)
        if not self.world.fault("loss"):
            self.registration = answer

    def take_registration(self):
        """Before any work: keep what is ACTIVE here, leave what is open, destroy the rest."""
        answer, self.registration = self.registration, None
        self.state, self.epoch = "up", answer.epoch
        kept = {one.instance.uuid: one.attempt for one in answer.kept}
        for uuid, domain in list(self.domains.items()):
            if kept.get(uuid) == domain.attempt:
                domain.done = domain.running = True
            elif uuid not in answer.open:
                self.destroy(uuid, "registration")
        self.check_fence()

    def destroy(self, uuid, why):
        self.world.check_destroy(self, uuid, why)
        self.domains.pop(uuid, None)

    # -- the fence

    def check_fence(self):
        limit = self.world.down_time - self.world.interval
        if self.fenced or self.world.clock.moment - self.acknowledged <= limit:
            return
        self.fenced = True
        self.fences += 1
        for work in self.works.values():
            if work.stage == "go":
                work.stage = "claimed"
            elif work.stage == "spawning":
                work.marked = True
        for domain in self.domains.values():
            if not domain.done:
                domain.running = False

    # -- messages

    def take_build(self, request):
        key = (request.action_id, request.attempt)
        if key in self.works:
            return
        for work in list(self.works.values()):
            if work.request.action_id == request.action_id:
                if work.request.attempt > request.attempt:
                    return
                if work.stage == "spawning":
                    work.kill = work.kill or build.DestroyRequest(
                        work.request.instance, self.name, {}, request.attempt - 1
                    )
                else:
                    del self.works[work.key]
        work = Work(request, self.world.token())
        domain = self.domains.get(work.uuid)
        done_here = domain and domain.done and (domain.action, domain.attempt) == key
        if not done_here and self.world.fault("refuse"):
            if domain and (domain.action, domain.attempt) == key:
                self.destroy(work.uuid, "refused claim")
            work.stage = "refused"
            work.details = {"stale": self.world.random.random() < 0.4}
        self.works[key] = work

    def take_destroy(self, request):
        uuid, bound = request.instance.uuid, request.attempt
        waits = False
        for work in list(self.works.values()):
            if work.uuid == uuid and (bound is None or work.request.attempt <= bound):
                if work.stage == "spawning":
                    work.kill, waits = request, True
                else:
                    del self.works[work.key]
        if not waits:
            self.remove(request)

    def remove(self, request):
        """Destroy what the request names and note the answer for the next report."""
        uuid, bound = request.instance.uuid, request.attempt
        failure = None
        domain = self.domains.get(uuid)
        if domain and (bound is None or domain.attempt <= bound):
            if self.world.fault("destroy_fails"):
                failure = "the guest would not go"
            else:
                self.destroy(uuid, f"destroy message up to {bound}")
        self.gone.append(
            build.Gone(
                uuid, self.name, picture(self.name), bound, request.action_id, failure=failure
            )
        )

    # -- work

    def steps(self):
        """Return (label, function) of what this process could do now."""
        if self.state == "starting":
            if self.registration is not None:
                return [("takes its registration", self.take_registration)]
            return [] if self.partitioned else [("registers", self.register)]
        if self.state != "up":
            return []
        found = []
        for work in self.works.values():
            if work.stage == "go" and not self.fenced and not self.spawning(work.uuid):
                found.append((f"spawns {work.key}", lambda work=work: self.spawn(work)))
            elif work.stage == "spawning":
                found.append((f"ends spawn {work.key}", lambda work=work: self.end_spawn(work)))
        if self.call is None:
            if not self.partitioned and (self.talks() or self.due()):
                found.append(("reports", self.report))
        elif self.world.clock.moment > self.call.sent + self.world.interval:
            found.append(("times out", self.time_out))
        return found

    def spawning(self, uuid):
        """The instance lock."""
        return any(w.uuid == uuid and w.stage == "spawning" for w in self.works.values())

    def talks(self):
        waiting = [w for w in self.works.values() if w.stage not in ("go", "spawning")]
        return bool(self.gone or (waiting and not self.fenced))

    def due(self):
        return self.world.clock.moment >= self.sent + self.world.interval

    def spawn(self, work):
        if work.uuid in self.domains:
            self.destroy(work.uuid, "start over")
        if self.world.fault("spawn_fails"):
            left = self.world.random.random() < 0.2
            if left:
                self.domains[work.uuid] = Domain(*work.key)
            work.stage = "failed"
            work.details = {"guest_left": left, "reschedule": self.world.random.random() < 0.8}
            return
        self.domains[work.uuid] = Domain(*work.key)
        work.stage = "spawning"

    def end_spawn(self, work):
        if work.kill is not None:
            del self.works[work.key]
            self.remove(work.kill)
        elif work.marked or self.fenced:
            self.destroy(work.uuid, "fence fell while it spawned")
            work.stage, work.marked = "claimed", False
        else:
            self.domains[work.uuid].running = True
            work.stage = "built"

    # -- reports

    def report(self):
        self.counter += 1
        keys, envelopes = {}, []
        for work in self.works.values():
            item = None if self.fenced else self.item(work)
            if item is not None:
                keys[len(keys)] = (work.token, work.stage)
                envelopes.append(build.Envelope(len(envelopes), {}, item))
        for item in self.gone:
            keys[len(keys)] = item
            envelopes.append(build.Envelope(len(envelopes), {}, item))
        hand = [build.InHand(*w.key) for w in self.works.values() if w.stage != "refused"]
        moment = self.world.clock.moment
        self.call = Call(self.counter, moment, self.fences, keys)
        self.sent = moment
        self.world.send(
            "report",
            self.name,
            build.Report(self.name, "nova-compute", self.epoch, self.counter, hand, envelopes),
        )

    def item(self, work):
        base = (*work.key, work.token, work.uuid)
        books = picture(self.name, epoch=self.epoch, counter=self.counter)
        if work.stage == "claimed":
            event = ActionEvent("compute__do_build_and_run_instance", host=self.name, start=1.0)
            return build.Begin(*base, self.name, dict(RESOURCES), books, event)
        if work.stage == "refused":
            return build.Refusal(*base, self.name, "no room", work.details["stale"], books)
        if work.stage == "built":
            return build.Finish(*base, self.name, books, PowerState.RUNNING, 1.0)
        if work.stage == "failed":
            fault = InstanceFault(500, "spawn failed")
            return build.Finish(*base, self.name, books, fault=fault, **work.details)
        return None

    def time_out(self):
        """The outcome is unknown: what was in the report is asked again."""
        self.call = None

    def take_answer(self, epoch, counter, answer):
        call = self.call
        if call is None or (epoch, counter) != (self.epoch, call.counter):
            return
        self.call = None
        if answer.retired:
            self.crash()
            return
        if call.fences != self.fences:
            return
        self.fenced = False
        self.acknowledged = max(self.acknowledged, call.sent)
        for one in answer.answers:
            meant = call.keys[one.key]
            if one.error is not None:
                self.world.fail(f"an item met an error: {one.error}")
            if isinstance(meant, build.Gone):
                if meant in self.gone:
                    self.gone.remove(meant)
                continue
            token, stage = meant
            work = next((w for w in self.works.values() if w.token == token), None)
            if work is not None and work.stage == stage:
                self.settle(work, one.verdict)

    def settle(self, work, verdict):
        domain = self.domains.get(work.uuid)
        mine = domain is not None and (domain.action, domain.attempt) == work.key
        if work.stage == "claimed" and verdict in (Verdict.GO, Verdict.RESUME):
            work.stage = "go"
            return
        del self.works[work.key]
        if verdict is Verdict.SUPERSEDED:
            if mine:
                self.destroy(work.uuid, f"{work.stage} of {work.key} answered SUPERSEDED")
        elif work.stage == "built":
            self.domains[work.uuid] = replace(domain, running=True, done=True)
