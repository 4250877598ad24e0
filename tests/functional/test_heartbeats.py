# SPDX-License-Identifier: Apache-2.0
"""V16: a process that stood still for longer than the broker waits for a heartbeat.

The process is stopped as a whole: to the broker that is a blocked hub. Afterwards it says where it
connects to, serves the next message, and has neither a thread nor a connection more than before.
"""

import os
import time
from collections.abc import Callable
from concurrent import futures
from pathlib import Path

import pytest

from novalite import context, exception
from novalite.compute import rpcapi
from novalite.devcloud.broker import Broker
from tests.functional.callers import Caller
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.bus

Make = Callable[..., Cloud]
# Seconds: of silence after which the broker hangs up, and until the next message is served.
HEARTBEAT = 2
SERVED = 5.0
# More tasks than any pool of a compute has threads.
POOL = 16
CONFIG = {
    "DEFAULT": {"service_down_time": 20},
    "oslo_messaging_rabbit": {"heartbeat_timeout_threshold": HEARTBEAT},
}


class Process:
    """What the kernel knows about a service."""

    def __init__(self, cloud: Cloud, broker: Broker, name: str):
        self._cloud = cloud
        self._broker = broker
        self.name = name

    @property
    def _proc(self) -> Path:
        return Path(f"/proc/{self._cloud.services.process(self.name).pid}")

    def threads(self) -> int:
        """Return the number of its threads."""
        return len(os.listdir(self._proc / "task"))

    def sockets(self) -> set[str]:
        """Return its connections to the broker."""
        port = f":{self._broker.port:04X}"
        table = (self._proc / "net/tcp").read_text().splitlines()[1:]
        ours = {line.split()[9] for line in table if line.split()[2].endswith(port)}
        links = {os.readlink(link) for link in (self._proc / "fd").iterdir() if link.is_symlink()}
        return {link for link in links if link[8:-1] in ours}

    def stand_still(self) -> None:
        """Stop it until the broker has hung up on all of its connections."""
        before = self.sockets()
        assert before
        self._cloud.pause(self.name)

        def hung_up() -> bool:
            table = (self._proc / "net/tcp").read_text().splitlines()[1:]
            states = {line.split()[3] for line in table if f"socket:[{line.split()[9]}]" in before}
            # CLOSE_WAIT: the other side is done.
            return states <= {"08"}

        eventually(hung_up, 6.0 * HEARTBEAT, "the broker hangs up")
        self._cloud.resume(self.name)


@pytest.fixture
def cloud(make_cloud: Make, broker: Broker | None) -> Cloud:
    if broker is None:
        pytest.skip("looks at the connections of a broker on this machine")
    return make_cloud(config=CONFIG)


def test_v16_a_process_that_stood_still_serves_again(
    cloud: Cloud, broker: Broker, rounds: range
) -> None:
    compute = Process(cloud, broker, "compute1")
    cloud.wait_log("compute1", "is ready")
    with Caller(cloud.transport_url) as caller:
        host = rpcapi.ComputeAPI(caller.bus)

        def served() -> bool:
            return bool(
                host.ping(context.service_context(), host="compute1", timeout=1.0) == "pong"
            )

        # Native pools grow with tasks that come together; after that they have all their threads.
        cloud.pause("compute1")
        with futures.ThreadPoolExecutor(POOL) as pool:
            asked = [pool.submit(_pong, served) for _ in range(POOL)]
            eventually(lambda: all(each.running() for each in asked), what="all have asked")
            cloud.resume("compute1")
        api = cloud.api
        assert set(api.wait_settled(api.boot_many(POOL)).values()) == {"ACTIVE"}
        threads, sockets = compute.threads(), len(compute.sockets())
        for _ in rounds:
            said = len(cloud.grep("compute1", f"127.0.0.1:{broker.port}"))
            compute.stand_still()
            began = time.monotonic()
            eventually(lambda: _pong(served), SERVED, "the next message is served")
            assert time.monotonic() - began < SERVED
            lines = cloud.grep("compute1", f"127.0.0.1:{broker.port}")[said:]
            assert lines, "it does not say where it was connected to"
            assert set(api.wait_settled([api.boot()]).values()) == {"ACTIVE"}
        eventually(lambda: compute.threads() <= threads, what="no thread is left over")
        eventually(lambda: len(compute.sockets()) <= sockets, what="no connection is left over")
    assert not cloud.grep("compute1", "Traceback")


def test_v16_the_first_request_after_a_long_silence(cloud: Cloud, broker: Broker) -> None:
    api = cloud.api
    assert set(api.wait_settled([api.boot()]).values()) == {"ACTIVE"}
    Process(cloud, broker, "api").stand_still()
    began = time.monotonic()
    answer = api.create()
    assert answer.status == 202, answer
    assert set(api.wait_settled([answer.body["server"]["id"]]).values()) == {"ACTIVE"}
    assert time.monotonic() - began < 2 * SERVED
    # The message went out; nobody had to find the row.
    assert not cloud.grep("api", "not sent, recovery will drive it|Traceback")


def _pong(served: Callable[[], bool]) -> bool:
    try:
        return served()
    except exception.BusUnavailable:
        return False
