# SPDX-License-Identifier: Apache-2.0
"""The hosts' pictures in memory: read as they change, with what was selected since on top.

The scheduler's manager refreshes it before each batch of requests and works on the hosts while it
holds them. It knows no table: a ``load`` function brings what changed. All waiting and all locks
of the pictures are here; whether a host is up is decided here too, on this process's own clock,
so that filters never read one.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from novalite.objects.aggregate import Aggregate
from novalite.objects.compute_node import ComputeNode
from novalite.objects.request_spec import RequestSpec
from novalite.objects.service import Service
from novalite.scheduler.fleet import Fleet
from novalite.scheduler.host_state import HostState

LOG = logging.getLogger(__name__)

HostRecord = tuple[ComputeNode, Service]
# load(mark, known) returns what changed since the mark, or everything for None, and the next mark.
# It may return a known picture itself where there is no newer one.
Load = Callable[[float | None, Mapping[str, ComputeNode]], tuple[Sequence[HostRecord], float]]
# unplaced(uuids) returns those of these servers that are being built and have no host yet.
Unplaced = Callable[[Sequence[str]], set[str]]
# aggregates(version) returns the present version with each service host's aggregates, of hosts
# that are in any; None if that still is the version. The first call has no version.
AggregatesOf = Mapping[str, tuple[Aggregate, ...]]
Aggregates = Callable[[int | None], tuple[int, AggregatesOf] | None]

# Seconds for which a selection counts if nobody says what became of it.
OVERLAY_LIFE = 15.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The numbers that steer the host manager, in seconds.

    ``refresh_interval`` is the least time between the starts of two polls, ``sweep_interval`` the
    time between two readings of everything, ``default_zone`` the zone of hosts whose aggregates
    have none. ``compare`` compares all that is kept with what is found afresh, for tests.
    """

    service_down_time: float = 60.0
    refresh_interval: float = 0.05
    sweep_interval: float = 60.0
    default_zone: str = "nova"
    compare: bool = False


@dataclass(slots=True)
class _Entry:
    """One node: its state, its service as read last, and when that was on our clock.

    ``index`` is the node's in the fleet.
    """

    state: HostState
    index: int
    service: Service
    read_at: float

    def age(self, now: float) -> float | None:
        """Return the seconds since the service was last heard from; None for never."""
        if self.service.age is None:
            return None
        return self.service.age + (now - self.read_at)

    def look(self, fleet: Fleet, now: float, down_time: float) -> float:
        """Set whether the host is up; return the moment at which that may change by itself."""
        service, age = self.service, self.age(now)
        up = not service.forced_down and age is not None and abs(age) <= down_time
        fleet.service(
            self.index,
            up=up,
            forced_down=service.forced_down,
            disabled=service.disabled,
            reason=service.disabled_reason,
        )
        if service.forced_down or age is None or age > down_time:
            return float("inf")
        # A last report in the future counts as down until the clock has come near it.
        return now + (down_time - age if up else -down_time - age)


def no_aggregates(_version: int | None) -> None:
    """Answer as a cloud without any aggregate does."""


