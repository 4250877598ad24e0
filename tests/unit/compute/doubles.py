# SPDX-License-Identifier: Apache-2.0
"""What stands around a compute in its unit tests: hypervisor, network, conductor, clock, pools.

Everything is driven by hand: no thread runs unless a test starts one, time passes only when a test
says so.
"""

import dataclasses
from collections import deque
from dataclasses import dataclass, field

from novalite import exception
from novalite.objects import base, build
from novalite.objects.states import PowerState, Verdict
from novalite.virt.driver import GuestInfo, GuestMetadata, HostResources


class Clock:
    """Seconds that pass when told."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds


class Pool:
    """A pool whose work runs when the test wants it."""

    def __init__(self):
        self.jobs = deque()

    def submit(self, work, *args):
        self.jobs.append((work, args))

    def run_one(self):
        work, args = self.jobs.popleft()
        work(*args)

    def run(self):
        done = len(self.jobs)
        while self.jobs:
            self.run_one()
        return done

    def resize(self, size):
        self.size = size

    def stop(self):
        self.jobs.clear()


class Driver:
    """A hypervisor in memory that outlives the compute; hooks let a test step into a spawn."""

    def __init__(self, **resources):
        self.resources = HostResources(
            **({"vcpus": 8, "memory_mb": 16384, "local_gb": 200} | resources)
        )
        self.guests = {}
        self.calls = []
        self.destroyed = []
        self.stuck = set()
        self.fail_spawn = None
        self.fail_metadata = False
        self.reloaded = 0
        # Called with the uuid: when the guest exists and is paused, when the spawn has asked for
        # the last time whether it is cancelled, just before the guest runs, and just after.
        self.during_spawn = lambda uuid: None
        self.after_spawn = lambda uuid: None
        self.before_resume = lambda uuid: None
        self.after_resume = lambda uuid: None
        self.console = {}

    def init_host(self):
        pass

    def reload(self, conf):
        self.reloaded += 1

    def nodes(self):
        return ["node1"]

    def host_resources(self, node):
        return dataclasses.replace(self.resources)

    def list_guests(self):
        return [self.get_guest(uuid) for uuid in list(self.guests)]

    def get_guest(self, uuid):
        found = self.guests.get(uuid)
        if found is None:
            return None
        return dataclasses.replace(found, metadata=dataclasses.replace(found.metadata))

    def power_state(self, uuid):
        found = self.guests.get(uuid)
        return found.power_state if found else PowerState.NOSTATE

    def spawn(self, context, instance, image, network_info, metadata, is_cancelled):
        self.calls.append(("spawn", instance.uuid))
        if is_cancelled():
            raise exception.BuildCancelled(instance_uuid=instance.uuid)
        assert instance.uuid not in self.guests, "a guest is there already"
        self.guests[instance.uuid] = GuestInfo(
            instance.uuid, instance.name, instance.node, PowerState.PAUSED, metadata
        )
        self.during_spawn(instance.uuid)
        if self.fail_spawn is not None:
            if instance.uuid not in self.stuck:
                self.guests.pop(instance.uuid, None)
            raise self.fail_spawn
        if is_cancelled():
            self.guests.pop(instance.uuid, None)
            raise exception.BuildCancelled(instance_uuid=instance.uuid)
        self.after_spawn(instance.uuid)

    def _one(self, uuid):
        if uuid not in self.guests:
            raise exception.DomainNotFound(instance_uuid=uuid)
        return self.guests[uuid]

    def finish_spawn(self, instance):
        self.before_resume(instance.uuid)
        self._one(instance.uuid).power_state = PowerState.RUNNING
        self.after_resume(instance.uuid)

    def pause_guest(self, uuid, by_fence):
        guest = self._one(uuid)
        guest.metadata.paused_by_fence = by_fence
        guest.power_state = PowerState.PAUSED

    def unpause_guest(self, uuid):
        guest = self._one(uuid)
        guest.metadata.paused_by_fence = False
        guest.power_state = PowerState.RUNNING

    def set_metadata(self, uuid, metadata):
        if self.fail_metadata:
            raise exception.HypervisorError(reason="the definition is locked")
        self._one(uuid).metadata = metadata

    def destroy(self, uuid):
        if uuid in self.stuck:
            raise exception.HypervisorError(reason="the domain will not go")
        if self.guests.pop(uuid, None) is not None:
            self.destroyed.append(uuid)

    def get_console_output(self, uuid):
        self._one(uuid)
        return self.console.get(uuid, "")

    def add(self, uuid, *, action_id=1, attempt=1, running=True, **metadata):
        """Put a guest there that a former process made."""
        state = PowerState.RUNNING if running else PowerState.PAUSED
        made_by = GuestMetadata(action_id, attempt, **metadata)
        self.guests[uuid] = GuestInfo(uuid, "instance-1", "node1", state, made_by)

    def running(self):
        """Return the guests that run."""
        return {u for u, g in self.guests.items() if g.power_state is PowerState.RUNNING}


class Network:
    """Remembers what it was asked."""

    def __init__(self):
        self.given = {}
        self.given_back = []
        self.fail_allocate = None
        self.fail_deallocate = None

    def allocate(self, context, instance_uuid, host, requested, security_groups):
        if self.fail_allocate is not None:
            raise self.fail_allocate
        from novalite.objects.instance import NetworkInfo

        self.given[instance_uuid] = host
        return [
            NetworkInfo(f"port{n}", request.network_id or "", "private", "fa:16:3e:00:00:01")
            for n, request in enumerate(requested)
        ]

    def deallocate(self, context, instance_uuid, brought_ports, host):
        if self.fail_deallocate is not None:
            raise self.fail_deallocate
        self.given_back.append((instance_uuid, set(brought_ports), host))


class Volumes:
    """Block storage in memory: the servers' volumes, and the host each is attached to."""

    def __init__(self):
        self.hosts = {}
        self.made = {}
        self.given_back = []
        self.fail_attach = None
        self.fail_release = None
        # Called with the uuid while the volumes are being made.
        self.during_attach = lambda uuid: None

    def attach(self, context, instance_uuid, host, devices, is_cancelled, on_made):
        self.made.setdefault(instance_uuid, f"volume{len(self.made)}")
        self.during_attach(instance_uuid)
        if is_cancelled():
            raise exception.BuildCancelled(instance_uuid=instance_uuid)
        on_made()
        if self.fail_attach is not None:
            raise self.fail_attach
        self.hosts[instance_uuid] = host
        volume_id = self.made[instance_uuid]
        return [dataclasses.replace(d, volume_id=volume_id, path="/dev/x") for d in devices]

    def detach(self, context, instance_uuid, devices, host):
        self.given_back.append(("detach", instance_uuid, host))
        if self.hosts.get(instance_uuid) == host:
            del self.hosts[instance_uuid]

    def release(self, context, instance_uuid, devices, *, built):
        if self.fail_release is not None:
            raise self.fail_release
        self.given_back.append(("release", instance_uuid, built))
        self.hosts.pop(instance_uuid, None)
        self.made.pop(instance_uuid, None)


