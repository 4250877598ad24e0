# SPDX-License-Identifier: Apache-2.0
"""The rows of the speed table: each measures one thing on a cloud of its own."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from novalite.devcloud import client
from novalite.devcloud.broker import Broker
from tests.bench import load, meters
from tests.functional.api import IMAGE, NANO
from tests.functional.cloud import Cloud

# The defaults of the options that tests/functional/fast.conf shortens.
DEFAULT_TIMES: dict[str, dict[str, object]] = {
    "DEFAULT": {
        "service_down_time": 60,
        "report_interval": 10,
        "update_resources_interval": 0,
        "max_concurrent_builds": 10,
    },
    "conductor": {
        "task_lease": 15,
        "task_renew_interval": 5,
        "recovery_interval": 2,
        "pending_grace": 3,
        "begin_timeout": 10,
    },
    "scheduler": {"host_refresh_interval": 0.05},
    "fake_libvirt": {"vcpus": 1000, "memory_mb": 800000, "local_gb": 600000},
}
SERVER = {"flavorRef": NANO, "imageRef": IMAGE, "networks": "none"}


@dataclass
class Row:
    """One line of the table: what was measured, the figures, and the goals beside Nova's."""

    name: str
    nova: str
    must: str
    aim: str
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The figures in short."""
        return ", ".join(f"{key} {value}" for key, value in self.figures.items())


@contextmanager
def cloud(broker: Broker, *, nodes: int = 1, **kwargs: Any) -> Iterator[Cloud]:
    """Start four processes; the one compute plays so many hosts."""
    names = ",".join(f"host{number:02}" for number in range(nodes))
    config = {key: dict(value) for key, value in DEFAULT_TIMES.items()}
    if nodes > 1:
        config["fake_libvirt"]["nodes"] = names
    with tempfile.TemporaryDirectory(prefix="novalite-bench-") as directory:
        with Cloud(Path(directory) / "cloud", broker=broker, config=config, **kwargs) as made:
            yield made


def client_of(made: Cloud) -> load.Client:
    """Return a client with the administrator's token."""
    return load.Client(made.endpoints.compute_url, made.api.headers["X-Auth-Token"])


def measured(made: Cloud, count: int, callers: int, **kwargs: Any) -> tuple[load.Boots, dict]:
    """Boot after a warm-up; return the boots and the CPU ms a boot of every kind of process."""
    caller = client_of(made)
    server = kwargs.pop("server", SERVER)
    warm = load.boot(caller, server, 5, 5, wait=False, poll=0.05)
    load.delete_all(caller, warm.uuids, 5)
    pids = meters.processes(made)
    before = meters.cpu(pids)
    boots = load.boot(caller, server, count, callers, **kwargs)
    spent = meters.spent(before, meters.cpu(pids))
    each = {kind: round(value / count, 2) for kind, value in spent.items()}
    each["all"] = round(sum(spent.values()) / count, 2)
    if boots.active != count:
        raise RuntimeError(f"{boots.active} of {count} servers became ACTIVE")
    return boots, each


def rates(broker: Broker, count: int) -> list[Row]:
    """Boots a second and CPU a boot on twenty hosts, and on one host that fills up."""
    spread = Row("boots/s, C=10, 20 hosts", "2.1", "40", "100")
    many = Row("boots/s, C=30, 20 hosts", "2.0", "40", "100")
    cost = Row("CPU ms per boot, everything", "840", "40", "12")
    post = Row("POST /servers p50 ms, C=10", "1098", "50", "25")
    with cloud(broker, nodes=20) as made:
        boots, each = measured(made, count, 10, wait=False, poll=0.1)
        spread.figures["boots/s"] = round(boots.rate, 1)
        post.figures["ms"] = load.ms(boots.post)
        cost.figures.update(each)
        hosts = [
            row["n"]
            for row in made.rows(
                "select count(*) as n from instances where not deleted group by node"
            )
        ]
        spread.figures["servers per host"] = f"{min(hosts)} to {max(hosts)}"
        load.delete_all(client_of(made), boots.uuids, 10)
        boots, _each = measured(made, count, 30, wait=False, poll=0.1)
        many.figures["boots/s"] = round(boots.rate, 1)
    filling = Row("the same, one host fills up, C=10", "0.55", "within 10 %", "flat")
    with cloud(broker) as made:
        boots, each = measured(made, count, 10, wait=False, poll=0.1)
        filling.figures.update({"boots/s": round(boots.rate, 1), "CPU ms": each["all"]})
    return [spread, many, filling, cost, post]