class HostManager:
    """All hosts of the cloud, shared by the threads of one scheduler."""

    def __init__(
        self,
        load: Load,
        settings: Settings,
        unplaced: Unplaced = set,
        aggregates: Aggregates = no_aggregates,
        *,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._load = load
        self._unplaced = unplaced
        self._read_aggregates = aggregates
        self._settings = settings
        self._clock = clock
        # Guards the hosts; held while a batch is decided.
        self._lock = threading.RLock()
        self._entries: dict[str, _Entry] = {}
        self._fleet = Fleet(compare=settings.compare)
        # The newest picture of each node; only the poll touches it.
        self._pictures: dict[str, ComputeNode] = {}
        self._aggregates: AggregatesOf = {}
        self._aggregates_version: int | None = None
        self._look_again = float("-inf")
        # Selected servers that no picture names yet: node and end of life, oldest first.
        self._overlays: dict[str, tuple[str, float]] = {}
        # Guards the poll: one runs at a time, and _started is when the last one did.
        self._turn = threading.Condition()
        self._running = False
        self._started = float("-inf")
        self._error: Exception | None = None
        self._mark: float | None = None
        self._current_at = float("-inf")
        self._swept_at = float("-inf")

    def configure(self, settings: Settings) -> None:
        """Take over other settings; the next refresh reads everything."""
        with self._lock:
            self._settings = settings
            self._make_fleet()
            self._swept_at = self._look_again = float("-inf")

    # -- reading

    def refresh(self, *, fresh: bool = False) -> None:
        """Return when the pictures are at most ``refresh_interval`` older than this call.

        Callers share polls: one that comes while a poll runs takes it if it began recently
        enough, else one of those waiting begins the next.

        :param fresh: the pictures must not be older than this call at all
        :raises exception.DatabaseUnavailable: whatever the load function raises
        """
        earliest = self._clock() - (0.0 if fresh else self._settings.refresh_interval)
        with self._turn:
            while self._running:
                self._turn.wait()
                if self._started >= earliest and not self._running:
                    if self._error is not None:
                        raise self._error
                    return
            if self._started >= earliest and self._error is None:
                return
            self._running = True
            self._started = started = self._clock()
        error: Exception | None = None
        try:
            self._poll(started)
        except Exception as caught:
            error = caught
            raise
        finally:
            with self._turn:
                self._running = False
                self._error = error
                self._turn.notify_all()

    def _poll(self, started: float) -> None:
        over = self._over()
        everything = started - self._swept_at >= self._settings.sweep_interval
        records, mark = self._load(None if everything else self._mark, self._pictures)
        joined = self._read_aggregates(self._aggregates_version)
        with self._lock:
            if joined is not None:
                self._join(*joined)
            for node, service in records:
                self._take(node, service, started)
            if everything:
                self._forget_nodes({node.hypervisor_hostname for node, _ in records})
                self._swept_at = started
            # Whoever had a place before the pictures were read is in them, or is gone.
            self.drop(over)
            self._mark = mark
            self._current_at = started

    def _over(self) -> set[str]:
        """Return the selected servers that wait for no place any more.

        Most are named by the next picture. But one that was placed and gone again between two
        looks, or went to another host, never is, and would keep its room to the end of its
        selection's life.
        """
        selected = self.selected()
        return set(selected) - self._unplaced(selected) if selected else set()

    def _take(self, node: ComputeNode, service: Service, read_at: float) -> None:
        name = node.hypervisor_hostname
        entry = self._entries.get(name)
        if entry is None:
            state = HostState(node, zone=self._settings.default_zone)
            state.join(self._aggregates.get(node.host, ()))
            entry = _Entry(state, self._fleet.add(state), service, read_at)
            self._entries[name] = entry
            self._pictures[name] = node
            LOG.info("Host %s (node %s) is known now", node.host, name)
        else:
            held = entry.state.picture
            # A node or service made anew counts its generations from the start.
            anew = node.uuid != held.uuid or service.uuid != entry.service.uuid
            if anew or node.generation.newer_than(held.generation):
                self._fleet.report(entry.index, node)
                self._pictures[name] = node
            entry.service, entry.read_at = service, read_at
            self._fleet.join(entry.index, default_zone=self._settings.default_zone)
        change = entry.look(self._fleet, self._clock(), self._settings.service_down_time)
        self._look_again = min(self._look_again, change)
        for instance_uuid in node.instances:
            if self._overlays.get(instance_uuid, ("", 0.0))[0] == name:
                self._drop(instance_uuid)

    def _join(self, version: int, aggregates: AggregatesOf) -> None:
        """Tell the hosts in which aggregates they are now."""
        for entry in self._entries.values():
            self._fleet.join(entry.index, aggregates.get(entry.state.host, ()))
        self._aggregates, self._aggregates_version = aggregates, version

    def _forget_nodes(self, known: set[str]) -> None:
        gone = [name for name in self._entries if name not in known]
        for name in gone:
            LOG.info("Node %s is gone", name)
            del self._entries[name], self._pictures[name]
        if gone:
            self._make_fleet()

    def _make_fleet(self) -> None:
        """Number the hosts anew and keep nothing of before."""
        entries = self._entries.values()
        self._fleet = Fleet((entry.state for entry in entries), compare=self._settings.compare)
        for index, entry in enumerate(entries):
            entry.index = index

    # -- deciding

    @contextlib.contextmanager
    def hosts(self) -> Iterator[Fleet]:
        """Hold the hosts as they are now: nobody else reads or changes them meanwhile."""
        with self._lock:
            now = self._clock()
            self._expire(now)
            if now >= self._look_again:
                down_time = self._settings.service_down_time
                self._look_again = min(
                    (entry.look(self._fleet, now, down_time) for entry in self._entries.values()),
                    default=float("inf"),
                )
            yield self._fleet

    def picture_age(self) -> float:
        """Return the seconds since the pictures were known to be the newest."""
        return self._clock() - self._current_at

    def select(self, specs: Iterable[RequestSpec], hosts: Iterable[HostState]) -> None:
        """Note which server was selected for which host; the host has consumed it already."""
        with self._lock:
            end = self._clock() + OVERLAY_LIFE
            for spec, state in zip(specs, hosts, strict=True):
                self._overlays.pop(spec.instance_uuid, None)
                self._overlays[spec.instance_uuid] = (state.node, end)

    def selected(self) -> list[str]:
        """Return the servers that were selected and that no picture names yet."""
        with self._lock:
            return list(self._overlays)

    def drop(self, instance_uuids: Iterable[str]) -> None:
        """Forget former selections of these servers: they are unused, or selected anew."""
        with self._lock:
            for instance_uuid in instance_uuids:
                self._drop(instance_uuid)

    def _drop(self, instance_uuid: str) -> None:
        node, _end = self._overlays.pop(instance_uuid, ("", 0.0))
        entry = self._entries.get(node)
        if entry is not None:
            self._fleet.release(entry.index, instance_uuid)

    def _expire(self, now: float) -> None:
        expired = []
        for instance_uuid, (_node, end) in self._overlays.items():
            if end > now:
                break
            expired.append(instance_uuid)
        self.drop(expired)

    def any_away(self) -> bool:
        """Tell whether a host is down that is neither disabled nor forced down."""
        with self._lock:
            return any(
                not (entry.state.up or entry.service.disabled or entry.service.forced_down)
                for entry in self._entries.values()
            )

    def recently_seen(self) -> bool:
        """Tell whether a host that is down, but neither disabled nor forced down, was heard from
        less than twice service_down_time ago."""
        with self._lock:
            now, most = self._clock(), 2 * self._settings.service_down_time
            return any(
                abs(age) < most
                for entry in self._entries.values()
                if not (entry.state.up or entry.service.disabled or entry.service.forced_down)
                and (age := entry.age(now)) is not None
            )
