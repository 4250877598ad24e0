# SPDX-License-Identifier: Apache-2.0
"""What a cloud uses: CPU and memory of its processes, SQL statements, AMQP messages."""

import json
import os
import re
import signal
import threading
from pathlib import Path
from types import TracebackType

import kombu

from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

_TICK = 1000.0 / os.sysconf("SC_CLK_TCK")
SERVICES = ("api", "conductor", "scheduler", "compute")


def processes(cloud: Cloud) -> dict[str, int]:
    """Return the pid of every process of the cloud, its broker included, by a short name."""
    pids = {name: cloud.services.process(name).pid for name in cloud.names}
    assert cloud.broker is not None
    pids["broker"] = cloud.broker.node.pid
    return {name: pid for name, pid in pids.items() if pid}


def cpu(pids: dict[str, int]) -> dict[str, float]:
    """Return the CPU milliseconds that each process has used."""
    used = {}
    for name, pid in pids.items():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used[name] = (int(fields[11]) + int(fields[12])) * _TICK
    return used


def spent(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return the milliseconds between two readings, computes summed up."""
    sums: dict[str, float] = {}
    for name, value in after.items():
        kind = re.sub(r"\d+$", "", name)
        sums[kind] = sums.get(kind, 0.0) + value - before[name]
    return sums


def rss_mb(pid: int) -> float:
    """Return a process's resident memory in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def counters(cloud: Cloud) -> dict[str, int]:
    """Return the counters of all services, summed; each is asked by SIGUSR2."""
    sums: dict[str, int] = {}
    for name in cloud.names:
        if name == "neighbors":
            continue
        before = len(cloud.grep(name, "counters {"))
        cloud.services.process(name).send_signal(signal.SIGUSR2)
        lines = eventually(
            lambda name=name, before=before: cloud.grep(name, "counters {")[before:],  # type: ignore[misc]
            what=f"{name} logs its counters",
        )
        for key, value in json.loads(lines[-1].partition("counters ")[2]).items():
            sums[key] = sums.get(key, 0) + value
    return sums


class Tap:
    """Counts the messages that a broker takes while it is open, by the broker's own trace."""

    def __init__(self, cloud: Cloud):
        assert cloud.broker is not None
        self._cloud = cloud
        self._url = cloud.transport_url.replace("rabbit://", "amqp://")
        self.messages = 0
        self.bytes = 0
        self._stop = threading.Event()

    def __enter__(self) -> "Tap":
        self._cloud.trace(True)
        self._connection = kombu.Connection(self._url)
        exchange = kombu.Exchange("amq.rabbitmq.trace", type="topic", passive=True)
        queue = kombu.Queue("", exchange, routing_key="publish.#", exclusive=True)
        self._consumer = self._connection.Consumer(
            queue, on_message=self._count, no_ack=True, accept=None
        )
        self._consumer.consume()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._connection.release()
        self._cloud.trace(False)

    def _count(self, message: kombu.Message) -> None:
        self.messages += 1
        self.bytes += len(message.body)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._connection.drain_events(timeout=0.2)
            except TimeoutError:
                continue
