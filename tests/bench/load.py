# SPDX-License-Identifier: Apache-2.0
"""A small load generator for the Compute API: boots, lists, shows, deletes; times in seconds."""

import concurrent.futures
import http.client
import json
import statistics
import threading
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any


class Client:
    """One kept-alive connection a thread."""

    def __init__(self, url: str, token: str, microversion: str = "2.37"):
        parts = urllib.parse.urlsplit(url)
        self._address, self._base = parts.netloc, parts.path.rstrip("/")
        self._headers = {
            "X-Auth-Token": token,
            "OpenStack-API-Version": f"compute {microversion}",
            "Content-Type": "application/json",
        }
        self._local = threading.local()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any, float]:
        """Return status, document and the seconds that it took."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = http.client.HTTPConnection(
                self._address, timeout=120
            )
        data = None if body is None else json.dumps(body).encode()
        began = time.perf_counter()
        connection.request(method, self._base + path, data, self._headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None, time.perf_counter() - began


@dataclass
class Boots:
    """How a number of boots went."""

    count: int
    active: int
    seconds: float
    post: list[float]
    to_active: list[float]
    uuids: list[str]

    @property
    def rate(self) -> float:
        """Boots a second from the first POST to the last ACTIVE."""
        return self.active / self.seconds


def boot(
    client: Client, server: dict[str, Any], count: int, callers: int, *, wait: bool, poll: float
) -> Boots:
    """Boot *count* servers by so many callers.

    With *wait* each caller shows its own server until it is built, and then boots its next;
    without, the list of those in BUILD is polled.
    """
    post: list[float] = []
    to_active: list[float] = []
    uuids: list[str] = []

    def one(number: int) -> None:
        began = time.perf_counter()
        body = {"server": {**server, "name": f"bench-{number}"}}
        status, answer, took = client.call("POST", "/servers", body)
        if status != 202:
            raise RuntimeError(f"POST {status}: {answer}")
        post.append(took)
        uuid = answer["server"]["id"]
        uuids.append(uuid)
        while wait:
            shown = client.call("GET", f"/servers/{uuid}")[1]["server"]
            if shown["status"] != "BUILD":
                to_active.append(time.perf_counter() - began)
                return
            time.sleep(poll)

    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(callers) as pool:
        list(pool.map(one, range(count)))
    while not wait and client.call("GET", "/servers?status=BUILD&limit=1")[1]["servers"]:
        time.sleep(poll)
    seconds = time.perf_counter() - began
    active = count_of(client, "ACTIVE")
    return Boots(count, active, seconds, post, to_active, uuids)


def count_of(client: Client, status: str) -> int:
    """Return how many servers have the status."""
    found, marker = 0, ""
    while True:
        page = client.call("GET", f"/servers?status={status}&limit=1000{marker}")[1]["servers"]
        found += len(page)
        if len(page) < 1000:
            return found
        marker = f"&marker={page[-1]['id']}"


def delete_all(client: Client, uuids: list[str], callers: int) -> float:
    """Delete the servers, wait until they are gone, and return the seconds it took."""
    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(callers) as pool:
        list(pool.map(lambda uuid: client.call("DELETE", f"/servers/{uuid}"), uuids))
    while client.call("GET", "/servers?limit=1")[1]["servers"]:
        time.sleep(0.05)
    return time.perf_counter() - began


def times(client: Client, path: str, count: int) -> list[float]:
    """GET *path* so many times and return the seconds of each."""
    return [client.call("GET", path)[2] for _ in range(count)]


def ms(values: list[float]) -> float:
    """Return the median in milliseconds."""
    return round(statistics.median(values) * 1000, 2)
