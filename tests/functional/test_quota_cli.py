# SPDX-License-Identifier: Apache-2.0
"""Quotas as an unmodified ``openstack`` client shows and sets them."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.functional.cloud import Cloud
from tests.functional.test_cli import Client as _Client

Make = Callable[..., Cloud]


class Client(_Client):
    """The command, which may also fail."""

    def refused(self, command: str) -> str:
        """Run a command of demo that must fail and return what it prints."""
        with pytest.raises(AssertionError) as failed:
            self.text(command)
        return str(failed.value)


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    config = {"quota": {"instances": 10, "cores": 20, "ram": 51200}}
    return make_class_cloud(auth="keystone", config=config)


@pytest.fixture(scope="class")
def client(cloud: Cloud) -> Client:
    return Client(cloud)


def limits(
    rows: list[dict[str, Any]], key: str = "Resource", value: str = "Limit"
) -> dict[str, Any]:
    """Return a listing as a dictionary."""
    return {row[key]: row[value] for row in rows}


class TestQuotas:
    def test_defaults(self, client: Client) -> None:
        shown = limits(client.data("quota show --compute"))
        assert (shown["instances"], shown["cores"], shown["ram"]) == (10, 20, 51200)
        shown = limits(client.data("limits show --absolute"), "Name", "Value")
        assert (shown["instances"], shown["instances_used"]) == (10, 0)

    def test_set_and_full(self, client: Client, cloud: Cloud) -> None:
        client.text("quota set --instances 1 --key-pairs 3 demo", user="admin")
        shown = limits(client.data("quota show --compute demo", user="admin"))
        assert (shown["instances"], shown["key-pairs"]) == (1, 3)
        api = cloud.client("demo", "demo")
        api.wait(api.boot())
        refused = client.refused("server create --image cirros --flavor m1.nano --nic none second")
        assert "403: Client Error" in refused
        over = "Quota exceeded for instances: Requested 1, but already used 1 of 1 instances"
        assert over in refused
        used = client.data("quota show --compute --usage demo", user="admin")
        assert limits(used, value="In Use")["instances"] == 1
        client.text("quota delete --compute demo", user="admin")
        assert limits(client.data("quota show --compute"))["instances"] == 10

    def test_defaults_of_all_projects(self, client: Client) -> None:
        client.text("quota set --class --instances 4 default", user="admin")
        assert limits(client.data("quota show --compute"))["instances"] == 4
        client.text("quota set --class --instances 10 default", user="admin")