def singly(broker: Broker) -> list[Row]:
    """One boot at a time: times, messages, statements."""
    post = Row("POST /servers p50 ms, one at a time", "61", "12", "5")
    active = Row("time to ACTIVE p50 ms, one at a time", "650", "60", "35")
    traffic = Row(
        "AMQP messages and kB, SQL statements per boot, one at a time",
        "28, 75; 345",
        "10, 20; 40",
        "4; 25",
    )
    loaded = Row("the same, C=10", "", "", "")
    with cloud(broker, nodes=20) as made:
        boots, _each = measured(made, 40, 1, wait=True, poll=0.005)
        post.figures["ms"] = load.ms(boots.post)
        active.figures["ms"] = load.ms(boots.to_active)
        for row, callers, wait in ((traffic, 1, True), (loaded, 10, False)):
            row.figures.update(_traffic(made, callers, wait))
    return [post, active, traffic, loaded]


def _traffic(made: Cloud, callers: int, wait: bool) -> dict[str, Any]:
    """Count over 40 boots; polls cost statements too, so few are made."""
    caller = client_of(made)
    before = meters.counters(made)
    with meters.Tap(made) as tap:
        load.boot(caller, SERVER, 40, callers, wait=wait, poll=0.25)
    after = meters.counters(made)
    return {
        "messages": round(tap.messages / 40, 1),
        "kB": round(tap.bytes / 40 / 1000, 1),
        "SQL": round((after["sql_statements"] - before["sql_statements"]) / 40, 1),
    }


def reads(broker: Broker) -> list[Row]:
    """Lists and shows with 200 and 1000 servers, memory before."""
    memory = Row("RSS MB of the four services, idle", "1421", "360", "280")
    listing = Row(
        "GET /servers/detail p50 ms, 200 / 1000 servers", "526 / 3170", "50 / 250", "20 / 100"
    )
    show = Row("GET /servers/{id} p50 ms", "24", "4", "2")
    with cloud(broker, nodes=20) as made:
        pids = meters.processes(made)
        sizes = {name: round(meters.rss_mb(pid)) for name, pid in pids.items()}
        four = {
            name: size
            for name, size in sizes.items()
            if name.rstrip("0123456789") in meters.SERVICES
        }
        memory.figures.update({"all": sum(four.values()), **four, "broker": sizes["broker"]})
        caller = client_of(made)
        boots = load.boot(caller, SERVER, 200, 10, wait=False, poll=0.1)
        show.figures["ms"] = load.ms(load.times(caller, f"/servers/{boots.uuids[0]}", 200))
        for total in (200, 1000):
            if total > 200:
                load.boot(caller, SERVER, 800, 10, wait=False, poll=0.2)
            seconds = load.times(caller, "/servers/detail?limit=1000", 10)
            listing.figures[str(total)] = load.ms(seconds)
    return [memory, listing, show]


def starting(broker: Broker) -> list[Row]:
    """All four services from nothing to the first ACTIVE server; broker and tables are there."""
    row = Row("s from start of all services to first ACTIVE", "10.3", "4", "2.5")
    with cloud(broker) as made:
        made.stop(*made.names)
        began = time.perf_counter()
        made.start()
        row.figures["s to ready"] = round(time.perf_counter() - began, 2)
        load.boot(client_of(made), SERVER, 1, 1, wait=True, poll=0.01)
        row.figures["s to ACTIVE"] = round(time.perf_counter() - began, 2)
    return [row]


def neighbours(broker: Broker, count: int) -> list[Row]:
    """What tokens and one network interface a server cost in addition."""
    row = Row("CPU ms per boot with keystone tokens and a network", "", "", "")
    with cloud(broker, nodes=20, auth="keystone") as made:
        headers = {"X-Auth-Token": made.api.headers["X-Auth-Token"]}
        images = client.Client(made.endpoints.image_url, headers).get("/v2/images")["images"]
        networks = client.Client(made.endpoints.network_url, headers).get("/v2.0/networks")
        private = next(found for found in networks["networks"] if found["name"] == "private")
        server = {**SERVER, "imageRef": images[0]["id"], "networks": [{"uuid": private["id"]}]}
        boots, each = measured(made, count, 10, wait=False, poll=0.1, server=server)
        row.figures.update({"boots/s": round(boots.rate, 1), **each})
    return [row]
