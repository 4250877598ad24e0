# SPDX-License-Identifier: Apache-2.0
"""Quotas under many requests at once, answered by two API processes."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent import futures

import pytest

from novalite.devcloud.client import Answer
from tests.functional import faults
from tests.functional.api import Api
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.drill

Make = Callable[..., Cloud]

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN1uKmuHJochoaji53iDlBgUKicsU6Ee9sY3cUCZKyXl a@b"
# 403 of a quota, and nothing else that is forbidden.
OVER = "Quota exceeded"
_projects = itertools.count(1)


class Two:
    """A cloud with two API processes."""

    def __init__(self, cloud: Cloud):
        self.cloud = cloud
        self._urls = itertools.cycle((cloud.endpoints.compute_url, cloud.add_api()))

    def client(self, user: str, project: str) -> Api:
        """Return a client of one process, and the next time of the other."""
        return Api(next(self._urls), f"{user}:{project}")


@pytest.fixture(scope="class")
def running(make_class_cloud: Make) -> Two:
    return Two(make_class_cloud(config={"quota": {"instances": 7, "key_pairs": 7}}))


@pytest.fixture
def two(running: Two) -> Iterator[Two]:
    yield running
    remove_all(running.cloud)


@pytest.fixture
def cloud(two: Two) -> Cloud:
    return two.cloud


def remove_all(cloud: Cloud) -> None:
    """Delete the servers of all projects."""
    api = cloud.api
    for server in api.servers("?all_tenants=1"):
        api.delete(server["id"])
    eventually(lambda: not api.servers("?all_tenants=1"), 60.0, "all servers are gone")
    cloud.assert_books()


def new_project(cloud: Cloud, **limits: int) -> str:
    """Return a project with limits of its own, which no request has named before."""
    project = f"project{next(_projects)}"
    if limits:
        set_quota(cloud, project, limits)
    return project


def set_quota(cloud: Cloud, path: str, limits: dict[str, int]) -> None:
    """Set limits of a project, or with ``?user_id=`` of a user in it."""
    answer = cloud.api.request("PUT", f"/os-quota-sets/{path}", {"quota_set": limits})
    assert answer.status == 200, answer


def together(clients: list[Api], ask: Callable[[Api, int], Answer]) -> list[int]:
    """Let every client ask in the same instant; return the statuses in their order."""
    with futures.ThreadPoolExecutor(len(clients)) as pool:
        answers = list(pool.map(ask, clients, range(len(clients))))
    for answer in answers:
        if answer.status == 403:
            assert answer.body["forbidden"]["message"].startswith(OVER), answer
    return [answer.status for answer in answers]


def boot(api: Api, number: int) -> Answer:
    return api.create(f"vm{number}")


def key_pair(api: Api, number: int) -> Answer:
    body = {"keypair": {"name": f"key{number}", "public_key": PUBLIC_KEY}}
    return api.request("POST", "/os-keypairs", body)


def count(cloud: Cloud, project: str, user: str | None = None) -> int:
    """Return how many servers a project has, or one user in it."""
    detail = cloud.api.get(
        f"/os-quota-sets/{project}/detail" + (f"?user_id={user}" if user else "")
    )
    return int(detail["quota_set"]["instances"]["in_use"])


class TestManyAtOnce:
    def test_fifty_for_seven(
        self, cloud: Cloud, two: Two, rounds: range, table: faults.Table
    ) -> None:
        for _ in rounds:
            # The limit is that of the option: no row is there but what the race makes.
            project = new_project(cloud)
            clients = [two.client("bob", project) for _ in range(50)]
            statuses = together(clients, boot)
            assert Counter(statuses) == {202: 7, 403: 43}
            assert count(cloud, project) == 7
            remove_all(cloud)
        table.add(f"50 creates, quota of 7, {len(rounds)} times", "7 accepted, 43 refused")

    def test_cores_and_counts(
        self, cloud: Cloud, two: Two, rounds: range, table: faults.Table
    ) -> None:
        flavor = cloud.api.flavor("two-cores", vcpus=2)

        def several(api: Api, number: int) -> Answer:
            return api.create(f"vm{number}", flavor=flavor, min_count=1, max_count=3)

        for _ in rounds:
            project = new_project(cloud, cores=15, instances=-1)
            statuses = together([two.client("bob", project) for _ in range(20)], several)
            assert Counter(statuses) == {202: 3, 403: 17}
            assert count(cloud, project) == 7
            remove_all(cloud)
        table.add(f"20 creates of 1 to 3, 15 cores, {len(rounds)} times", "3 + 3 + 1 servers")

    def test_users_of_one_project(
        self, cloud: Cloud, two: Two, rounds: range, table: faults.Table
    ) -> None:
        for _ in rounds:
            project = new_project(cloud, instances=12)
            set_quota(cloud, f"{project}?user_id=bob", {"instances": 5})
            clients = [two.client(user, project) for _ in range(15) for user in ("bob", "eve")]
            statuses = together(clients, boot)
            bobs = Counter(statuses[::2])[202]
            assert bobs <= 5
            assert Counter(statuses) == {202: 12, 403: 18}
            assert (count(cloud, project), count(cloud, project, "bob")) == (12, bobs)
            more = together([two.client("bob", project) for _ in range(6)], boot)
            assert set(more) == {403}
            remove_all(cloud)
        table.add(f"two users, 5 and 12 in all, {len(rounds)} times", "12 accepted, 18 refused")

    def test_one_user(self, cloud: Cloud, two: Two, rounds: range, table: faults.Table) -> None:
        for _ in rounds:
            project = new_project(cloud, instances=-1)
            set_quota(cloud, f"{project}?user_id=bob", {"instances": 3})
            statuses = together([two.client("bob", project) for _ in range(20)], boot)
            assert Counter(statuses) == {202: 3, 403: 17}
            remove_all(cloud)
        table.add(f"20 creates, user's quota of 3, {len(rounds)} times", "3 accepted, 17 refused")

    def test_key_pairs(self, two: Two, rounds: range, table: faults.Table) -> None:
        """They are the user's, whatever project the token is for."""
        for number in rounds:
            user = f"keeper{number}"
            clients = [two.client(user, f"keys{index % 3}") for index in range(30)]
            assert Counter(together(clients, key_pair)) == {201: 7, 403: 23}
            assert len(clients[0].get("/os-keypairs")["keypairs"]) == 7
        table.add(f"30 key pairs, quota of 7, {len(rounds)} times", "7 accepted, 23 refused")

    def test_a_delete_gives_back_once(
        self, cloud: Cloud, two: Two, rounds: range, table: faults.Table
    ) -> None:
        for _ in rounds:
            project = new_project(cloud, instances=3)
            api, other = two.client("bob", project), two.client("bob", project)
            servers = [api.boot(f"vm{number}") for number in range(3)]
            api.wait_settled(servers)
            with futures.ThreadPoolExecutor(6) as pool:
                url = f"/servers/{servers[0]}"
                asked = [pool.submit(each.request, "DELETE", url) for each in (api, other) * 3]
                assert {each.result().status for each in asked} <= {204, 404, 409}
            api.wait_gone(servers[0])
            statuses = together([api, other] * 3, boot)
            assert Counter(statuses) == {202: 1, 403: 5}
            remove_all(cloud)
        table.add(f"one server deleted 6 times, {len(rounds)} times", "room for one")


def test_a_reload_changes_the_limits(make_cloud: Make) -> None:
    cloud = make_cloud()
    cloud.configure({"quota": {"instances": 1}})
    cloud.reload("api")
    api = cloud.client("bob", "reloaded")
    api.boot()
    assert api.create().status == 403
    cloud.configure({"quota": {"instances": 2}})
    cloud.reload("api")
    api.boot()
    assert api.create().status == 403
