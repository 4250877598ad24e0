# SPDX-License-Identifier: Apache-2.0
"""noauth2, the token cache, and keystonemiddleware against a small identity service."""

import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from falcon import testing
from oslo_config import cfg

from novalite import exception
from novalite.api import auth
from tests.unit.api.cloud import Cloud

FAR = "2099-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("token", "user", "project", "admin"),
    [
        ("admin:demo", "admin", "demo", True),
        ("admin", "admin", "admin", True),
        ("u:p", "u", "p", False),
        ("u:", "u", "u", False),
        ("u:admin", "u", "admin", False),
    ],
)
def test_noauth_believes_the_token(token: str, user: str, project: str, admin: bool) -> None:
    context = auth.NoAuth().authenticate({"HTTP_X_AUTH_TOKEN": token}, "req-1", None)
    assert (context.user_id, context.project_id, context.is_admin) == (user, project, admin)
    assert context.request_id == "req-1"


@pytest.mark.parametrize("environ", [{}, {"HTTP_X_AUTH_TOKEN": ""}, {"HTTP_X_AUTH_TOKEN": ":p"}])
def test_noauth_wants_a_user(environ: dict[str, Any]) -> None:
    with pytest.raises(auth.Unauthenticated):
        auth.NoAuth().authenticate(environ, "req-1", None)


class TestCache:
    def test_forgets_after_its_time(self) -> None:
        now = [0.0]
        cache = auth.TokenCache(clock=lambda: now[0])
        cache.set("a", b"1", time=60)
        now[0] = 59.9
        assert cache.get("a") == b"1"
        now[0] = 60.0
        assert cache.get("a") is None

    def test_is_bounded(self) -> None:
        cache = auth.TokenCache(size=2)
        for key in "abc":
            cache.set(key, key)
        assert [cache.get(key) for key in "abc"] == [None, "b", "c"]


@dataclass
class Identity:
    """Knows one token, and counts how often it is asked for it."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=lambda: ["member", "reader"])


@pytest.fixture
def identity() -> Iterator[Identity]:
    state = Identity()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _send(self, status: int, body: Any, **headers: str) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            if not self.path.startswith("/v3/auth/tokens"):
                links = [{"rel": "self", "href": f"{state.url}/v3/"}]
                version = {"id": "v3.14", "status": "stable", "links": links}
                self._send(200, {"version": version})
                return
            token = self.headers["X-Subject-Token"]
            state.asked.append(token)
            if token != "good":
                self._send(404, {"error": {"code": 404, "message": "x", "title": "x"}})
                return
            domain = {"id": "default", "name": "Default"}
            body = {
                "methods": ["password"],
                "user": {"id": "u1", "name": "user", "domain": domain},
                "project": {"id": "p1", "name": "project", "domain": domain},
                "roles": [{"id": role, "name": role} for role in state.roles],
                "issued_at": "2026-01-01T00:00:00.000000Z",
                "expires_at": FAR,
                "audit_ids": ["x"],
            }
            self._send(200, {"token": body})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            domain = {"id": "default", "name": "Default"}
            endpoint = {"id": "e", "interface": "admin", "region_id": "r", "region": "r"}
            urls = [
                {**endpoint, "interface": kind, "url": state.url} for kind in ("admin", "internal")
            ]
            body = {
                "methods": ["password"],
                "user": {"id": "nova", "name": "nova", "domain": domain},
                "project": {"id": "service", "name": "service", "domain": domain},
                "roles": [{"id": "admin", "name": "admin"}],
                "catalog": [
                    {"id": "i", "type": "identity", "name": "keystone", "endpoints": urls},
                ],
                "issued_at": "2026-01-01T00:00:00.000000Z",
                "expires_at": FAR,
            }
            self._send(201, {"token": body}, X_Subject_Token="service-token")

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield state
    server.shutdown()
    server.server_close()


def keystone(conf: cfg.ConfigOpts, tmp_path: Any, url: str) -> auth.Authenticator:
    file = tmp_path / "keystone.conf"
    file.write_text(
        "[keystone_authtoken]\n"
        "auth_type = password\n"
        f"auth_url = {url}\n"
        f"www_authenticate_uri = {url}\n"
        "username = nova\npassword = secret\nproject_name = service\n"
        "user_domain_name = Default\nproject_domain_name = Default\n"
        "http_request_max_retries = 0\nservice_token_roles_required = true\n"
    )
    conf.reload_config_files()
    conf.set_override("auth_strategy", "keystone", group="api")
    return auth.make(conf)


def environ(token: str | None) -> dict[str, Any]:
    headers = {} if token is None else {"X-Auth-Token": token}
    return testing.create_environ(path="/v2.1/servers", headers=headers)


class TestKeystone:
    def test_a_token_is_asked_for_once(
        self, conf: cfg.ConfigOpts, tmp_path: Any, identity: Identity
    ) -> None:
        authenticator = keystone(conf, tmp_path, identity.url)
        for number in range(3):
            env = environ("good")
            context = authenticator.authenticate(env, f"req-{number}", "req-outer")
            assert auth.CACHE_KEY not in env
        assert identity.asked == ["good"]
        assert (context.user_id, context.project_id, context.roles) == (
            "u1",
            "p1",
            ["member", "reader"],
        )
        assert not context.is_admin
        assert (context.request_id, context.global_request_id) == ("req-2", "req-outer")
        assert context.auth_token is None

    def test_the_admin_role_makes_an_administrator(
        self, conf: cfg.ConfigOpts, tmp_path: Any, identity: Identity
    ) -> None:
        identity.roles = ["admin"]
        authenticator = keystone(conf, tmp_path, identity.url)
        assert authenticator.authenticate(environ("good"), "req-1", None).is_admin

    @pytest.mark.parametrize("token", [None, "bad"])
    def test_no_token_and_a_wrong_one(
        self, conf: cfg.ConfigOpts, tmp_path: Any, identity: Identity, token: str | None
    ) -> None:
        authenticator = keystone(conf, tmp_path, identity.url)
        with pytest.raises(auth.Unauthenticated) as caught:
            authenticator.authenticate(environ(token), "req-1", None)
        assert caught.value.challenge == f'Keystone uri="{identity.url}"'

    def test_identity_is_away(self, conf: cfg.ConfigOpts, tmp_path: Any) -> None:
        authenticator = keystone(conf, tmp_path, "http://127.0.0.1:1")
        with pytest.raises(exception.NeighborUnavailable):
            authenticator.authenticate(environ("good"), "req-1", None)

    def test_headers_cannot_be_forged(
        self, conf: cfg.ConfigOpts, tmp_path: Any, identity: Identity
    ) -> None:
        authenticator = keystone(conf, tmp_path, identity.url)
        env = environ("good") | {"HTTP_X_ROLES": "admin", "HTTP_X_PROJECT_ID": "other"}
        context = authenticator.authenticate(env, "req-1", None)
        assert (context.project_id, context.is_admin) == ("p1", False)


class TestPolicy:
    def test_a_reader_changes_nothing(self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
        key = cloud.boot(user="u:p")
        real = auth.NoAuth.authenticate

        def reader(*args: Any) -> Any:
            context = real(*args)
            context.roles = ["reader"]
            return context

        monkeypatch.setattr(auth.NoAuth, "authenticate", reader)
        assert cloud.call("GET", f"/servers/{key}", user="u:p").status_code == 200
        assert cloud.call("DELETE", f"/servers/{key}", user="u:p").status_code == 403
        assert cloud.create(user="u:p").status_code == 403
