# SPDX-License-Identifier: Apache-2.0
"""What the model of the protocol knows of the world: one server, two hosts, a database, a bus.

Everything here is data and the few changes that several processes share. Who makes which change,
and when, is in ``conductor.py``, ``compute.py`` and ``bus.py``.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

HOSTS = (0, 1)
NOWHERE = -1
# The bounds of the rules, scaled down so that the state space stays small: drives 8, recasts 3,
# max_attempts 3 in the product.
MOST_DRIVES, MOST_RECASTS, MOST_FAILURES = 4, 1, 2
# More messages than this in flight add nothing new.
MOST_MESSAGES = 7
# A destroy that covers every attempt: only a delete says so.
ALL = 99

# Faults with a budget each: how often each may happen in a run.
FAULTS = (
    "crash",  # a compute is killed
    "conductor_crash",  # a conductor is killed and started again
    "loss",  # a message is lost
    "duplicate",  # a message is delivered twice
    "partition",  # a host is cut off from the bus
    "slow",  # a verdict falls although what it waits for is only slow
    "spawn_fails",
    "refusal",  # a claim is refused, by the host or by the policy of a server group
    "destroy_fails",
    "delete",  # the user deletes the server
)

# Stages of a piece of work in the hands of a compute.
BEGIN = "begin"  # has claimed, asks begin until answered
GO = "go"  # may start over and spawn
SPAWNING = "spawning"
MARKED = "marked"  # spawning, and a fence fell meanwhile
SPAWNED = "spawned"  # the guest runs, asks finish until answered
HELD = "held"  # as SPAWNED, the guest paused by a fence
FAILED = "failed"  # reports the failure until answered
IN_SPAWN = (SPAWNING, MARKED)


@dataclass(frozen=True)
class Wording:
    """The rules as they are worded. Each switched off alone leads to a violation of an invariant,
    or is kept because the other rules lean on it; the number is the rule's."""

    finished_is_dropped: bool = True  # 1: begin of an attempt that has finished here answers DROP
    own_guest_only: bool = True  # 1: SUPERSEDED destroys only the guest of that very attempt
    ended_destroys: bool = True  # 1: "the action ended" is a reason to destroy too
    failure_after_removal: bool = True  # 1: finish(failed) is sent when the guest is gone
    refusal_checked: bool = True  # 1: a refusal of a begun attempt needs a newer start of the host
    refusal_after_removal: bool = True  # 1: a refused claim first removes what the attempt made
    newest_token: bool = True  # 1: the token of the latest handling replaces the former
    random_token: bool = True  # 1: each handling has a token of its own
    newer_cancels: bool = True  # 1: taking attempt N drops every lower one in hand
    start_over_after_go: bool = True  # 3: nothing is destroyed before GO
    registration: str = "ask"  # 3: "ask" | "unfinished": all that is not ACTIVE here | "none"
    recasts: bool = True  # 4
    begun_stays: bool = True  # 4: begun work of an up host stays with it
    verdict_on_this_start: bool = True  # 4, 8: past due needs a report of the present epoch
    waiting_is_free: bool = True  # 5: waiting for silence does not count in drives
    cleanup_driven: bool = True  # 6: recovery casts destroy to hosts in cleanup_hosts
    silence_after_fence: bool = True  # 8: silence is concluded after the host has fenced itself
    move_checks_counter: bool = True  # 8: the move checks that no report came meanwhile
    fencing: bool = True  # 9
    fence: str = "pause"  # 9: guest with an unanswered finish: "pause" | "destroy" | "keep"
    fence_keeps_token: bool = True  # 9: a fenced attempt asks again with its token
    fence_reads_domains: bool = True  # 9: "unfinished" is read from the domains, not from memory
    late_resume: bool = True  # 9: a spawn leaves the guest paused, resume looks at fence and cancel
    report_lifts_fence: bool = True  # 9: only an acknowledged report lifts the fence
    stale_answers_dropped: bool = True  # 9: answers to calls sent before the fence are not used
    registration_resumes: bool = True  # 9: what is ACTIVE here and paused by a fence is resumed
    leaving_cleans: bool = True  # 9: leaving a begun attempt puts its host into cleanup_hosts
    leaving_frees: bool = True  # 9: and clears host and allocations in the same transaction
    cleanup_bounded: bool = True  # 9: the cast names the highest attempt that may be destroyed
    epochs: bool = True  # 11: messages of an older start are refused
    gone_checks_epoch: bool = True  # 11: so is its report that a guest is gone
    start_checks_attempt: bool = True  # 12: start is a compare-and-set of the attempt
    delete_cancels: bool = True  # table: a delete marks the spawn in progress as cancelled
    answers_count: bool = True  # table: only answered failures of destroy count towards three


