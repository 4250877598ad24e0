# SPDX-License-Identifier: Apache-2.0
"""The first few of a large sorted collection that changes all the time.

Rankings keep the best hosts in one, shortlists the nearest misses. Pure.
"""

import bisect
import heapq
from collections.abc import Iterable, Iterator
from typing import Any

# Whatever compares: a number, or a tuple of such.
Entry = Any


class Front:
    """The least entries of a collection, in order; of the others it knows only where they begin.

    As entries go, the front gets shorter; whoever needs more than it has fills it anew.

    :param most: entries held after :meth:`fill`
    """

    __slots__ = ("_entries", "_most", "limit")

    def __init__(self, most: int, entries: Iterable[Entry]):
        self._most = most
        self._entries: list[Entry] = []
        # No entry beyond the front is less than this one; None: there is none beyond.
        self.limit: Entry | None = None
        self.fill(entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def first(self) -> Entry:
        """The least entry of all; there must be one in the front."""
        return self._entries[0]

    def fill(self, entries: Iterable[Entry]) -> None:
        """Begin anew with the whole collection."""
        self._entries = heapq.nsmallest(self._most + 1, entries)
        self.limit = None
        self._cut()

    def add(self, entry: Entry) -> None:
        """Take an entry that came to the collection."""
        if self.limit is not None and entry >= self.limit:
            return
        bisect.insort(self._entries, entry)
        if len(self._entries) > 2 * self._most:
            self._cut()

    def discard(self, entry: Entry) -> None:
        """Let go an entry that left the collection."""
        if self.limit is not None and entry > self.limit:
            return
        position = bisect.bisect_left(self._entries, entry)
        if position < len(self._entries) and self._entries[position] == entry:
            del self._entries[position]

    def _cut(self) -> None:
        if len(self._entries) > self._most:
            self.limit = self._entries[self._most]
            del self._entries[self._most :]
