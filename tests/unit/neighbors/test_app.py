# SPDX-License-Identifier: Apache-2.0
import logging
import socket
from pathlib import Path

import pytest
import requests

from novalite.conf.files import ConfigError
from novalite.neighbors import app
from tests.unit.neighbors import support
from tests.unit.neighbors.support import Cloud


def test_the_admin_password_must_be_given(tmp_path: Path) -> None:
    conf = support.make_conf(tmp_path)
    conf.set_override("admin_password", None, "neighbors")
    with pytest.raises(ConfigError, match=r"\[neighbors\] admin_password"):
        app.Server(conf)
    assert not (tmp_path / "neighbors.db").exists()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    conf = support.make_conf(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for name in app.SERVICES:
            conf.set_override(f"{name}_port", port if name == "image" else 0, "neighbors")
        with pytest.raises(ConfigError, match=rf"\[neighbors\] image_port = {port}"):
            app.Server(conf)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    conf = support.make_conf(tmp_path)
    (tmp_path / "text").write_text("this is not a database, however long one makes it\n" * 30)
    conf.set_override("database", str(tmp_path / "text"), "neighbors")
    with pytest.raises(ConfigError, match=r"\[neighbors\] database = .*text"):
        app.open_store(conf)


def test_serves_on_three_sockets_until_stopped(tmp_path: Path) -> None:
    conf = support.make_conf(tmp_path)
    for name in app.SERVICES:
        conf.set_override(f"{name}_port", 0, "neighbors")
    manager = app.NeighborsManager(conf)
    manager.init_host()
    endpoints = manager._server.endpoints
    try:
        auth = {**support.login("demo"), **support.scope("demo")}
        answer = requests.post(
            f"{endpoints.identity}/v3/auth/tokens", json={"auth": auth}, timeout=10
        )
        token = answer.headers["X-Subject-Token"]
        urls = {
            item["type"]: item["endpoints"][0]["url"] for item in answer.json()["token"]["catalog"]
        }
        assert urls["image"] == endpoints.image
        for url in (f"{urls['image']}/v2/images", f"{urls['network']}/v2.0/networks"):
            answer = requests.get(url, headers={"X-Auth-Token": token}, timeout=10)
            assert answer.status_code == 200
    finally:
        manager.drain(10.0)
        manager.stop()
    with pytest.raises(requests.ConnectionError):
        requests.get(endpoints.identity, timeout=10)


def test_a_second_start_keeps_what_was_made(tmp_path: Path) -> None:
    first = Cloud(tmp_path)
    first.user()("network", "POST", "/v2.0/networks", {"network": {"name": "kept"}}, 201)
    token = first.token()
    first.close()
    second = Cloud(tmp_path)
    found = support.User(second, token)("network", "GET", "/v2.0/networks")["networks"]
    assert sorted(network["name"] for network in found) == ["kept", "private", "public"]
    second.close()


def test_accounts(cloud: Cloud) -> None:
    for user, project in (
        ("admin", "admin"),
        ("admin", "demo"),
        ("demo", "demo"),
        ("nova", "service"),
    ):
        cloud.token(user, project)


def test_access_log(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    user = cloud.user()
    wanted = "req-00000000-0000-0000-0000-000000000001"
    with caplog.at_level(logging.INFO, "novalite.neighbors"):
        user(
            "network",
            "GET",
            "/v2.0/networks",
            query_string="name=x",
            headers={"X-OpenStack-Request-ID": wanted},
        )
    line = caplog.messages[-1]
    assert line.startswith(
        'network: 127.0.0.1 "GET /v2.0/networks?name=x HTTP/1.1" status: 200 len:'
    )
    assert line.endswith(f"for: {wanted}")
    assert user.token not in caplog.text


def test_a_crash_tells_the_request_id_and_nothing_else(
    cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    user = cloud.user()
    with cloud.store.write() as tx:
        tx.run("UPDATE records SET doc = 'broken' WHERE kind = 'network'")
    answer = user("network", "GET", "/v2.0/networks", expect=500)
    message = answer["NeutronError"]["message"]
    assert "req-" in message and "JSON" not in message
    assert "JSONDecodeError" in caplog.text


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'"x"', b"\xff", b'{"network": []}', b"x" * (5 * 1024 * 1024)]
)
def test_bodies_that_are_no_objects(cloud: Cloud, content: bytes) -> None:
    answer = cloud.network.simulate_post(
        "/v2.0/networks", body=content, headers={"X-Auth-Token": cloud.token()}
    )
    assert answer.status_code == (413 if len(content) > 100 else 400)
    assert answer.json["NeutronError"]["message"]