@dataclass
class Row:
    """What the database knows of one build, as far as a compute can notice it."""

    action_id: int
    attempt: int = 1
    open: bool = True
    begun: bool = False
    token: tuple | None = None
    active: bool = False
    built: int | None = None
    deleted: bool = False
    failures: list = field(default_factory=list)


class Conductor:
    """Answers begin and finish as rule 1 says, for one host and builds of one attempt or more.

    ``faults`` are met by the next calls, one each: ``lost`` the message gets lost, ``reply`` the
    answer does, ``error`` the conductor raises; anything else is no fault.
    """

    def __init__(self):
        self.epoch = 0
        self.counter = 0
        self.rows = {}
        self.reports = []
        self.faults = deque()
        self.item_errors = {}
        self.registration = build.Registration()
        self.registered = []
        self.retired = self.unknown = False
        # Called with each report before its answer is made; "while the call is in flight".
        self.in_flight = lambda report: None

    # What the tests look at

    def items(self, kind=None):
        """Return all items that came, of one kind or all, in their order."""
        found = [envelope.item for report in self.reports for envelope in report.items]
        return [item for item in found if kind is None or isinstance(item, kind)]

    # What a compute calls

    def register(self, context, *, host, binary, identity, nodes, timeout):
        fault = self.faults.popleft() if self.faults else None
        if fault:
            raise exception.BusUnavailable()
        self.registered.append((host, binary, identity, nodes))
        if self.registration.refused is None:
            self.epoch += 1
            self.counter = 0
            self.unknown = False
        return dataclasses.replace(self.registration, epoch=self.epoch)

    def get_kept(self, context, *, host, timeout):
        if self.faults and self.faults.popleft():
            raise exception.BusUnavailable()
        return base.decode(base.encode(self.registration))

    def report_state(self, context, *, report, timeout):
        fault = self.faults.popleft() if self.faults else None
        if fault == "lost":
            raise exception.BusUnavailable()
        # What arrives is a copy of what was sent, as over a real bus.
        report = base.decode(base.encode(report))
        self.reports.append(report)
        if fault == "error":
            raise RuntimeError("the database is locked")
        answer = self._answer(report)
        self.in_flight(report)
        if fault == "reply":
            raise exception.BusUnavailable()
        return base.decode(base.encode(answer))

    def _answer(self, report):
        if self.retired or self.unknown:
            return build.ReportAnswer(retired=self.retired, unknown=self.unknown)
        assert report.epoch == self.epoch
        assert report.counter > self.counter, "the counter has to grow"
        self.counter = report.counter
        answers = []
        for envelope in report.items:
            kind = type(envelope.item).__name__
            if self.item_errors.get(kind, 0):
                self.item_errors[kind] -= 1
                answers.append(build.Answer(envelope.key, error="IntegrityError"))
                continue
            verdict = self._verdict(envelope.item)
            answers.append(build.Answer(envelope.key, verdict, f"because of {verdict}"))
        return build.ReportAnswer(answers=answers)

    def _verdict(self, item):
        if isinstance(item, build.Begin):
            return self._begin(item)
        if isinstance(item, build.Finish):
            return self._finish(item)
        if isinstance(item, build.Refusal):
            row = self.rows.get(item.action_id)
            if row is not None and row.open and row.attempt == item.attempt:
                row.failures.append(item.reason)
                row.open = False
        return Verdict.DONE

    def _begin(self, item):
        row = self.rows.setdefault(item.action_id, Row(item.action_id, item.attempt))
        if not row.open:
            built_here = row.active and not row.deleted and row.built == item.attempt
            return Verdict.DROP if built_here else Verdict.SUPERSEDED
        if row.attempt != item.attempt:
            return Verdict.SUPERSEDED
        verdict = Verdict.RESUME if row.begun else Verdict.GO
        row.begun, row.token = True, (self.epoch, item.token)
        return verdict

    def _finish(self, item):
        row = self.rows[item.action_id]
        token = (self.epoch, item.token)
        mine = row.open and row.begun and row.attempt == item.attempt and row.token == token
        if item.fault is not None:
            if mine:
                row.failures.append(item.fault.message)
                row.open = False
            return Verdict.DONE
        if mine:
            row.open, row.active, row.built = False, True, item.attempt
            return Verdict.DONE
        finished = row.token == token and row.built == item.attempt and not row.deleted
        return Verdict.DONE if finished else Verdict.SUPERSEDED
