# SPDX-License-Identifier: Apache-2.0
"""What each database driver is told, so that no statement waits for ever for a server that is gone.

A server that is stopped refuses or resets; one that vanished, or a network that drops packets, just
stays silent. Connecting is bounded by ``connect_timeout`` and each answer by ``answer_timeout``; a
wait for a lock ends earlier, by the server, as an error after which the transaction is repeated.
The kernel's keep-alive is set on both ends: the server gives up what a vanished client held.
"""

import time
from collections.abc import Callable, Generator
from typing import Any

from oslo_config import cfg

# Seconds without a packet after which the kernel asks, and how often it asks.
_IDLE, _EVERY, _TIMES = 5, 2, 3


def arguments(
    backend: str, database: cfg.ConfigOpts.GroupAttr, *, patient: bool = False
) -> dict[str, Any]:
    """Return the driver's arguments for a connection.

    :param backend: SQLAlchemy's name of the database
    :param database: the options of [database]
    :param patient: for migrations, whose statements may take as long as they need
    """
    if backend == "sqlite":
        return {"check_same_thread": False}
    connect, answer = int(database.connect_timeout), int(database.answer_timeout)
    locks = max(1, answer // 2)
    if backend == "postgresql":
        settings = {
            "tcp_keepalives_idle": _IDLE,
            "tcp_keepalives_interval": _EVERY,
            "tcp_keepalives_count": _TIMES,
        }
        if not patient:
            settings["lock_timeout"] = locks * 1000
            settings["idle_in_transaction_session_timeout"] = 2 * answer * 1000
        return {
            "connect_timeout": connect,
            "keepalives_idle": _IDLE,
            "keepalives_interval": _EVERY,
            "keepalives_count": _TIMES,
            "tcp_user_timeout": answer * 1000,
            "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
        }
    if patient:
        return {"connect_timeout": connect}
    return {
        "connect_timeout": connect,
        "read_timeout": answer,
        "write_timeout": answer,
        "init_command": f"SET SESSION innodb_lock_wait_timeout = {locks}",
    }


def bounded_psycopg(limit: float) -> Callable[..., Any]:
    """Return ``connect`` of psycopg whose connections give up after *limit* seconds of silence.

    The library has no such option: it waits for as long as the kernel holds the connection.
    """
    import psycopg

    class Bounded(psycopg.Connection[Any]):
        def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
            """Wait for one answer of the server."""
            return super().wait(self._until(gen), *args, **kwargs)

        def _until(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            end = time.monotonic() + limit
            try:
                wanted = next(gen)
                while True:
                    # The library comes by ten times a second although nothing has arrived.
                    ready = yield wanted
                    if not ready and time.monotonic() >= end:
                        gen.close()
                        self.pgconn.finish()
                        raise psycopg.OperationalError(f"no answer within {limit:g} s")
                    wanted = gen.send(ready)
            except StopIteration as done:
                return done.value

    return Bounded.connect
