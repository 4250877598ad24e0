# SPDX-License-Identifier: Apache-2.0
"""Bodies of a server at each microversion that changes them."""

import time
import uuid
from typing import Any

import pytest
import sqlalchemy as sa

from novalite import exception
from novalite.api import policy
from novalite.api.views import servers as view
from novalite.db import instances, schema
from novalite.objects import base
from novalite.objects.instance import InstanceFault, NetworkInfo

BASIC = {
    *("id", "name", "status", "tenant_id", "user_id", "metadata", "hostId", "image", "flavor"),
    *("created", "updated", "addresses", "accessIPv4", "accessIPv6", "links", "progress"),
    "OS-DCF:diskConfig",
}
FULL = BASIC | {
    *("OS-EXT-AZ:availability_zone", "config_drive", "key_name", "security_groups"),
    *("OS-SRV-USG:launched_at", "OS-SRV-USG:terminated_at", "OS-EXT-STS:task_state"),
    *("OS-EXT-STS:vm_state", "OS-EXT-STS:power_state", "os-extended-volumes:volumes_attached"),
}
ADMIN = {
    "OS-EXT-SRV-ATTR:host",
    "OS-EXT-SRV-ATTR:instance_name",
    "OS-EXT-SRV-ATTR:hypervisor_hostname",
}
ADMIN_23 = ADMIN | {
    f"OS-EXT-SRV-ATTR:{name}"
    for name in ("reservation_id", "launch_index", "hostname", "kernel_id", "ramdisk_id")
    + ("root_device_name", "user_data")
}
LATEST = {
    *("locked", "description", "tags", "trusted_image_certificates", "server_groups"),
    "locked_reason",
}
# Microversion -> (keys a user sees, keys only an administrator sees).
KEYS = {
    "2.1": (FULL, ADMIN),
    "2.3": (FULL, ADMIN_23),
    "2.9": (FULL | {"locked"}, ADMIN_23),
    "2.16": (FULL | {"locked"}, ADMIN_23 | {"host_status"}),
    "2.19": (FULL | {"locked", "description"}, ADMIN_23 | {"host_status"}),
    "2.26": (FULL | {"locked", "description", "tags"}, ADMIN_23 | {"host_status"}),
    "2.47": (FULL | {"locked", "description", "tags"}, ADMIN_23 | {"host_status"}),
    "2.53": (FULL | {"locked", "description", "tags"}, ADMIN_23 | {"host_status"}),
    "2.79": (FULL | LATEST, ADMIN_23 | {"host_status"}),
}
NETWORK = NetworkInfo(
    port_id=str(uuid.uuid4()),
    network_id=str(uuid.uuid4()),
    network_name="private",
    mac_address="fa:16:3e:00:00:01",
    fixed_ips=[
        {"subnet_id": "s", "ip_address": "10.0.0.7"},
        {"subnet_id": "t", "ip_address": "fd00::7"},
    ],
)


def run(cloud: Any, key: str, **values: Any) -> None:
    cloud.change(
        key,
        **{
            "vm_state": "active",
            "task_state": None,
            "power_state": 1,
            "host": "h1",
            "node": "n1",
            "launched_at": 1767225600.5,
            "network_info": base.encode([NETWORK]),
            **values,
        },
    )


@pytest.mark.parametrize("version", KEYS)
def test_keys_for_users_and_administrators(cloud: Any, version: str) -> None:
    key = cloud.boot(user="u:p")
    for_users, for_admins = KEYS[version]
    shown = cloud.get(f"/servers/{key}", user="u:p", version=version)["server"]
    assert set(shown) == for_users
    path = f"/servers/{key}"
    assert set(cloud.get(path, version=version)["server"]) == for_users | for_admins
    listed = cloud.get("/servers/detail?all_tenants=1", version=version)["servers"][0]
    assert set(listed) == (for_users | for_admins) - {"server_groups"}
    body: dict[str, Any] = {"server": {}}
    updated = cloud.call("PUT", path, body, version=version, user="u:p").json["server"]
    if version == "2.79":
        assert set(updated) == for_users
    else:
        assert set(updated) == BASIC | ({"locked", "description", "tags"} & for_users)


