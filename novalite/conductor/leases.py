# SPDX-License-Identifier: Apache-2.0
"""What this conductor has taken: one owner name a take, renewed until the work is handed on."""

import os
import threading
import uuid

from novalite.db import builds
from novalite.db.engine import Database


class Leases:
    """The owner names of all takes that are in work."""

    def __init__(self, database: Database, host: str, lease: float):
        self._database = database
        self._prefix = f"{host}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.lease = lease
        self._held: set[str] = set()
        self._count = 0
        self._lock = threading.Lock()

    def new_owner(self) -> str:
        """Return a name that no take had before; it is renewed until :meth:`drop`."""
        with self._lock:
            self._count += 1
            owner = f"{self._prefix}:{self._count}"
            self._held.add(owner)
        return owner

    def drop(self, owner: str) -> None:
        """Let the name go; what it may still hold is found by recovery."""
        with self._lock:
            self._held.discard(owner)

    def renew(self) -> None:
        """Extend the leases of everything that is held."""
        with self._lock:
            owners = sorted(self._held)
        if owners:
            self._database.transaction(lambda conn: builds.renew(conn, owners, self.lease))
