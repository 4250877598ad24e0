# SPDX-License-Identifier: Apache-2.0
"""The listening socket and the end of the process, over real HTTP."""

import http.client
import os
import socket
import threading
from typing import Any

import pytest
from oslo_config import cfg

from novalite import exception
from novalite.api import manager
from tests.unit.api.cloud import Cloud


class Quiet:
    def stop(self, timeout: float) -> None:
        pass


def make(
    conf: cfg.ConfigOpts, application: Any, monkeypatch: pytest.MonkeyPatch
) -> tuple[manager.ApiManager, list[str]]:
    failures: list[str] = []
    monkeypatch.setattr(manager.rpc, "Sender", lambda _name: Quiet())
    monkeypatch.setattr(manager, "make_wsgi", lambda *_args: (application, None))
    made = manager.ApiManager(conf, None, None, failures.append)  # type: ignore[arg-type]
    return made, failures


def listen(conf: cfg.ConfigOpts) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    conf.set_override("osapi_compute_listen_port", port)
    return port


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"X-Auth-Token": "admin:admin"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_serves_and_stops(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    port = listen(cloud.conf)
    made, failures = make(cloud.conf, cloud.client.app, monkeypatch)
    made.init_host()
    assert get(port, "/v2.1/servers") == (200, b'{"servers":[]}')
    made.drain(10)
    made.stop()
    assert failures == []


def test_serves_on_a_socket_that_was_handed_over(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        port = given.getsockname()[1]
        monkeypatch.setenv("NOVALITE_LISTEN_FD", str(os.dup(given.fileno())))
        made, failures = make(cloud.conf, cloud.client.app, monkeypatch)
        made.init_host()
        assert get(port, "/v2.1/servers") == (200, b'{"servers":[]}')
        made.drain(10)
        assert failures == []
        # It is still open: what connects now waits for the next process.
        socket.create_connection(("127.0.0.1", port), timeout=5).close()


def test_port_in_use_is_told_in_one_line(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cloud.conf.set_override("osapi_compute_listen_port", port)
        made, failures = make(cloud.conf, cloud.client.app, monkeypatch)
        with pytest.raises(exception.ConfigurationError):
            made.init_host()
    assert len(failures) == 1
    assert str(port) in failures[0]
    assert "in use" in failures[0]


def test_drain_waits_for_what_runs(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(environ: Any, start_response: Any) -> Any:
        inside.set()
        go_on.wait(10)
        start_response("200 OK", [("Content-Length", "4")])
        return [b"done"]

    port = listen(cloud.conf)
    made, _failures = make(cloud.conf, slow, monkeypatch)
    made.init_host()
    answers: list[tuple[int, bytes]] = []
    client = threading.Thread(target=lambda: answers.append(get(port, "/")))
    client.start()
    assert inside.wait(10)
    draining = threading.Thread(target=made.drain, args=(10,))
    draining.start()
    draining.join(0.05)
    assert draining.is_alive(), "it did not wait"
    go_on.set()
    client.join(10)
    draining.join(10)
    assert answers == [(200, b"done")]
    assert not draining.is_alive()


def test_a_request_that_crashes_is_not_counted_for_ever() -> None:
    def broken(environ: Any, start_response: Any) -> Any:
        raise RuntimeError("no")

    running = manager.Running(broken)
    with pytest.raises(RuntimeError):
        running({}, None)
    assert running.wait(0)


def test_a_request_runs_until_its_body_is_closed() -> None:
    running = manager.Running(lambda _environ, _start: [b"x"])
    answer = running({}, None)
    assert list(answer) == [b"x"]
    assert not running.wait(0)
    answer.close()
    assert running.wait(0)
