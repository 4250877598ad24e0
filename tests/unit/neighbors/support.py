# SPDX-License-Identifier: Apache-2.0
"""The four stand-ins in this process, for tests of themselves and of the clients."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests
from falcon import testing
from oslo_config import cfg
from requests import adapters

from novalite import conf as conf_module
from novalite import service_auth
from novalite.neighbors import app
from novalite.neighbors.endpoints import Endpoints

PASSWORD = "open sesame"
ENDPOINTS = Endpoints(
    region="RegionOne",
    identity="http://identity.test",
    image="http://image.test",
    network="http://network.test",
    volume="http://volume.test",
    compute="http://compute.test/v2.1",
)


def make_conf(folder: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf_module.register_opts(conf)
    conf([])
    conf.set_override("state_path", str(folder))
    for name in ("admin_password", "service_password"):
        conf.set_override(name, PASSWORD, "neighbors")
    return conf


def scope(project: str | None) -> dict[str, Any]:
    if project is None:
        return {}
    return {"scope": {"project": {"name": project, "domain": {"id": "default"}}}}


def login(user: str, password: str = PASSWORD) -> dict[str, Any]:
    named = {"name": user, "password": password, "domain": {"name": "Default"}}
    return {"identity": {"methods": ["password"], "password": {"user": named}}}


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Cloud:
    """The applications over one temporary file."""

    def __init__(self, folder: Path):
        self.conf = make_conf(folder)
        self.store = app.open_store(self.conf)
        self.identity = testing.TestClient(app.make_identity(self.conf, self.store, ENDPOINTS))
        self.image = testing.TestClient(app.make_image(self.conf, self.store, ENDPOINTS))
        self.network = testing.TestClient(app.make_network(self.conf, self.store, ENDPOINTS))
        self.volume = testing.TestClient(app.make_volume(self.conf, self.store, ENDPOINTS))

    def token(self, user: str = "admin", project: str | None = "admin") -> str:
        answer = self.identity.simulate_post(
            "/v3/auth/tokens", json={"auth": {**login(user), **scope(project)}}
        )
        assert answer.status_code == 201, answer.text
        return answer.headers["X-Subject-Token"]

    def project_id(self, name: str) -> str:
        with self.store.read() as tx:
            return str(tx.find("project", name=name)[0]["id"])

    def user(self, user: str = "admin", project: str | None = "admin") -> "User":
        return User(self, self.token(user, project))

    def close(self) -> None:
        self.store.close()


class User:
    """Makes requests with one token; the answer's status is checked."""

    def __init__(self, cloud: Cloud, token: str):
        self._cloud = cloud
        self.token = token

    def __call__(
        self, service: str, method: str, path: str, body: Any = None, expect: int = 200, **kw: Any
    ) -> Any:
        client: testing.TestClient = getattr(self._cloud, service)
        headers = {"X-Auth-Token": self.token, **kw.pop("headers", {})}
        if body is not None:
            kw["body"] = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        answer = client.simulate_request(method, path, headers=headers, **kw)
        assert answer.status_code == expect, f"{answer.status_code}: {answer.text}"
        return answer.json if answer.content and "json" in answer.headers["content-type"] else {}


Fault = Callable[[requests.PreparedRequest], None]


class Wire(adapters.BaseAdapter):
    """Carries a client's requests to the applications without sockets.

    ``before`` is called before a request is handled and ``after`` when its answer is to be given;
    either may raise what a broken connection would.
    """

    def __init__(self, cloud: Cloud):
        super().__init__()
        self._cloud = cloud
        self.requests: list[str] = []
        self.before: Fault = lambda request: None
        self.after: Fault = lambda request: None

    def send(self, request: requests.PreparedRequest, *_args: Any, **_kw: Any) -> Any:
        path, _, query = str(request.path_url).partition("?")
        self.requests.append(f"{request.method} {path}" + (f"?{query}" if query else ""))
        self.before(request)
        host = str(request.url).split("/")[2].split(".")[0]
        client: testing.TestClient = getattr(self._cloud, host)
        found = client.simulate_request(
            request.method,
            path,
            query_string=query,
            headers=dict(request.headers),
            body=request.body,
        )
        self.after(request)
        answer = requests.Response()
        answer.status_code = found.status_code
        answer.headers.update(found.headers)
        answer._content = found.content
        answer.url = str(request.url)
        answer.request = request
        return answer

    def close(self) -> None:
        pass

    def of(self, service_path: str) -> list[str]:
        """Return the requests whose path begins with *service_path*."""
        return [line for line in self.requests if line.split(" ")[1].startswith(service_path)]


def connect(cloud: Cloud) -> Wire:
    """Let the clients of this process reach the cloud; return what carries their requests."""
    for name, value in (("auth_url", f"{ENDPOINTS.identity}/v3"), ("password", PASSWORD)):
        cloud.conf.set_override(name, value, "service_user")
    return connect_bare(cloud)


def connect_bare(cloud: Cloud) -> Wire:
    """The same with the account as it is configured."""
    wire = Wire(cloud)
    service_auth._shared = None
    service_auth.session(cloud.conf).session.mount("http://", wire)
    return wire
