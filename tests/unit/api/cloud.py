# SPDX-License-Identifier: Apache-2.0
"""The stand-ins around the application, and the verbs that tests use."""

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from falcon import testing
from oslo_config import cfg

from novalite import conf as conf_module
from novalite import exception, log
from novalite.api.policy import Policy
from novalite.db import engine, schema
from novalite.objects import base
from novalite.objects.compute_node import ComputeNode
from novalite.objects.inquiry import CapacityReport, Examination
from novalite.objects.request_spec import ImageMeta, RequestSpec
from novalite.scheduler import inquiry
from novalite.scheduler.host_state import HostState
from novalite.volume import errors
from tests.unit.scheduler import fakes

IMAGE = "11111111-2222-3333-4444-555555555555"
BIG_IMAGE = "99999999-2222-3333-4444-555555555555"
FLAVOR = "1"
NETWORK = "aaaaaaaa-0000-0000-0000-000000000001"
PORT = "bbbbbbbb-0000-0000-0000-000000000001"


@dataclass
class FakeImages:
    images: dict[str, ImageMeta] = field(default_factory=dict)

    def get(self, context: Any, image_id: str) -> ImageMeta:
        if image_id not in self.images:
            raise exception.ImageInBodyNotFound(image_id=image_id)
        return self.images[image_id]


@dataclass
class FakeNetworks:
    asked: list[tuple[Any, int]] = field(default_factory=list)
    groups: tuple[str, ...] = ("default",)

    def security_groups(self, context: Any, names: Any) -> list[str]:
        for name in names:
            if name not in self.groups:
                raise exception.SecurityGroupInBodyNotFound(name=name)
        return list(names)

    def validate(self, context: Any, requested: Any, count: int) -> Any:
        self.asked.append((requested, count))
        return requested or []


@dataclass
class FakeVolumes:
    """Knows the volumes in ``known``; a root volume tells of ``image``."""

    known: tuple[str, ...] = ()
    image: ImageMeta = field(default_factory=ImageMeta)
    asked: int = 0

    def check(self, context: Any, devices: Any) -> ImageMeta:
        self.asked += 1
        for device in devices:
            if device.is_brought and device.volume_id not in self.known:
                raise errors.InvalidBDMVolume(id=device.volume_id)
        return self.image


@dataclass
class FakeComputes:
    text: str = "one\ntwo\nthree\n"
    asked: list[dict[str, Any]] = field(default_factory=list)

    def get_console_output(self, context: Any, **kwargs: Any) -> str:
        self.asked.append(kwargs)
        return self.text

    def get_host_uptime(self, context: Any, *, host: str, node: str, timeout: float) -> str:
        return f" 10:00:00 up 1 day, {host} {node}"


@dataclass
class FakeSchedulers:
    """Answers with the real filters for the hosts in ``states``."""

    states: list[HostState] = field(default_factory=list)
    asked: list[tuple[str, RequestSpec, list[str]]] = field(default_factory=list)

    def examine_hosts(
        self, context: Any, *, spec: RequestSpec, hosts: list[str], timeout: float
    ) -> Examination:
        self.asked.append(("examine_hosts", spec, hosts))
        examiner = inquiry.Examiner(fakes.pipeline(), self.states, spec)
        answer = examiner.examination(hosts, 0.5)
        answer.hosts = [examiner.verdict(at) for at in inquiry.named(self.states, hosts)[0]]
        found: Examination = base.decode(base.pack(answer))
        return found

    def count_capacity(
        self, context: Any, *, spec: RequestSpec, hosts: list[str], timeout: float
    ) -> CapacityReport:
        self.asked.append(("count_capacity", spec, hosts))
        pipeline = fakes.pipeline()
        demand = pipeline.demand(spec)
        indexes, unknown = inquiry.named(self.states, hosts)
        report = inquiry.report(demand.need, unknown, 0.5)
        report.hosts = [inquiry.capacity_of(pipeline, self.states[at], demand) for at in indexes]
        found: CapacityReport = base.decode(base.pack(report))
        return found


@dataclass
class FakeWakeup:
    reservations: list[str] = field(default_factory=list)
    destroys: list[tuple[str, Any]] = field(default_factory=list)

    def run_reservation(self, context: Any, reservation_id: str) -> None:
        self.reservations.append(reservation_id)

    def destroy(self, context: Any, host: str, request: Any) -> None:
        self.destroys.append((host, request))


