# SPDX-License-Identifier: Apache-2.0
"""Several servers by one request: min_count and max_count."""

from collections.abc import Callable
from typing import Any

import pytest

from novalite.devcloud.client import Answer
from tests.functional import faults
from tests.functional.cloud import Cloud

Make = Callable[..., Cloud]

# An address on a network that nobody has to look for: the counts are wrong before that.
FIXED = [{"uuid": "22222222-2222-4222-8222-222222222222", "fixed_ip": "10.0.0.5"}]


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    return make_class_cloud()


def made(cloud: Cloud, answer: Answer) -> dict[str, dict[str, Any]]:
    """Return the servers of a request by name, after all have come to rest."""
    assert answer.status == 202, answer
    reservation = answer.body["reservation_id"]
    query = f"?reservation_id={reservation}"
    cloud.api.wait_settled([server["id"] for server in cloud.api.servers(query)])
    return {server["name"]: server for server in cloud.api.servers(query)}


def counts(**fields: Any) -> dict[str, Any]:
    """Return the fields of a request for several servers."""
    return {"return_reservation_id": True, **fields}


class TestMultiCreate:
    """V28 without its line about quotas."""

    @pytest.mark.parametrize(
        ("fields", "names"),
        [
            ({"min_count": "2", "max_count": 2}, ["web-1", "web-2"]),
            ({"min_count": 2, "max_count": "2"}, ["web-1", "web-2"]),
            ({"min_count": 2}, ["web-1", "web-2"]),
            ({"min_count": 1, "max_count": 3}, ["web-1", "web-2", "web-3"]),
            ({"max_count": 3}, ["web-1", "web-2", "web-3"]),
            ({"min_count": 1}, ["web"]),
            ({}, ["web"]),
        ],
    )
    def test_counts_and_names(self, cloud: Cloud, fields: dict[str, Any], names: list[str]) -> None:
        servers = made(cloud, cloud.api.create("web", **counts(**fields)))
        assert sorted(servers) == names
        assert {server["status"] for server in servers.values()} == {"ACTIVE"}
        by_index = {
            server["OS-EXT-SRV-ATTR:launch_index"]: name for name, server in servers.items()
        }
        assert [by_index[index] for index in range(len(names))] == names
        hostnames = sorted(server["OS-EXT-SRV-ATTR:hostname"] for server in servers.values())
        assert hostnames == names
        cloud.assert_books()
        faults.remove_all(cloud)

    @pytest.mark.parametrize("name", ["min_count", "max_count"])
    @pytest.mark.parametrize("value", ["", 0, "0", -1, 1.5, True, None, "two", [2], 10**30])
    def test_no_count(self, cloud: Cloud, name: str, value: Any) -> None:
        answer = cloud.api.create("web", **{name: value})
        assert answer.status == 400, answer
        assert name in answer.body["badRequest"]["message"]
        assert len(answer.body["badRequest"]["message"]) < 1000
        assert cloud.api.servers() == []

    @pytest.mark.parametrize("least", [3, "3"])
    def test_min_above_max(self, cloud: Cloud, least: Any) -> None:
        answer = cloud.api.create("web", min_count=least, max_count=2)
        assert answer.status == 400
        assert "min_count must be <= max_count" in answer.body["badRequest"]["message"]
        assert cloud.api.servers() == []

    @pytest.mark.parametrize("fields", [{"min_count": 3}, {"max_count": 2}])
    def test_one_address_for_several(self, cloud: Cloud, fields: dict[str, Any]) -> None:
        answer = cloud.api.create("web", networks=FIXED, **fields)
        assert answer.status == 400
        assert "if an fixed_ip is specified" in answer.body["badRequest"]["message"]
        assert cloud.api.servers() == []

    def test_one_answer_for_several(self, cloud: Cloud) -> None:
        body = cloud.api.create("web", min_count=2).body
        assert set(body) == {"server"}
        first = cloud.api.wait(body["server"]["id"])
        assert first["name"] == "web-1"
        faults.remove_all(cloud)

    def test_room_for_two_of_three(self, cloud: Cloud) -> None:
        # One request is all or nothing: none of its servers may stay on a host.
        flavor = cloud.api.flavor("third", ram=10000)
        servers = made(cloud, cloud.api.create("web", flavor=flavor, **counts(max_count=3)))
        assert [server["status"] for server in servers.values()] == ["ERROR"] * 3
        for server in servers.values():
            assert server["fault"]["message"].startswith("No valid host was found.")
        cloud.assert_books()
        two = made(cloud, cloud.api.create("web", flavor=flavor, **counts(max_count=2)))
        assert [server["status"] for server in two.values()] == ["ACTIVE"] * 2
        faults.remove_all(cloud)
