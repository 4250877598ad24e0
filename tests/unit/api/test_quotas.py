# SPDX-License-Identifier: Apache-2.0
"""Quotas when servers are created and deleted, and metadata of servers against their limit."""

from typing import Any

import pytest
import sqlalchemy as sa

from novalite import counters
from novalite.db import schema
from tests.unit.api.cloud import Cloud

MEMBER = "bob:p1"


def set_quota(cloud: Cloud, project: str = "p1", query: str = "", **limits: Any) -> None:
    """Give a project, or one of its users, these limits."""
    result = cloud.call("PUT", f"/os-quota-sets/{project}{query}", {"quota_set": limits})
    assert result.status_code == 200, result.text


def servers(cloud: Cloud, user: str = MEMBER) -> list[str]:
    """Return the names of the user's servers."""
    return sorted(server["name"] for server in cloud.get("/servers", user=user)["servers"])


def assert_over(result: Any, message: str) -> None:
    """The answer is Nova's to a user who is over quota."""
    assert result.status_code == 403, result.text
    assert result.json == {"forbidden": {"code": 403, "message": message}}
    assert "Retry-After" not in result.headers


def test_eleventh_server(cloud: Cloud) -> None:
    cloud.boot(user=MEMBER, min_count=10)
    assert_over(
        cloud.create(user=MEMBER),
        "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances",
    )
    assert cloud.create(user="bob:p2").status_code == 202


def test_cores(cloud: Cloud) -> None:
    """V29."""
    flavor = {"name": "c", "id": "c", "ram": 64, "disk": 1}
    for vcpus in (18, 4):
        body = {"flavor": {**flavor, "vcpus": vcpus, "name": f"c{vcpus}", "id": f"c{vcpus}"}}
        assert cloud.call("POST", "/flavors", body).status_code == 200
    cloud.boot(user=MEMBER, flavorRef="c18")
    assert_over(
        cloud.create(user=MEMBER, flavorRef="c4"),
        "Quota exceeded for cores: Requested 4, but already used 18 of 20 cores",
    )


def test_unlimited_project_with_a_user_who_may_have_one(cloud: Cloud) -> None:
    """V29."""
    set_quota(cloud, instances=-1)
    set_quota(cloud, query="?user_id=bob", instances=1)
    cloud.boot(user=MEMBER)
    assert_over(
        cloud.create(user=MEMBER),
        "Quota exceeded for instances: Requested 1, but already used 1 of 1 instances",
    )
    cloud.boot(user="carol:p1")


@pytest.mark.parametrize(
    ("least", "most", "names"),
    [
        (1, 3, ["web-1", "web-2"]),
        (2, 2, ["web-1", "web-2"]),
        (1, 1, ["web"]),
        (3, 3, None),
        (3, 5, None),
    ],
)
def test_as_many_as_fit(cloud: Cloud, least: int, most: int, names: list[str] | None) -> None:
    """V28."""
    set_quota(cloud, instances=2)
    result = cloud.create(user=MEMBER, min_count=least, max_count=most)
    assert result.status_code == (202 if names else 403), result.text
    assert servers(cloud) == (names or [])
    rows = cloud.database.read(
        lambda conn: conn.scalars(sa.select(schema.instance_actions.c.instance_uuid)).all()
    )
    assert len(rows) == len(names or [])


def test_one_of_three_keeps_its_name(cloud: Cloud) -> None:
    set_quota(cloud, instances=1)
    assert cloud.create(user=MEMBER, max_count=3).status_code == 202
    assert servers(cloud) == ["web"]
    [row] = cloud.database.read(lambda conn: conn.execute(sa.select(schema.instances)).all())
    assert (row.hostname, row.launch_index) == ("web", 0)


def test_the_id_in_the_answer_is_that_of_the_server(cloud: Cloud) -> None:
    set_quota(cloud, instances=1)
    uuid = cloud.boot(user=MEMBER, max_count=3)
    assert cloud.get(f"/servers/{uuid}", user=MEMBER)["server"]["name"] == "web"


def test_a_delete_gives_back_once(cloud: Cloud) -> None:
    set_quota(cloud, instances=2)
    first = cloud.boot(user=MEMBER)
    cloud.boot(user=MEMBER)
    assert cloud.call("DELETE", f"/servers/{first}", user=MEMBER).status_code == 204
    assert cloud.call("DELETE", f"/servers/{first}", user=MEMBER).status_code == 404
    cloud.boot(user=MEMBER)
    assert cloud.create(user=MEMBER).status_code == 403


def test_a_server_in_error_counts(cloud: Cloud) -> None:
    set_quota(cloud, instances=1)
    cloud.change(cloud.boot(user=MEMBER), vm_state="error")
    assert cloud.create(user=MEMBER).status_code == 403


def test_what_is_refused_leaves_nothing_and_wakes_nobody(cloud: Cloud) -> None:
    set_quota(cloud, ram=100)
    assert cloud.create(user=MEMBER).status_code == 403
    for table in (schema.instances, schema.request_specs, schema.instance_actions):
        count = sa.select(sa.func.count()).select_from(table)
        assert cloud.database.read(lambda conn, count=count: conn.scalar(count)) == 0
    assert cloud.wakeup.reservations == []


def test_options_are_read_at_every_request(cloud: Cloud) -> None:
    cloud.boot(user=MEMBER)
    cloud.conf.set_override("instances", 1, group="quota")
    assert cloud.create(user=MEMBER).status_code == 403
    cloud.conf.set_override("instances", 2, group="quota")
    cloud.boot(user=MEMBER)


def _statements(cloud: Cloud) -> int:
    before = counters.snapshot().get("sql_statements", 0)
    cloud.boot(user=MEMBER)
    return counters.snapshot()["sql_statements"] - before


def test_statements_of_a_boot(cloud: Cloud) -> None:
    for name in ("instances", "cores", "ram"):
        cloud.conf.set_override(name, -1, group="quota")
    unlimited = _statements(cloud)
    # The flavor, the action, the server, its request.
    assert unlimited == 4
    for name in ("instances", "cores", "ram"):
        cloud.conf.clear_override(name, group="quota")
    cloud.boot(user=MEMBER)
    assert _statements(cloud) == unlimited + 3


def test_metadata_of_a_new_server(cloud: Cloud) -> None:
    """V30."""
    cloud.boot(user=MEMBER, metadata={f"k{n}": "v" for n in range(128)})
    result = cloud.create(user=MEMBER, metadata={f"k{n}": "v" for n in range(129)})
    assert_over(result, "Maximum number of metadata items exceeds 128")
    set_quota(cloud, metadata_items=1)
    assert cloud.create(user=MEMBER, metadata={"a": "1", "b": "2"}).status_code == 403
    cloud.boot(user=MEMBER, metadata={"a": "1"})


def test_metadata_where_servers_are_unlimited(cloud: Cloud) -> None:
    for name in ("instances", "cores", "ram"):
        cloud.conf.set_override(name, -1, group="quota")
    result = cloud.create(user=MEMBER, metadata={f"k{n}": "v" for n in range(129)})
    assert_over(result, "Maximum number of metadata items exceeds 128")
