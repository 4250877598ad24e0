# SPDX-License-Identifier: Apache-2.0
"""``novalite-manage audit`` on a running cloud: it proves, finds, repairs, says what is left."""

import contextlib
import json
import random
import sqlite3
import subprocess
import time
from concurrent import futures
from typing import Any

import pytest
import sqlalchemy as sa

from novalite.devcloud.errors import ClientError
from tests.functional import faults
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually


def audit(cloud: Cloud, *words: str) -> tuple[int, dict[str, Any]]:
    """Run the audit and return its exit code and what it found."""
    command = [*cloud.services.command("novalite-manage"), "audit", "-f", "json", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def kinds(found: dict[str, Any], where: str = "differences") -> list[str]:
    """Return the kinds of the differences."""
    return sorted(each["kind"] for each in found[where])


def assert_proved(cloud: Cloud) -> dict[str, Any]:
    """Check that every book was looked at and that all agree."""
    code, found = audit(cloud)
    assert code == 0, found
    assert found["differences"] == [] and set(found["hosts"].values()) == {"checked"}
    return found


def plant(cloud: Cloud, statement: str, **values: Any) -> None:
    """Change the database behind everybody's back."""
    engine = sa.create_engine(cloud.database_url)
    with engine.begin() as connection:
        assert connection.execute(sa.text(statement), values).rowcount, statement
    engine.dispose()


def plant_guest(cloud: Cloud, host: str, uuid: str, like: str) -> None:
    """Let a host have a guest of *uuid*, made as that of *like* was."""
    connection = sqlite3.connect(cloud.store(host), timeout=5.0, isolation_level=None)
    connection.execute(
        "insert into domains (uuid, node, name, state, metadata, xml) "
        "select ?, node, name || '-' || ?, state, metadata, xml from domains where uuid = ?",
        (uuid, uuid, like),
    )
    connection.close()


def remove_guest(cloud: Cloud, host: str, uuid: str) -> None:
    """Take a guest away from a host."""
    connection = sqlite3.connect(cloud.store(host), timeout=5.0, isolation_level=None)
    assert connection.execute("delete from domains where uuid = ?", (uuid,)).rowcount == 1
    connection.close()


def measure_every(cloud: Cloud, seconds: int) -> None:
    """Let computes write their records anew so often; -1: never by themselves."""
    cloud.configure({"DEFAULT": {"update_resources_interval": seconds}})
    cloud.reload(*faults.COMPUTES)


def test_every_planted_difference_is_found_and_repaired(standing: Cloud) -> None:
    # A record that was planted wrong must still be wrong when it is looked at.
    measure_every(standing, -1)
    try:
        plant_and_repair(standing)
    finally:
        measure_every(standing, 2)


def plant_and_repair(cloud: Cloud) -> None:
    api = cloud.api
    one, two, three, gone = api.boot_many(4)
    api.wait_settled([one, two, three, gone])
    api.delete(gone)
    api.wait_gone(gone)
    found = assert_proved(cloud)
    assert (found["servers"], found["allocations"], found["nodes"]) == (3, 3, 2)

    host = api.show(one)["OS-EXT-SRV-ATTR:host"]
    plant(cloud, "delete from allocations where consumer = :uuid", uuid=one)
    plant(cloud, "update allocations set used = used + 1 where consumer = :uuid", uuid=two)
    plant(cloud, "update instances set memory_mb = 7 where uuid = :uuid", uuid=two)
    plant(
        cloud,
        "update compute_nodes set memory_mb_used = memory_mb_used + 5 where host = :host",
        host=host,
    )
    plant(
        cloud,
        "insert into allocations (consumer, node, resource_class, used, created_at) "
        "values (:uuid, :node, 'VCPU', 3, 1.0)",
        uuid=gone,
        node=host,
    )
    plant_guest(cloud, host, gone, like=one)
    stranger = "00000000-0000-4000-8000-000000000000"
    plant_guest(cloud, host, stranger, like=one)

    code, found = audit(cloud, "--repair")
    assert (code, kinds(found)) == (3, ["guest_unknown"])
    assert kinds(found, "repaired") == [
        "allocation_missing",
        "allocation_orphan",
        "allocation_wrong",
        "guest_orphan",
        "record_wrong",
        "size_wrong",
    ]
    assert gone not in faults.guests(cloud, host) and one in faults.guests(cloud, host)
    # An administrator has decided.
    remove_guest(cloud, host, stranger)
    cloud.assert_books()


def test_a_host_that_cannot_be_asked(standing: Cloud) -> None:
    standing.kill("compute2")
    query = "/os-services?binary=nova-compute"

    def down() -> bool:
        states = {each["host"]: each["state"] for each in standing.api.get(query)["services"]}
        return states == {"compute1": "up", "compute2": "down"}

    eventually(down)
    command = [*standing.services.command("novalite-manage"), "audit"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.splitlines() == [
        "0 servers, 0 allocations, 2 nodes; 1 of 2 hosts asked; 0 servers in work and left out",
        "not asked: compute2: it is down",
        "0 differences are left",
    ]


def storm(cloud: Cloud, dice: random.Random, boots: int, kills: int) -> None:
    """Boot and delete while conductors and computes are killed and started again."""
    api, wanted = cloud.api, list[str]()

    def traffic() -> None:
        asked = 0
        while asked < boots:
            with contextlib.suppress(ClientError):
                wanted.append(api.boot())
                asked += 1
                if dice.random() < 0.5:
                    api.delete(wanted.pop(dice.randrange(len(wanted))))

    with futures.ThreadPoolExecutor(1) as pool:
        busy = pool.submit(traffic)
        for _ in range(kills):
            victim = dice.choice((*faults.COMPUTES, *faults.CONDUCTORS))
            time.sleep(dice.uniform(0.0, 0.5))
            cloud.kill(victim)
            cloud.start(victim)
        busy.result()

    def settled() -> bool:
        states = {server["id"]: server["status"] for server in api.servers()}
        assert set(states) == set(wanted) and set(states.values()) <= {"ACTIVE"}, states
        return True

    eventually(settled, faults.PROMISE + faults.DOWN_TIME + boots / 10, "all servers are settled")
    eventually(lambda: not cloud.books().problems, faults.PROMISE, "nothing is in work")


def test_after_kills_all_books_agree(standing: Cloud) -> None:
    faults.play(standing, *faults.COMPUTES, spawn_delay=0.2)
    storm(standing, random.Random(1), boots=12, kills=2)
    found = assert_proved(standing)
    assert found["servers"] == found["allocations"] and found["in_work"] == 0


@pytest.mark.drill
def test_after_two_hundred_boots_and_many_kills_all_books_agree(
    standing: Cloud, rounds: range, table: faults.Table
) -> None:
    faults.play(standing, *faults.COMPUTES, spawn_delay=0.2)
    for number in rounds:
        with faults.stopwatch() as taken:
            storm(standing, random.Random(f"audit {number}"), boots=200, kills=20)
            found = assert_proved(standing)
        end = f"{found['servers']} servers, {len(found['differences'])} differences"
        table.add(f"200 boots and deletes, 20 times kill -9 ({number})", end, taken[0])
        faults.remove_all(standing)
        assert_proved(standing)
