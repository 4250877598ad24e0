# SPDX-License-Identifier: Apache-2.0
"""Tells conductors and computes that there is work; no request waits for it.

What arrives while one message is under way goes together in the next. A message that cannot be
sent is dropped: its work is a row, and recovery finds it. After that the next one waits a second
and collects meanwhile: a bus that is down costs one try a second, however many requests come.
While requests come so fast that messages carry more than one, the next waits a moment too, so that
everybody behind it has fewer and larger pieces to do; a request that comes alone never waits.
"""

import logging
import threading
import time
from typing import Protocol, TypeVar

from novalite import context as context_module
from novalite import rpc
from novalite.objects import build

LOG = logging.getLogger(__name__)

# So many wake-ups may wait for the bus; more are left to recovery.
LIMIT = 10000
# So many are put into one message.
BATCH = 200
# Seconds of rest after a message that could not be sent.
REST = 1.0
# Seconds of rest after a message that carried more than one wake-up.
SPACING = 0.02

Context = context_module.RequestContext
T = TypeVar("T")


class Conductors(Protocol):
    """The cast to the conductors."""

    def run_reservations(self, context: Context, *, reservation_ids: list[str]) -> None:
        """Cast: drive the open builds of these reservations."""


class Computes(Protocol):
    """The cast to a compute host."""

    def destroy_instances(
        self, context: Context, *, host: str, requests: list[build.DestroyRequest]
    ) -> None:
        """Cast: remove these servers."""


class Wakeup:
    """Collects wake-ups and sends them from the thread of *sender*."""

    def __init__(self, conductors: Conductors, computes: Computes, sender: rpc.Sender):
        self._conductors = conductors
        self._computes = computes
        self._sender = sender
        self._lock = threading.Lock()
        self._reservations: list[tuple[Context, str]] = []
        self._destroys: dict[str, list[tuple[Context, build.DestroyRequest]]] = {}
        self._waiting = 0
        self._rest_until = 0.0

    def run_reservation(self, context: Context, reservation_id: str) -> None:
        """Wake a conductor for the builds of a reservation."""
        with self._lock:
            if not self._room():
                return
            first = not self._reservations
            self._reservations.append((context, reservation_id))
        if first:
            self._sender.send("run_reservations", self._send_reservations)

    def destroy(self, context: Context, host: str, request: build.DestroyRequest) -> None:
        """Tell a compute host to remove a server."""
        with self._lock:
            if not self._room():
                return
            first = host not in self._destroys
            self._destroys.setdefault(host, []).append((context, request))
        if first:
            self._sender.send(f"destroy_instances to {host}", lambda: self._send_destroys(host))

    def _room(self) -> bool:
        if self._waiting >= LIMIT:
            LOG.warning("%d wake-ups wait for the bus already; recovery will drive the rest", LIMIT)
            return False
        self._waiting += 1
        return True

    def _rest(self) -> None:
        left = self._rest_until - time.monotonic()
        if left > 0:
            time.sleep(left)
        # Until the sending below has worked, it has failed.
        self._rest_until = time.monotonic() + REST

    def _send_reservations(self) -> None:
        self._rest()
        with self._lock:
            entries, self._reservations = self._reservations, []
            self._waiting -= len(entries)
        for batch in _batches(entries):
            ids = [reservation_id for _context, reservation_id in batch]
            self._conductors.run_reservations(_common(batch), reservation_ids=ids)
        self._rest_until = time.monotonic() + SPACING if len(entries) > 1 else 0.0

    def _send_destroys(self, host: str) -> None:
        self._rest()
        with self._lock:
            entries = self._destroys.pop(host, [])
            self._waiting -= len(entries)
        for batch in _batches(entries):
            requests = [request for _context, request in batch]
            self._computes.destroy_instances(_common(batch), host=host, requests=requests)
        self._rest_until = 0.0


def _batches(entries: list[tuple[Context, T]]) -> list[list[tuple[Context, T]]]:
    return [entries[start : start + BATCH] for start in range(0, len(entries), BATCH)]


def _common(batch: list[tuple[Context, T]]) -> Context:
    """Return the context to send with: the request's own if the message carries only one."""
    return batch[0][0] if len(batch) == 1 else context_module.service_context()