class Guest(NamedTuple):
    """A domain on a host; ``acknowledged``: its metadata says that DONE was answered."""

    attempt: int
    running: bool
    acknowledged: bool


class Work(NamedTuple):
    """One handling of a build message; ``up_to``: a destroy waits for it to end its spawn."""

    attempt: int
    token: int
    stage: str
    up_to: int = 0


class Flow(NamedTuple):
    """A conductor's flow: ``taken``, then ``selected``, then ``started``."""

    step: str
    attempt: int
    host: int = NOWHERE


class Message(NamedTuple):
    """A message in flight, to or from *host*."""

    kind: str
    host: int
    epoch: int = 0
    attempt: int = 0
    token: int = 0
    good: bool = True
    up_to: int = 0
    answer: str = ""


TO_HOST = ("build", "begin_answer", "finish_answer", "destroy")
ANSWERS = ("begin_answer", "finish_answer")


class Host:
    """A compute host: its process, its hypervisor, and what the control plane knows of it."""

    __slots__ = (
        "cleanup",
        "cut_off",
        "epoch",
        "fenced",
        "guest",
        "hand",
        "known_epoch",
        "process",
        "sequence",
        "silent",
    )

    process: str  # "up" | "down" | "starting": started and not registered yet
    cut_off: bool
    fenced: bool
    epoch: int  # of the process
    known_epoch: int  # in the database
    sequence: int  # of the tokens of this start
    silent: bool  # a conductor has measured its silence
    cleanup: int  # highest attempt to be destroyed here; 0 none
    hand: tuple[Work, ...]
    guest: Guest | None

    def __init__(self, values: tuple[Any, ...]):
        for name, value in zip(self.__slots__, values, strict=True):
            setattr(self, name, value)

    def key(self) -> tuple[Any, ...]:
        """Return the host as a value."""
        return tuple([getattr(self, name) for name in self.__slots__])

    @property
    def reachable(self) -> bool:
        """Whether messages reach the host's process."""
        return self.process == "up" and not self.cut_off

    @property
    def up(self) -> bool:
        """Whether the host's process works."""
        return self.process == "up"

    def work(self, token: int) -> Work | None:
        """Return the work in hand with this token."""
        return next((work for work in self.hand if work.token == token), None)

    def drop(self, token: int) -> None:
        """Forget the work with this token."""
        self.hand = tuple(work for work in self.hand if work.token != token)

    def put(self, token: int, **changes: Any) -> None:
        """Change the work with this token."""
        self.hand = tuple(
            sorted(w._replace(**changes) if w.token == token else w for w in self.hand)
        )

    def ask_again(self, token: int, wording: Wording) -> None:
        """A fence interrupts the work: it asks begin again, with its token if that stays."""
        if wording.fence_keeps_token:
            self.put(token, stage=BEGIN)
        else:
            self.drop(token)


