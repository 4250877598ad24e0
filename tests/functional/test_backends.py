# SPDX-License-Identifier: Apache-2.0
"""The subset that runs on both thread backends: a boot, a delete, a reload, a kill."""

import os
from collections.abc import Callable

import pytest

from tests.functional import faults, lines
from tests.functional.cloud import Cloud

Make = Callable[..., Cloud]

BACKEND = os.environ.get("NOVALITE_CONCURRENCY_BACKEND") or "eventlet"

pytestmark = pytest.mark.bus


@pytest.fixture(scope="class")
def cloud(make_class_cloud: Make) -> Cloud:
    return make_class_cloud(neighbors=True)


class TestBackend:
    """One cloud whose services all run on the backend that the environment names."""

    def test_all_services_run_on_it(self, cloud: Cloud) -> None:
        assert sorted(cloud.names) == ["api", "compute1", "conductor", "neighbors", "scheduler"]
        for name in cloud.names:
            assert cloud.grep(name, rf"novalite-\w+ starts on \S+ with {BACKEND}$"), name

    def test_a_boot_and_a_delete(self, cloud: Cloud) -> None:
        api = cloud.api
        answer = api.create("a", networks="auto")
        uuid = answer.body["server"]["id"]
        assert api.wait(uuid)["addresses"]
        request_id = answer.headers["x-openstack-request-id"]
        found = [line for line in lines.read(cloud) if line.request == request_id]
        assert [number for number, _ in lines.steps(found)] == [1, 2, 3, 4, 5]
        assert uuid in api.post(f"/servers/{uuid}/action", {"os-getConsoleOutput": {}})["output"]
        cloud.assert_books()
        api.delete(uuid)
        api.wait_gone(uuid)
        assert cloud.assert_books().guests == {"compute1": []}

    def test_many_at_once(self, cloud: Cloud) -> None:
        uuids = cloud.api.boot_many(20)
        assert set(cloud.api.wait_settled(uuids).values()) == {"ACTIVE"}
        faults.remove_all(cloud)

    def test_a_reload(self, cloud: Cloud) -> None:
        cloud.configure({"DEFAULT": {"debug": True}, "scheduler": {"max_attempts": 2}})
        pids = {name: cloud.services.process(name).pid for name in cloud.names}
        for _ in range(2):
            cloud.reload(*cloud.names)
        assert {name: cloud.services.process(name).pid for name in cloud.names} == pids
        for name in cloud.names:
            assert not cloud.grep(name, "keeps its former options")
        cloud.api.wait(cloud.api.boot("b", networks="auto"))
        faults.remove_all(cloud)

    @pytest.mark.parametrize("victim", ["conductor", "compute1"])
    def test_a_kill(self, cloud: Cloud, victim: str) -> None:
        faults.play(cloud, "compute1", spawn_delay=1)
        uuid = cloud.api.boot("c")
        cloud.wait_log("compute1", f"{uuid}.*Creating image")
        cloud.kill(victim)
        cloud.start(victim)
        cloud.api.wait(uuid, timeout=faults.PROMISE)
        cloud.assert_books()
        faults.remove_all(cloud)

    def test_a_planned_stop(self, cloud: Cloud) -> None:
        cloud.stop(*cloud.names)
        for name in cloud.names:
            assert cloud.services.process(name).exit_code == 0, name
            assert not cloud.grep(name, "Traceback"), name
