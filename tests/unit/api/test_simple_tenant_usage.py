# SPDX-License-Identifier: Apache-2.0
"""Usage of projects: spans of time, sums, pages, and who may see them."""

import datetime
import time
from typing import Any

import pytest

from tests.unit.api.cloud import Cloud

DAY = "start=2026-01-01T00:00:00&end=2026-01-02T00:00:00"
PATH = "/os-simple-tenant-usage"
SUMS = {
    *("tenant_id", "start", "stop", "total_hours", "total_local_gb_usage"),
    *("total_memory_mb_usage", "total_vcpus_usage"),
}
SERVER = {
    *("instance_id", "tenant_id", "name", "flavor", "memory_mb", "local_gb", "vcpus", "hours"),
    *("started_at", "ended_at", "state", "uptime"),
}


def moment(text: str) -> float:
    return datetime.datetime.fromisoformat(f"{text}+00:00").timestamp()


def ran(cloud: Cloud, launched: str, terminated: str | None = None, user: str = "joe:p") -> str:
    """Make a server that was launched and terminated at these times."""
    server = cloud.boot(user=user)
    values: dict[str, Any] = {"vm_state": "active", "launched_at": moment(launched)}
    if terminated:
        values |= {"vm_state": "deleted", "deleted": True, "terminated_at": moment(terminated)}
    cloud.change(server, **values)
    return server


def usage(cloud: Cloud, query: str = DAY, user: str = "joe:p", version: str = "2.1") -> Any:
    return cloud.get(f"{PATH}/p?{query}", user=user, version=version)["tenant_usage"]


@pytest.mark.parametrize(
    ("launched", "terminated", "hours"),
    [
        ("2025-12-31T12:00:00", None, 24.0),
        ("2025-12-31T12:00:00", "2026-01-03T12:00:00", 24.0),
        ("2026-01-01T12:00:00", None, 12.0),
        ("2026-01-01T06:00:00", "2026-01-01T07:30:00", 1.5),
        ("2025-12-31T06:00:00", "2026-01-01T01:00:00", 1.0),
    ],
)
def test_hours(cloud: Cloud, launched: str, terminated: str | None, hours: float) -> None:
    server = ran(cloud, launched, terminated)
    found = usage(cloud)
    assert set(found) == SUMS | {"server_usages"}
    assert (found["start"], found["stop"]) == (
        "2026-01-01T00:00:00.000000",
        "2026-01-02T00:00:00.000000",
    )
    assert found["total_hours"] == pytest.approx(hours)
    assert found["total_memory_mb_usage"] == pytest.approx(512 * hours)
    assert found["total_local_gb_usage"] == pytest.approx(hours)
    assert found["total_vcpus_usage"] == pytest.approx(hours)
    (one,) = found["server_usages"]
    assert set(one) == SERVER
    assert (one["instance_id"], one["flavor"], one["local_gb"]) == (server, "m1.tiny", 1)
    assert one["hours"] == pytest.approx(hours)
    assert one["started_at"] == f"{launched}.000000"
    assert one["ended_at"] == (f"{terminated}.000000" if terminated else None)
    assert one["state"] == ("terminated" if terminated else "active")
    end = moment(terminated) if terminated else time.time()
    assert one["uptime"] == pytest.approx(end - moment(launched), abs=5)


@pytest.mark.parametrize(
    ("launched", "terminated"),
    [
        ("2025-12-01T00:00:00", "2025-12-31T00:00:00"),
        ("2025-12-01T00:00:00", "2026-01-01T00:00:00"),
        ("2026-01-02T00:00:00", None),
    ],
)
def test_outside_of_the_span(cloud: Cloud, launched: str, terminated: str | None) -> None:
    ran(cloud, launched, terminated)
    assert usage(cloud) == {}
    assert cloud.get(f"{PATH}?{DAY}") == {"tenant_usages": []}


def test_what_never_ran_used_nothing(cloud: Cloud) -> None:
    cloud.boot(user="joe:p")
    assert usage(cloud, "start=2026-01-01T00:00:00") == {}
    assert usage(cloud, "") == {}


def test_the_end_is_never_later_than_now(cloud: Cloud) -> None:
    server = ran(cloud, "2026-01-01T00:00:00")
    cloud.change(server, launched_at=time.time() - 7200)
    found = usage(cloud, "start=2026-01-01T00:00:00&end=2999-01-01T00:00:00")
    assert found["total_hours"] == pytest.approx(2.0, abs=0.01)
    assert moment(found["stop"]) == pytest.approx(time.time(), abs=5)


def test_sums_of_projects(cloud: Cloud) -> None:
    ran(cloud, "2026-01-01T12:00:00")
    ran(cloud, "2026-01-01T18:00:00")
    ran(cloud, "2026-01-01T23:00:00", user="ann:q")
    found = cloud.get(f"{PATH}?{DAY}")["tenant_usages"]
    assert [(one["tenant_id"], one["total_hours"]) for one in found] == [("p", 18.0), ("q", 1.0)]
    assert all(set(one) == SUMS for one in found)
    for detailed, keys in (("1", SUMS | {"server_usages"}), ("true", SUMS)):
        found = cloud.get(f"{PATH}?{DAY}&detailed={detailed}")["tenant_usages"]
        assert all(set(one) == keys for one in found)