class State:
    """The world at one moment. ``key()`` is its hashable value."""

    __slots__ = (
        "allocations",
        "attempt",
        "begun",
        "budget",
        "built_attempt",
        "bus",
        "delete",
        "destroy_failures",
        "drives",
        "failures",
        "flows",
        "hosts",
        "open",
        "recasts",
        "server",
        "server_host",
        "started",
        "target",
        "token",
    )

    server: str  # BUILD, ACTIVE, ERROR, DELETED
    server_host: int
    built_attempt: int  # the attempt whose guest is the server's
    allocations: int  # a bit for each host
    open: bool  # the build action
    started: bool  # its attempt is at a host
    attempt: int
    target: int
    begun: bool
    token: int  # that owns the begun attempt
    failures: int
    drives: int
    recasts: int
    delete: str  # "", open, done, failed
    destroy_failures: int
    flows: tuple[Flow | None, ...]  # one for each conductor
    hosts: list[Host]
    bus: tuple[Message, ...]
    budget: tuple[int, ...]  # what is left of each of FAULTS

    def __init__(self, key: tuple[Any, ...]):
        for name, value in zip(self.__slots__, key, strict=True):
            setattr(self, name, value)
        self.hosts = [Host(values) for values in self.hosts]  # type: ignore[arg-type]

    def key(self) -> tuple[Any, ...]:
        """Return the state as a value; messages have no order."""
        self.bus = tuple(sorted(self.bus))
        hosts = tuple([host.key() for host in self.hosts])
        return tuple([hosts if n == "hosts" else getattr(self, n) for n in self.__slots__])

    def may(self, fault: str) -> bool:
        """Tell whether the fault can still happen."""
        return self.budget[FAULTS.index(fault)] > 0

    def spend(self, fault: str) -> None:
        """The fault happens."""
        left = list(self.budget)
        left[FAULTS.index(fault)] -= 1
        self.budget = tuple(left)

    def send(self, message: Message) -> None:
        """Put a message on the bus."""
        if len(self.bus) < MOST_MESSAGES:
            self.bus += (message,)

    def under_way(self, kind: str, host: int, **values: int) -> bool:
        """Tell whether such a message is on the bus."""
        return any(
            m.kind == kind and m.host == host and all(getattr(m, n) == values[n] for n in values)
            for m in self.bus
        )

    def is_guest_of_server(self, host: int) -> bool:
        """Tell whether the guest on this host is the one of the ACTIVE server."""
        guest = self.hosts[host].guest
        return (
            guest is not None
            and self.server == "ACTIVE"
            and self.server_host == host
            and guest.attempt == self.built_attempt
        )

    def destroy(self, host: int, why: str) -> str | None:
        """Remove the guest; return the violation if nobody may do that."""
        bad = self.is_guest_of_server(host) and not self.delete
        self.hosts[host].guest = None
        return f"I2 the guest of an ACTIVE server is destroyed: {why}" if bad else None

    def leave(self, wording: Wording) -> None:
        """The build leaves its present attempt, for the next one or for good."""
        if self.begun and wording.leaving_cleans and self.target != NOWHERE:
            self.hosts[self.target].cleanup = self.attempt
        if wording.leaving_frees:
            self.server_host, self.allocations = NOWHERE, 0
        self.target, self.begun, self.token, self.recasts = NOWHERE, False, 0, 0
        self.started = False

    def fail(self, wording: Wording) -> None:
        """The build ends in ERROR."""
        self.leave(wording)
        self.open, self.server = False, "ERROR"

    def drive(self, wording: Wording) -> bool:
        """Count one loss; False if that was one too many and has ended the build."""
        self.drives += 1
        if self.drives > MOST_DRIVES:
            self.fail(wording)
            return False
        return True

    def delete_done(self) -> None:
        """The server is gone."""
        self.server, self.delete = "DELETED", "done"
        self.allocations, self.server_host = 0, NOWHERE


def initial(budget: dict[str, int], conductors: int = 1) -> tuple[Any, ...]:
    """Return the state after the POST: a row with an open action, and nothing else.

    :param budget: how often each of :data:`FAULTS` may happen
    """
    host = {
        "process": "up",
        "cut_off": False,
        "fenced": False,
        "epoch": 1,
        "known_epoch": 1,
        "sequence": 0,
        "silent": False,
        "cleanup": 0,
        "hand": (),
        "guest": None,
    }
    values: dict[str, Any] = {
        "server": "BUILD",
        "server_host": NOWHERE,
        "built_attempt": 0,
        "allocations": 0,
        "open": True,
        "started": False,
        "attempt": 0,
        "target": NOWHERE,
        "begun": False,
        "token": 0,
        "failures": 0,
        "drives": 0,
        "recasts": 0,
        "delete": "",
        "destroy_failures": 0,
        "flows": (None,) * conductors,
        "hosts": tuple([tuple([host[name] for name in Host.__slots__])] * len(HOSTS)),
        "bus": (),
        "budget": tuple(budget.get(fault, 0) for fault in FAULTS),
    }
    return tuple(values[name] for name in State.__slots__)


class Move(NamedTuple):
    """One step of the world. ``kind``: progress (will happen), fault, repair (may happen)."""

    label: str
    kind: str
    key: tuple[Any, ...]
    violation: str | None


class Moves:
    """Gathers the moves that are possible in one state.

    ``here`` is only looked at; each move changes a ``fresh()`` copy and is then added.
    """

    def __init__(self, key: tuple[Any, ...], wording: Wording):
        self._key = key
        self.wording = wording
        self.here = State(key)
        self.found: list[Move] = []

    def fresh(self) -> State:
        """Return a copy to change."""
        return State(self._key)

    def fault(self, fault: str) -> State | None:
        """Return a copy in which the fault happens, or None if it cannot any more."""
        if not self.here.may(fault):
            return None
        state = self.fresh()
        state.spend(fault)
        return state

    def add(self, label: str, kind: str, state: State, violation: str | None = None) -> None:
        """Add the move that leads to *state*."""
        key = state.key()
        self.found.append(Move(label, kind, key, violation or two_guests(state)))


def two_guests(state: State) -> str | None:
    """Invariant 1: never two running guests on hosts that work and are not fenced."""
    running = [
        host
        for host in state.hosts
        if host.guest and host.guest.running and host.up and not (host.cut_off and not host.fenced)
    ]
    return "I1 two running guests on live hosts" if len(running) > 1 else None