@dataclass
class Cloud:
    """The application and what stands around it."""

    conf: cfg.ConfigOpts
    database: engine.Database
    client: testing.TestClient
    images: FakeImages
    networks: FakeNetworks
    volumes: FakeVolumes
    computes: FakeComputes
    schedulers: FakeSchedulers
    wakeup: FakeWakeup
    policy: Policy

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        version: str | None = None,
        user: str = "admin:admin",
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
        **kwargs: Any,
    ) -> testing.Result:
        """Send one request below /v2.1 as *user* (USER:PROJECT) with this microversion."""
        sent = {"X-Auth-Token": user, **(headers or {})}
        if version is not None:
            sent["OpenStack-API-Version"] = f"compute {version}"
        if body is not None:
            kwargs["json"] = body
        if raw is not None:
            kwargs["body"] = raw
        path = path if path.startswith("/v2") else f"/v2.1{path}"
        return self.client.simulate_request(method, path, headers=sent, **kwargs)

    def get(self, path: str, **kwargs: Any) -> Any:
        """Return the body of a GET that works."""
        result = self.call("GET", path, **kwargs)
        assert result.status_code == 200, result.text
        return result.json

    def boot(self, user: str = "admin:admin", **server: Any) -> str:
        """Create a server without networks and return its id."""
        result = self.create(user=user, **server)
        assert result.status_code == 202, result.text
        return str(result.json["server"]["id"])

    def create(
        self, user: str = "admin:admin", version: str = "2.53", hints: Any = None, **server: Any
    ) -> testing.Result:
        """Send a create with defaults for what is not given."""
        asked = {"name": "web", "flavorRef": FLAVOR, "imageRef": IMAGE, **server}
        if "networks" not in asked and float(version[2:]) >= 37:
            asked["networks"] = "none"
        body: dict[str, Any] = {"server": asked}
        if hints is not None:
            body["os:scheduler_hints"] = hints
        return self.call("POST", "/servers", body, version=version, user=user)

    def change(self, server_id: str, **values: Any) -> None:
        """Set columns of a server's row."""
        t = schema.instances
        self.database.transaction(
            lambda conn: conn.execute(sa.update(t).where(t.c.uuid == server_id).values(**values))
        )

    def row(self, table: str, **where: Any) -> Any:
        """Return the first row of a table where the columns have these values."""
        t = schema.metadata.tables[table]
        conditions = [t.c[name] == value for name, value in where.items()]
        return self.database.read(
            lambda conn: conn.execute(sa.select(t).where(*conditions)).first()
        )

    def add_service(self, host: str, binary: str = "nova-compute", **values: Any) -> str:
        """Store a service that has just reported; return its uuid."""
        key = str(uuid.uuid4())
        row = {
            "uuid": key,
            "host": host,
            "binary": binary,
            "last_seen_up": time.time(),
            "created_at": time.time(),
            "updated_at": time.time(),
            **values,
        }
        self.database.transaction(lambda conn: conn.execute(sa.insert(schema.services), row))
        return key

    def add_node(self, host: str, **values: Any) -> str:
        """Store a compute service with one node of the same name; return the node's uuid."""
        self.add_service(host)
        key = str(uuid.uuid4())
        node = ComputeNode(
            host=host,
            hypervisor_hostname=host,
            uuid=key,
            **{"vcpus": 8, "memory_mb": 16384, "local_gb": 200, **values},
        )
        names = ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used")
        row = {name: getattr(node, name) for name in names}
        row.update(
            uuid=key,
            host=host,
            hypervisor_hostname=host,
            local_gb_used=node.local_gb_used,
            running_vms=node.running_vms,
            current_workload=node.current_workload,
            picture=base.encode(node),
            created_at=time.time(),
            updated_at=time.time(),
        )
        self.database.transaction(lambda conn: conn.execute(sa.insert(schema.compute_nodes), row))
        return key


def make_conf(tmp_path: Any, *args: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf_module.register_opts(conf)
    log.register_opts(conf)
    conf.register_opt(cfg.IntOpt("rpc_response_timeout", default=60))
    conf(["--config-dir", str(tmp_path), *args], project="novalite-test", default_config_files=[])
    conf.set_override("connection", f"sqlite:///{tmp_path}/test.db", group="database")
    conf.set_override("state_path", str(tmp_path))
    conf.set_override("auth_strategy", "noauth2", group="api")
    return conf
