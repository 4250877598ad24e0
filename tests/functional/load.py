# SPDX-License-Identifier: Apache-2.0
"""Users who go on whatever is done to the cloud: steady requests and builds, all counted."""

import threading
import time
from collections import Counter
from concurrent import futures
from types import TracebackType

from novalite.devcloud.errors import ClientError
from tests.functional import api as api_module
from tests.functional.cloud import Cloud

READS = ("/servers/detail?limit=5", "/flavors/detail", "/os-services", "/servers?limit=2")
# Of so many requests one asks for a server.
BUILD_EVERY = 10


class Load:
    """*rate* requests a second from the ``with`` on to its end; nothing is tried twice."""

    def __init__(self, cloud: Cloud, rate: float = 20.0):
        self.failures: list[str] = []
        self.answers: Counter[int] = Counter()
        self.servers: list[str] = []
        self._rate = rate
        self._api = cloud.api
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._pool = futures.ThreadPoolExecutor(16, "load")
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
        self._pool.shutdown(wait=True)

    @property
    def requests(self) -> int:
        """How many were sent and have ended."""
        with self._lock:
            return sum(self.answers.values()) + len(self.failures)

    def _run(self) -> None:
        began, count = time.monotonic(), 0
        while not self._stopped.wait(max(0.0, began + count / self._rate - time.monotonic())):
            self._pool.submit(self._build if count % BUILD_EVERY == 0 else self._read, count)
            count += 1

    def _read(self, count: int) -> None:
        self._request("GET", READS[count % len(READS)], 200)

    def _build(self, count: int) -> None:
        server = {
            "name": f"load{count}",
            "flavorRef": api_module.NANO,
            "imageRef": self._api.image,
            "networks": "none",
        }
        body = self._request("POST", "/servers", 202, {"server": server})
        if body is not None:
            with self._lock:
                self.servers.append(body["server"]["id"])

    def _request(
        self, method: str, path: str, expected: int, body: object = None
    ) -> dict[str, dict[str, str]] | None:
        try:
            answer = self._api.request(method, path, body)
        except ClientError as error:
            with self._lock:
                self.failures.append(f"{method} {path}: {error}")
            return None
        with self._lock:
            if answer.status == expected:
                self.answers[answer.status] += 1
                found: dict[str, dict[str, str]] = answer.body
                return found
            self.failures.append(f"{method} {path}: {answer.status} {answer.body}")
        return None