def test_before_2_40_all_of_it_is_summed_up(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("novalite.api.resources.simple_tenant_usage._CHUNK", 2)
    cloud.conf.set_override("max_limit", 1, group="api")
    for _ in range(5):
        ran(cloud, "2026-01-01T23:00:00")
    for path, key in ((PATH, "tenant_usages"), (f"{PATH}/p", "tenant_usage")):
        body = cloud.get(f"{path}?{DAY}&limit=1", version="2.39")
        assert set(body) == {key}
        sums = body[key][0] if key == "tenant_usages" else body[key]
        assert sums["total_hours"] == pytest.approx(5.0)


def test_pages(cloud: Cloud) -> None:
    servers = sorted(ran(cloud, "2026-01-01T23:00:00") for _ in range(3))
    other = ran(cloud, "2026-01-01T22:00:00", user="ann:q")
    body = cloud.get(f"{PATH}/p?{DAY}&limit=2", version="2.40")
    found = [one["instance_id"] for one in body["tenant_usage"]["server_usages"]]
    assert found == servers[:2]
    assert body["tenant_usage"]["total_hours"] == 2.0
    (link,) = body["tenant_usage_links"]
    assert f"/v2.1{PATH}/p?" in link["href"]
    assert link["href"].endswith(f"limit=2&marker={servers[1]}")
    body = cloud.get(f"{PATH}/p?{DAY}&limit=2&marker={servers[1]}", version="2.40")
    assert body["tenant_usage"]["total_hours"] == 1.0
    assert "tenant_usage_links" not in body
    body = cloud.get(f"{PATH}?{DAY}&limit=2&marker={servers[1]}&detailed=1", version="2.40")
    found = [one["server_usages"][0]["instance_id"] for one in body["tenant_usages"]]
    assert found == [servers[2], other]
    body = cloud.get(f"{PATH}?{DAY}&limit=1", version="2.40")
    assert body["tenant_usages_links"][0]["href"].endswith(f"marker={servers[0]}")
    assert cloud.get(f"{PATH}?{DAY}&limit=0", version="2.40") == {"tenant_usages": []}


WRONG_PAGES = ["limit=x", "limit=-1", "marker=nope"]


def test_wrong_pages(cloud: Cloud) -> None:
    for query in WRONG_PAGES:
        for path in (PATH, f"{PATH}/p"):
            assert cloud.call("GET", f"{path}?{query}", version="2.40").status_code == 400, query


def test_a_marker_of_another_project(cloud: Cloud) -> None:
    other = ran(cloud, "2026-01-01T22:00:00", user="ann:q")
    path = f"{PATH}/p?{DAY}&marker={other}"
    assert cloud.call("GET", path, user="joe:p", version="2.40").status_code == 400


WRONG_TIMES = [
    "start=2026-01-02T00:00:00&end=2026-01-01T00:00:00",
    "start=2026-01-01T00:00:00&end=2026-01-01T00:00:00",
    "start=2999-01-01T00:00:00",
    "end=2026-01-01T00:00:00",
    "start=yesterday",
    "start=2026-01-01T00:00:00Z",
    "end=2026-01-01T00:00:00%2B00:00",
    "start=2026-13-01T00:00:00",
]


def test_wrong_times(cloud: Cloud) -> None:
    for query in WRONG_TIMES:
        for path in (PATH, f"{PATH}/p"):
            result = cloud.call("GET", f"{path}?{query}")
            assert result.status_code == 400, (query, result.text)


FORMS = ["2026-01-01T00:00:00", "2026-01-01T00:00:00.000001", "2026-01-01 00:00:00.5"]


def test_forms_of_times(cloud: Cloud) -> None:
    ran(cloud, "2025-01-01T00:00:00")
    for text in FORMS:
        start = usage(cloud, f"start={text.replace(' ', '%20')}")["start"]
        assert moment(start) == moment(text)


def test_who_may_see_it(cloud: Cloud) -> None:
    ran(cloud, "2026-01-01T12:00:00")
    assert usage(cloud, user="ann:p")["total_hours"] == 12.0
    assert usage(cloud, user="admin:admin")["total_hours"] == 12.0
    for path, user in ((f"{PATH}/p", "ann:q"), (PATH, "joe:p")):
        result = cloud.call("GET", f"{path}?{DAY}", user=user)
        assert result.status_code == 403
        assert "os_compute_api:os-simple-tenant-usage" in result.json["forbidden"]["message"]


def test_unknown_parameters(cloud: Cloud) -> None:
    for path in (PATH, f"{PATH}/p"):
        for version, status in (("2.74", 200), ("2.75", 400)):
            result = cloud.call("GET", f"{path}?{DAY}&more=1", version=version)
            assert result.status_code == status
        known = f"{path}?{DAY}&limit=5"
        assert cloud.call("GET", known, version="2.75").status_code == 200


def test_there_is_no_empty_project(cloud: Cloud) -> None:
    assert cloud.call("GET", f"{PATH}/").status_code == 404
