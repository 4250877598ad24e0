# SPDX-License-Identifier: Apache-2.0
"""Lists of servers, page by page, while servers come and go."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.functional import faults
from tests.functional.cloud import Cloud

Make = Callable[..., Cloud]


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    return make_class_cloud()


@pytest.fixture(scope="class")
def servers(cloud: Cloud) -> list[str]:
    """Ten servers, the newest first, as lists have them; seven were made in the same moment."""
    api = cloud.api
    made = [*api.boot_many(7), *(api.boot(f"single{number}") for number in range(3))]
    assert set(api.wait_settled(made).values()) == {"ACTIVE"}
    listed = [server["id"] for server in api.get("/servers")["servers"]]
    assert sorted(listed) == sorted(made)
    assert set(listed[:3]) == set(made[7:])
    return listed


def page(cloud: Cloud, query: str, detail: str = "") -> tuple[list[str], str | None]:
    """Return the ids of a page, and the query of the link to the next one."""
    body = cloud.api.get(f"/servers{detail}?{query}")
    links = {link["rel"]: link["href"] for link in body.get("servers_links", [])}
    assert set(links) <= {"next"}
    following = links["next"].partition("?")[2] if links else None
    return [server["id"] for server in body["servers"]], following


def pages(cloud: Cloud, query: str, detail: str = "") -> list[list[str]]:
    """Follow the links to the end."""
    found: list[list[str]] = []
    following: str | None = query
    while following is not None:
        ids, following = page(cloud, following, detail)
        found.append(ids)
        assert len(found) < 20, "the list does not end"
    return found


class TestPaging:
    """V25, and what has to hold around it."""

    @pytest.mark.parametrize("detail", ["", "/detail"])
    @pytest.mark.parametrize(
        ("limit", "sizes"), [(3, [3, 3, 3, 1]), (5, [5, 5]), (10, [10]), (11, [10])]
    )
    def test_the_next_link_is_there_if_more_rows_are(
        self, cloud: Cloud, servers: list[str], limit: int, sizes: list[int], detail: str
    ) -> None:
        found = pages(cloud, f"limit={limit}", detail)
        assert [len(ids) for ids in found] == sizes
        assert [one for ids in found for one in ids] == servers

    @pytest.mark.parametrize(
        "order",
        ["sort_key=display_name&sort_dir=asc", "sort_key=created_at&sort_dir=asc", "sort_key=host"],
    )
    def test_other_orders_have_no_gap(self, cloud: Cloud, servers: list[str], order: str) -> None:
        whole = page(cloud, order)[0]
        found = [one for ids in pages(cloud, f"limit=3&{order}") for one in ids]
        assert found == whole
        assert sorted(found) == sorted(servers)

    @pytest.mark.parametrize("limit", ["-1", "abc", "1.5", "%20", ""])
    def test_a_limit_that_is_none(self, cloud: Cloud, servers: list[str], limit: str) -> None:
        answer = cloud.api.request("GET", f"/servers?limit={limit}")
        assert answer.status == 400
        assert "limit" in answer.body["badRequest"]["message"]

    @pytest.mark.parametrize("limit", ["1001", str(10**30)])
    def test_a_limit_that_is_too_great(self, cloud: Cloud, servers: list[str], limit: str) -> None:
        assert page(cloud, f"limit={limit}") == (servers, None)

    def test_limit_0_is_an_empty_list(self, cloud: Cloud, servers: list[str]) -> None:
        assert page(cloud, "limit=0")[0] == []

    @pytest.mark.parametrize(
        "marker", ["2e11184b-452e-486b-92c6-5659fa10cecd", "abc", "%00", "é".encode().hex()]
    )
    def test_a_marker_that_is_none(self, cloud: Cloud, servers: list[str], marker: str) -> None:
        answer = cloud.api.request("GET", f"/servers?limit=3&marker={marker}")
        assert answer.status == 400
        assert set(answer.body) == {"badRequest"}

    def test_a_marker_of_another_project(self, cloud: Cloud, servers: list[str]) -> None:
        stranger = cloud.client("eve", "elsewhere")
        assert stranger.request("GET", f"/servers?marker={servers[0]}").status == 400

    def test_max_limit(self, cloud: Cloud, servers: list[str]) -> None:
        cloud.configure({"api": {"max_limit": 4}}, "api")
        cloud.reload("api")
        try:
            assert [len(ids) for ids in pages(cloud, "")] == [4, 4, 2]
            assert len(page(cloud, "limit=1000")[0]) == 4
        finally:
            cloud.configure({"api": {"max_limit": 1000}}, "api")
            cloud.reload("api")

    def test_a_deleted_marker(self, cloud: Cloud, servers: list[str]) -> None:
        first, following = page(cloud, "limit=3")
        assert first == servers[:3] and following is not None
        cloud.api.delete(first[-1])
        cloud.api.wait_gone(first[-1])
        second, _ = page(cloud, following)
        assert second == servers[3:6]
        assert page(cloud, "")[0] == [*servers[:2], *servers[3:]]

    def test_deleted_servers_end(self, cloud: Cloud, servers: list[str]) -> None:
        faults.remove_all(cloud)
        whole = page(cloud, "deleted=true")[0]
        assert sorted(whole) == sorted(servers)
        found = pages(cloud, "deleted=true&limit=2")
        assert [one for ids in found for one in ids] == whole
        for ids, before in zip(found[1:], found[:-1], strict=True):
            assert before[-1] not in ids
        statuses: list[dict[str, Any]] = cloud.api.servers("?deleted=true")
        assert {server["status"] for server in statuses} == {"DELETED"}
