# SPDX-License-Identifier: Apache-2.0
"""All hosts in their order, with a journal of what changed and the shortlists that are kept.

The host manager makes one for the life of the process; the pipeline makes one of a plain list of
hosts for a single request. Whoever changes a host does it here, so that nobody changes one unseen:
a verdict holds until its host changes, and a kept shortlist examines the hosts in the journal
since it was asked last, nothing else. Pure; whoever shares a fleet between threads holds a lock.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

from novalite.objects.aggregate import Aggregate
from novalite.objects.capacity import Need
from novalite.objects.compute_node import ComputeNode
from novalite.scheduler.host_state import HostState
from novalite.scheduler.shortlist import Shortlist

# Most shortlists kept, and most verdicts in all of them: a verdict takes some 300 bytes.
_SHORTLISTS = 128
_VERDICTS = 400_000
# A demand that was asked once is kept if it is asked again while so many others are.
_ASKED = 1024
# Above this share of changed hosts, examining all of them at once is quicker.
_MOST_CHANGED = 0.3


@dataclass(slots=True)
class _Kept:
    """A shortlist and how much of the journal it has seen."""

    shortlist: Shortlist
    seen: int


class Fleet(Sequence[HostState]):
    """Hosts by index; the index also is the order among equals.

    :param compare: compare each kept shortlist with a fresh one, for tests
    """

    def __init__(self, hosts: Iterable[HostState] = (), *, compare: bool = False):
        self._hosts = list(hosts)
        self._compare = compare
        # Indexes of changed hosts, oldest first, and the number of those cut off before them.
        self._journal: list[int] = []
        self._cut = 0
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._asked: OrderedDict[Hashable, None] = OrderedDict()
        self._kinds: list[HostState] | None = None
        # Server groups: members that are selected and not in a picture yet, with their host.
        self._groups: dict[str, dict[str, int]] = {}
        for index, host in enumerate(self._hosts):
            for instance_uuid, selected in host.selected.items():
                self._note(index, instance_uuid, selected.group)

    @property
    def hosts(self) -> list[HostState]:
        """The hosts themselves, for reading; the list grows as hosts are added."""
        return self._hosts

    @property
    def kinds(self) -> list[HostState]:
        """One host of each set of aggregates that hosts are in, for questions about aggregates."""
        if self._kinds is None:
            self._kinds = list({host.joined: host for host in self._hosts}.values())
        return self._kinds

    # -- as a sequence

    def __len__(self) -> int:
        return len(self._hosts)

    def __iter__(self) -> Iterator[HostState]:
        return iter(self._hosts)

    @overload
    def __getitem__(self, index: int) -> HostState: ...

    @overload
    def __getitem__(self, index: slice) -> list[HostState]: ...

    def __getitem__(self, index: int | slice) -> HostState | list[HostState]:
        return self._hosts[index]

    # -- changes

    def add(self, host: HostState) -> int:
        """Take one host more; return its index."""
        self._hosts.append(host)
        self._kinds = None
        index = len(self._hosts) - 1
        self._changed(index)
        return index

    def report(self, index: int, picture: ComputeNode) -> None:
        """Let a host take over a newer picture."""
        self._hosts[index].update(picture)
        self._changed(index)

    def join(
        self,
        index: int,
        aggregates: tuple[Aggregate, ...] | None = None,
        *,
        default_zone: str | None = None,
    ) -> None:
        """Let a host be in these aggregates; see :meth:`HostState.join`."""
        host = self._hosts[index]
        before = (host.joined, host.zone)
        host.join(aggregates, default_zone=default_zone)
        if (host.joined, host.zone) != before:
            self._kinds = None
            self._changed(index)

    def service(
        self, index: int, *, up: bool, forced_down: bool, disabled: bool, reason: str | None
    ) -> None:
        """Note how a host's service is; *reason* is why it is disabled."""
        host, now = self._hosts[index], (up, forced_down, disabled, reason)
        if now != (host.up, host.forced_down, host.disabled, host.disabled_reason):
            host.up, host.forced_down, host.disabled, host.disabled_reason = now
            self._changed(index)

    def consume(
        self,
        index: int,
        instance_uuid: str,
        need: Need,
        *,
        group: str | None = None,
        flavorid: str | None = None,
    ) -> None:
        """Count a selected server on a host; see :meth:`HostState.consume`."""
        self._hosts[index].consume(instance_uuid, need, group=group, flavorid=flavorid)
        self._note(index, instance_uuid, group)
        self._changed(index)

    def release(self, index: int, instance_uuid: str) -> None:
        """Count a selected server no longer; harmless if it is not counted."""
        host = self._hosts[index]
        selected = host.selected.get(instance_uuid)
        if selected is None:
            return
        host.release(instance_uuid)
        if selected.group is not None:
            members = self._groups.get(selected.group, {})
            if members.get(instance_uuid) == index:
                del members[instance_uuid]
            if not members:
                self._groups.pop(selected.group, None)
        self._changed(index)

    def _note(self, index: int, instance_uuid: str, group: str | None) -> None:
        if group is not None:
            self._groups.setdefault(group, {})[instance_uuid] = index

    def members(self, group: str) -> Mapping[str, str]:
        """Return the service hosts that members of a server group were selected for since."""
        members = self._groups.get(group, {})
        return {instance_uuid: self._hosts[index].host for instance_uuid, index in members.items()}

    # -- shortlists

    def forget(self) -> None:
        """Keep no shortlist any longer, since filters or weighers are others now."""
        self._kept.clear()
        self._asked.clear()

    def shortlist(
        self, key: Hashable, make: Callable[[], Shortlist], *, again: bool = False
    ) -> Shortlist:
        """Return the shortlist of this key as of now; *make* makes it of these hosts.

        It is kept from the second time on that it is asked for, so that demands that nobody asks
        twice do not drive out the others.

        :param again: it will be asked for again soon
        :raises RuntimeError: a kept shortlist differs from a fresh one
        """
        kept = self._kept.get(key)
        if kept is not None:
            # One that an error leaves in the middle of an update is not put back.
            del self._kept[key]
            self._catch_up(kept, make)
            self._kept[key] = kept
            return kept.shortlist
        made = make()
        if again or key in self._asked:
            self._asked.pop(key, None)
            self._keep(key, made)
        else:
            self._asked[key] = None
            if len(self._asked) > _ASKED:
                self._asked.popitem(last=False)
        return made

    def _catch_up(self, kept: _Kept, make: Callable[[], Shortlist]) -> None:
        changed = set(self._journal[kept.seen - self._cut :])
        kept.seen = self._cut + len(self._journal)
        if len(changed) > _MOST_CHANGED * len(self._hosts) and len(changed) > 1:
            kept.shortlist = make()
            return
        for index in changed:
            kept.shortlist.update(index)
        if self._compare:
            difference = kept.shortlist.difference(make())
            if difference is not None:
                raise RuntimeError(f"A kept shortlist differs from a fresh one: {difference}")

    def _keep(self, key: Hashable, shortlist: Shortlist) -> None:
        self._kept[key] = _Kept(shortlist, self._cut + len(self._journal))
        most = max(2, min(_SHORTLISTS, _VERDICTS // max(1, len(self._hosts))))
        while len(self._kept) > most:
            self._kept.popitem(last=False)

    def _changed(self, index: int) -> None:
        self._journal.append(index)
        if len(self._journal) > 2 * len(self._hosts) + 1000:
            self._shorten()

    def _shorten(self) -> None:
        """Cut the journal; a shortlist that has not seen so much of it would be made anew."""
        end = self._cut + len(self._journal)
        oldest = end - len(self._hosts)
        for key in [key for key, kept in self._kept.items() if kept.seen < oldest]:
            del self._kept[key]
        first = min((kept.seen for kept in self._kept.values()), default=end)
        del self._journal[: first - self._cut]
        self._cut = first