def test_a_new_server(cloud: Any) -> None:
    key = cloud.boot(name="web", metadata={"role": "x"}, description="d", tags=["b", "a"])
    server = cloud.get(f"/servers/{key}", version="2.53")["server"]
    assert server["status"] == "BUILD"
    assert server["OS-EXT-STS:task_state"] == "scheduling"
    assert server["hostId"] == ""
    assert server["addresses"] == {}
    assert server["metadata"] == {"role": "x"}
    assert server["description"] == "d"
    assert server["tags"] == ["a", "b"]
    assert server["config_drive"] == ""
    assert server["OS-EXT-AZ:availability_zone"] == ""
    assert server["security_groups"] == [{"name": "default"}]
    assert server["OS-EXT-SRV-ATTR:instance_name"] == "instance-00000001"
    assert server["host_status"] == ""
    assert server["created"].endswith("Z")
    assert "fault" not in server


def test_flavor_is_a_link_until_246_and_embedded_from_247(cloud: Any) -> None:
    key = cloud.boot()
    before = cloud.get(f"/servers/{key}", version="2.46")["server"]["flavor"]
    assert before == {
        "id": "1",
        "links": [{"rel": "bookmark", "href": "http://falconframework.org/flavors/1"}],
    }
    assert cloud.get(f"/servers/{key}", version="2.47")["server"]["flavor"] == {
        "vcpus": 1,
        "ram": 512,
        "disk": 1,
        "ephemeral": 0,
        "swap": 0,
        "original_name": "m1.tiny",
        "extra_specs": {"hw:foo": "bar"},
    }


def test_put_answers_with_the_whole_server_from_275(cloud: Any) -> None:
    key = cloud.boot(user="u:p")
    run(cloud, key)
    path, body = f"/servers/{key}", {"server": {"name": "other"}}
    for user in ("u:p", "admin:admin"):
        answer = cloud.call("PUT", path, body, version="2.75", user=user).json
        assert answer == cloud.get(path, version="2.75", user=user)
    before = cloud.call("PUT", path, body, version="2.74", user="u:p").json["server"]
    assert before["addresses"]["private"][0] == {"version": 4, "addr": "10.0.0.7"}
    assert "OS-EXT-STS:vm_state" not in before


def test_the_group_of_a_server_from_271(cloud: Any) -> None:
    body = {"server_group": {"name": "g", "policies": ["affinity"]}}
    group = cloud.call("POST", "/os-server-groups", body, user="u:p").json["server_group"]["id"]
    within, without = cloud.boot(user="u:p", hints={"group": group}), cloud.boot(user="u:p")
    for key, groups in ((within, [group]), (without, [])):
        server = cloud.get(f"/servers/{key}", user="u:p", version="2.71")["server"]
        assert server["server_groups"] == groups
        updated = cloud.call("PUT", f"/servers/{key}", {"server": {}}, user="u:p", version="2.71")
        assert updated.json["server"]["server_groups"] == groups


@pytest.mark.parametrize("certificates", [None, ["one"], ["two", "one"]])
def test_trusted_image_certificates_from_263(cloud: Any, certificates: Any) -> None:
    key = cloud.create(version="2.63", trusted_image_certificates=certificates).json["server"]["id"]
    for path in (f"/servers/{key}", "/servers/detail"):
        body = cloud.get(path, version="2.63")
        server = body["server"] if "server" in body else body["servers"][0]
        assert server["trusted_image_certificates"] == certificates


def test_extra_specs_of_the_flavor_are_for_whom_policy_lets(cloud: Any, monkeypatch: Any) -> None:
    key = cloud.boot(user="u:p")
    real = policy.Policy.allows

    def strict(self: Any, context: Any, rule: str, *args: Any) -> bool:
        return rule != "os-flavor-extra-specs:index" and real(self, context, rule, *args)

    monkeypatch.setattr(policy.Policy, "allows", strict)
    flavor = cloud.get(f"/servers/{key}", user="u:p", version="2.47")["server"]["flavor"]
    assert set(flavor) == {"vcpus", "ram", "disk", "ephemeral", "swap", "original_name"}
    for path in ("/flavors/1", "/flavors/detail"):
        body = cloud.get(path, user="u:p", version="2.61")
        assert "extra_specs" not in (body["flavor"] if "flavor" in body else body["flavors"][0])


