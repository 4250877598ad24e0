# SPDX-License-Identifier: Apache-2.0
"""What a service runs: the endpoints of its RPC servers and its periodic tasks."""

from typing import Any, Protocol

from novalite import health, periodic


class Manager(Protocol):
    """One service's work; :mod:`novalite.service` starts and stops it.

    The order is: ``init_host`` (before any message is taken), then the RPC servers of
    ``endpoints``, then the periodic tasks, then READY.
    """

    def init_host(self) -> None:
        """Prepare for work: register, clean up what a former start left."""

    def endpoints(self) -> list[tuple[str, list[Any]]]:
        """Return (topic, endpoint objects); each topic gets a server, and so a pool, of its own."""

    def periodic_tasks(self) -> list[periodic.Periodic]:
        """Return the tasks that run from now on."""

    def health_checks(self) -> list[health.Check]:
        """Return what tells whether the service can work, besides its own queues."""

    def reload(self) -> None:
        """Take over the options that were read anew on SIGHUP."""

    def drain(self, timeout: float) -> None:
        """After no message is taken any more: let running work end, *timeout* seconds at most."""

    def stop(self) -> None:
        """Stop threads of the manager's own."""
