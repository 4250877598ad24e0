# SPDX-License-Identifier: Apache-2.0
"""Services of two versions in one cloud, really sending messages: what works, and what is said.

The older side is the program itself with one change, made by a start script: its conductor speaks
RPC version 1.0, without what 1.1 brought.
"""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.cloud import Cloud

pytestmark = pytest.mark.bus

Make = Callable[..., Cloud]

PINNED = {"upgrade_levels": {"conductor": "1.0"}}
# A conductor as it was before register had a version.
OLD_CONDUCTOR = """#!{python}
from novalite.cmd import conductor, launch

launch.first("novalite-conductor")

import oslo_messaging as messaging
from novalite import rpc
from novalite.conductor import manager

new = manager.ConductorEndpoint


class ConductorEndpoint:
    target = messaging.Target(version="1.0")

    def __init__(self, made):
        self._new = new(made)

    @rpc.expose
    def ping(self, context):
        return self._new.ping(context)

    @rpc.expose
    def register(self, context, host, binary, identity, nodes):
        return self._new.register(context, host, binary, identity, nodes)

    @rpc.expose
    def report_state(self, context, report):
        return self._new.report_state(context, report)


manager.ConductorEndpoint = ConductorEndpoint
conductor.main()
"""


@pytest.fixture
def old_conductor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clouds of this test start the older conductor."""
    from novalite.devcloud import services

    script = tmp_path / "novalite-conductor"
    script.write_text(OLD_CONDUCTOR.format(python=sys.executable))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    found = services.find_program

    def find(name: str) -> str:
        return str(script) if name == script.name else found(name)

    monkeypatch.setattr(services, "find_program", find)
    monkeypatch.setenv("PYTHONPATH", os.getcwd())


def versions(cloud: Cloud) -> dict[str, int]:
    return {row["binary"]: row["version"] for row in cloud.rows("SELECT * FROM services")}


def boot_and_delete(cloud: Cloud) -> None:
    api = cloud.api
    uuid = api.boot()
    api.wait(uuid)
    api.delete(uuid)
    api.wait_gone(uuid)
    cloud.assert_books()


def test_an_older_conductor_with_newer_services_that_are_pinned(
    old_conductor: None, make_cloud: Make
) -> None:
    cloud = make_cloud(config=PINNED)
    boot_and_delete(cloud)
    found = versions(cloud)
    assert found["nova-compute"] == found["nova-scheduler"] == 0
    for name in cloud.names:
        assert not cloud.grep(name, "Traceback|UnsupportedVersion"), name


def test_a_newer_conductor_with_older_services(make_cloud: Make) -> None:
    # What a client of 1.0 sends is what a pinned one sends.
    cloud = make_cloud(own={name: PINNED for name in ("compute1", "scheduler")})
    boot_and_delete(cloud)
    assert versions(cloud) == {"nova-compute": 0, "nova-scheduler": 0, "nova-conductor": 1}


def test_an_older_conductor_and_nobody_pinned(old_conductor: None, make_cloud: Make) -> None:
    cloud = make_cloud(own={name: PINNED for name in ("compute1", "scheduler")})
    cloud.configure({"upgrade_levels": {"conductor": None}}, "compute1")
    cloud.stop("compute1")
    cloud.launch("compute1")
    told = cloud.wait_log("compute1", "does not speak RPC version 1.1")
    assert "set [upgrade_levels] conductor of this service" in told
    refused = cloud.wait_log("conductor", "A message was refused")
    assert "register" in refused and "[upgrade_levels]" in refused
    for name in ("compute1", "conductor"):
        assert not cloud.grep(name, "Traceback"), name
    # It goes on by itself when the conductor is of its version.
    cloud.configure(PINNED, "compute1")
    cloud.stop("compute1")
    cloud.start("compute1")
    boot_and_delete(cloud)