def test_a_running_server(cloud: Any) -> None:
    cloud.add_service("h1")
    key = cloud.boot()
    run(cloud, key)
    server = cloud.get(f"/servers/{key}", version="2.53")["server"]
    assert server["status"] == "ACTIVE"
    assert server["hostId"] == view.host_id("admin", "h1")
    assert server["OS-EXT-AZ:availability_zone"] == "nova"
    assert server["OS-SRV-USG:launched_at"] == "2026-01-01T00:00:00.500000"
    assert server["OS-EXT-SRV-ATTR:host"] == "h1"
    assert server["OS-EXT-SRV-ATTR:hypervisor_hostname"] == "n1"
    assert server["host_status"] == "UP"
    mac = "fa:16:3e:00:00:01"
    assert server["addresses"]["private"] == [
        {
            "version": 4,
            "addr": "10.0.0.7",
            "OS-EXT-IPS:type": "fixed",
            "OS-EXT-IPS-MAC:mac_addr": mac,
        },
        {
            "version": 6,
            "addr": "fd00::7",
            "OS-EXT-IPS:type": "fixed",
            "OS-EXT-IPS-MAC:mac_addr": mac,
        },
    ]


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ({"disabled": True}, "MAINTENANCE"),
        ({"forced_down": True}, "DOWN"),
        ({"last_seen_up": time.time() - 1000}, "DOWN"),
    ],
)
def test_host_status_follows_the_service(cloud: Any, values: Any, state: str) -> None:
    cloud.add_service("h1", **values)
    key = cloud.boot()
    run(cloud, key)
    assert cloud.get(f"/servers/{key}", version="2.16")["server"]["host_status"] == state


def test_host_status_without_a_service_is_unknown(cloud: Any) -> None:
    key = cloud.boot()
    run(cloud, key)
    assert cloud.get(f"/servers/{key}", version="2.16")["server"]["host_status"] == "UNKNOWN"


def test_fault_only_in_error_and_details_for_administrators(cloud: Any) -> None:
    key = cloud.boot(user="u:p")
    for message in ("first", "No valid host was found."):
        fault = InstanceFault(500, message, details="numbers", created_at=1767225600.0)
        cloud.database.transaction(lambda conn, fault=fault: instances.add_fault(conn, key, fault))
    assert "fault" not in cloud.get(f"/servers/{key}")["server"]
    cloud.change(key, vm_state="error", task_state=None)
    shown = cloud.get(f"/servers/{key}", user="u:p")["server"]
    assert shown["status"] == "ERROR"
    assert shown["fault"] == {
        "code": 500,
        "created": "2026-01-01T00:00:00Z",
        "message": "No valid host was found.",
    }
    assert "progress" not in shown
    assert cloud.get(f"/servers/{key}")["server"]["fault"]["details"] == "numbers"
    listed = cloud.get("/servers/detail", user="u:p")["servers"][0]
    assert listed["fault"] == shown["fault"]


def test_no_security_groups_key_when_there_are_none(cloud: Any) -> None:
    key = cloud.boot()
    cloud.change(key, security_groups=[])
    assert "security_groups" not in cloud.get(f"/servers/{key}")["server"]


def test_foreign_server_is_404(cloud: Any) -> None:
    key = cloud.boot(user="u:p")
    for method, body in (("GET", None), ("DELETE", None), ("PUT", {"server": {"name": "x"}})):
        result = cloud.call(method, f"/servers/{key}", body, user="u:other")
        assert result.status_code == 404
        assert result.json["itemNotFound"]["message"] == f"Instance {key} could not be found."
    assert cloud.get(f"/servers/{key}", user="u:p")["server"]["name"] == "web"


def test_ips(cloud: Any) -> None:
    key = cloud.boot()
    assert cloud.get(f"/servers/{key}/ips") == {"addresses": {}}
    run(cloud, key)
    entries = [{"version": 4, "addr": "10.0.0.7"}, {"version": 6, "addr": "fd00::7"}]
    assert cloud.get(f"/servers/{key}/ips") == {"addresses": {"private": entries}}
    assert cloud.get(f"/servers/{key}/ips/private") == {"private": entries}
    assert cloud.call("GET", f"/servers/{key}/ips/nope").status_code == 404


class TestUpdate:
    def test_changes_what_is_given(self, cloud: Any) -> None:
        key = cloud.boot(name="old", description="d")
        asked = {"name": "new", "accessIPv6": "fd00:0:0::1", "OS-DCF:diskConfig": "AUTO"}
        server = cloud.call("PUT", f"/servers/{key}", {"server": asked}, version="2.53").json
        assert server["server"]["name"] == "new"
        assert server["server"]["accessIPv6"] == "fd00::1"
        assert server["server"]["OS-DCF:diskConfig"] == "AUTO"
        assert server["server"]["description"] == "d"

    def test_takes_things_away(self, cloud: Any) -> None:
        key = cloud.boot(description="d", accessIPv4="10.0.0.1")
        asked = {"description": None, "accessIPv4": ""}
        cloud.call("PUT", f"/servers/{key}", {"server": asked}, version="2.53")
        server = cloud.get(f"/servers/{key}", version="2.53")["server"]
        assert (server["description"], server["accessIPv4"]) == (None, "")

    def test_touches_updated(self, cloud: Any) -> None:
        key = cloud.boot()
        cloud.change(key, updated_at=1.0)
        cloud.call("PUT", f"/servers/{key}", {"server": {"name": "new"}})
        assert cloud.row("instances", uuid=key).updated_at > 1.0

    def test_unknown_commit_is_looked_up(self, cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        key = cloud.boot(name="old")
        real = cloud.database.transaction

        def lossy(work: Any) -> Any:
            real(work)
            raise exception.DatabaseUnavailable()

        monkeypatch.setattr(cloud.database, "transaction", lossy)
        result = cloud.call("PUT", f"/servers/{key}", {"server": {"name": "new"}})
        assert (result.status_code, result.json["server"]["name"]) == (200, "new")

        def away(_work: Any) -> Any:
            raise exception.DatabaseUnavailable()

        monkeypatch.setattr(cloud.database, "transaction", away)
        result = cloud.call("PUT", f"/servers/{key}", {"server": {"name": "newer"}})
        assert result.status_code == 503

    @pytest.mark.parametrize(
        ("asked", "version"),
        [
            ({"name": ""}, "2.1"),
            ({"name": " x"}, "2.1"),
            ({"name": "x\x01"}, "2.1"),
            ({"name": "x" * 256}, "2.1"),
            ({"accessIPv4": "fd00::1"}, "2.1"),
            ({"description": "d"}, "2.18"),
            ({"host": "h1"}, "2.53"),
        ],
    )
    def test_refuses(self, cloud: Any, asked: Any, version: str) -> None:
        key = cloud.boot()
        result = cloud.call("PUT", f"/servers/{key}", {"server": asked}, version=version)
        assert result.status_code == 400
        assert next(iter(asked)) in result.json["badRequest"]["message"]


class TestDelete:
    def test_before_it_has_a_host_it_ends_at_once(self, cloud: Any) -> None:
        key = cloud.boot()
        result = cloud.call("DELETE", f"/servers/{key}")
        assert (result.status_code, result.text) == (204, "")
        assert cloud.call("GET", f"/servers/{key}").status_code == 404
        assert cloud.wakeup.destroys == []

    def test_on_a_host_it_is_told(self, cloud: Any) -> None:
        key = cloud.boot()
        action = cloud.row("instances", uuid=key).action_id
        cloud.database.transaction(
            lambda conn: conn.execute(
                sa.update(schema.instance_actions)
                .where(schema.instance_actions.c.id == action)
                .values(state="done")
            )
        )
        run(cloud, key, action_id=None)
        for _ in range(2):  # asking again drives it again
            assert cloud.call("DELETE", f"/servers/{key}").status_code == 204
        assert [host for host, _request in cloud.wakeup.destroys] == ["h1", "h1"]
        assert cloud.wakeup.destroys[0][1].instance.uuid == key
        server = cloud.get(f"/servers/{key}")["server"]
        assert (server["status"], server["OS-EXT-STS:task_state"]) == ("ACTIVE", "deleting")

    def test_unknown_is_404(self, cloud: Any) -> None:
        assert cloud.call("DELETE", "/servers/nope").status_code == 404
