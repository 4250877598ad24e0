# SPDX-License-Identifier: Apache-2.0
"""POST /servers: what is taken, what is refused, and what is written."""

from typing import Any

import pytest

from novalite import exception
from novalite.api import server_request
from novalite.db import flavors
from novalite.objects import base
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import NetworkRequest, RequestSpec
from tests.unit.api.cloud import BIG_IMAGE, IMAGE, NETWORK, PORT

OTHER_PORT = "bbbbbbbb-0000-0000-0000-000000000002"


def refused(result: Any, *words: str, status: int = 400) -> str:
    assert result.status_code == status, result.text
    message = str(next(iter(result.json.values()))["message"])
    for word in words:
        assert word in message
    assert len(message) < 1000
    return message


def spec_of(cloud: Any, key: str) -> RequestSpec:
    spec: RequestSpec = base.decode(cloud.row("request_specs", instance_uuid=key).spec)
    return spec


def test_answer(cloud: Any) -> None:
    result = cloud.create()
    server = result.json["server"]
    assert result.status_code == 202
    assert set(server) == {"id", "links", "OS-DCF:diskConfig", "security_groups", "adminPass"}
    assert server["links"][0]["href"] == result.headers["Location"]
    assert server["security_groups"] == [{"name": "default"}]
    assert server["OS-DCF:diskConfig"] == "MANUAL"
    assert len(server["adminPass"]) == 12


def test_password_is_only_told_if_switched_on(cloud: Any) -> None:
    assert cloud.create(adminPass="secret!").json["server"]["adminPass"] == "secret!"
    cloud.conf.set_override("enable_instance_password", False, group="api")
    assert "adminPass" not in cloud.create().json["server"]


def test_rows_and_one_wake_up(cloud: Any) -> None:
    result = cloud.create(user="u:p")
    key = result.json["server"]["id"]
    row = cloud.row("instances", uuid=key)
    assert (row.vm_state, row.task_state, row.project_id, row.user_id) == (
        "building",
        "scheduling",
        "p",
        "u",
    )
    action = cloud.row("instance_actions", instance_uuid=key)
    assert (action.id, action.state, action.action) == (row.action_id, "pending", "create")
    assert action.request_id == result.headers["x-openstack-request-id"]
    assert cloud.wakeup.reservations == [row.reservation_id] == [action.reservation_id]
    spec = spec_of(cloud, key)
    assert (spec.flavor.name, spec.image.id, spec.networks) == ("m1.tiny", IMAGE, [])


@pytest.mark.parametrize("name", ["Größe", "日本語サーバ", "a & b <c> \"d\" 'e'", "]]>", "😀"])
def test_names_with_markup_and_letters_of_all_kinds(cloud: Any, name: str) -> None:
    key = cloud.boot(name=name)
    assert cloud.get(f"/servers/{key}")["server"]["name"] == name


@pytest.mark.parametrize("name", ["", " ", " a", "a ", "a\x01", "a\nb", "\u200b", "a" * 256])
def test_names_that_cannot_be_shown(cloud: Any, name: str) -> None:
    refused(cloud.create(name=name), "name")
    assert cloud.row("instances") is None


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("Web_1 x", "web-1-x"),
        ("guest-instance-1.domain.com", "guest-instance-1-domain-com"),
        ("-a-", "a"),
        ("x" * 80, "x" * 63),
        ("日本", "Server-KEY"),
    ],
)
def test_host_name(name: str, host: str) -> None:
    assert server_request.hostname(name, "KEY") == host


class TestCounts:
    @pytest.mark.parametrize(
        ("asked", "count"),
        [
            ({"min_count": "2"}, 2),
            ({"min_count": 2}, 2),
            ({"max_count": 3}, 3),
            ({"min_count": 1, "max_count": "3"}, 3),
            ({"min_count": 2, "max_count": 2}, 2),
            ({}, 1),
        ],
    )
    def test_text_and_number_are_equal_v28(self, cloud: Any, asked: Any, count: int) -> None:
        assert cloud.create(**asked).status_code == 202
        assert len(cloud.get("/servers")["servers"]) == count

    @pytest.mark.parametrize(
        "value", ["", 0, "0", "0\n", "1\n", -1, "-1", 1.5, "1.5", True, None, "x", [1]]
    )
    @pytest.mark.parametrize("field", ["min_count", "max_count"])
    def test_refused_v28(self, cloud: Any, field: str, value: Any) -> None:
        refused(cloud.create(**{field: value}), field)
        assert cloud.get("/servers") == {"servers": []}

    def test_min_above_max_v28(self, cloud: Any) -> None:
        refused(cloud.create(min_count=3, max_count=2), "min_count must be <= max_count")

    def test_names_and_one_reservation_v28(self, cloud: Any) -> None:
        cloud.create(name="web", min_count=3)
        servers = cloud.get("/servers/detail?sort_key=launch_index&sort_dir=asc", version="2.3")
        shown = [
            (s["name"], s["OS-EXT-SRV-ATTR:launch_index"], s["OS-EXT-SRV-ATTR:hostname"])
            for s in servers["servers"]
        ]
        assert shown == [("web-1", 0, "web-1"), ("web-2", 1, "web-2"), ("web-3", 2, "web-3")]
        assert len({s["OS-EXT-SRV-ATTR:reservation_id"] for s in servers["servers"]}) == 1
        assert len(cloud.wakeup.reservations) == 1

    def test_a_single_server_keeps_its_name_v28(self, cloud: Any) -> None:
        cloud.create(name="web", min_count=1, max_count=1)
        assert cloud.get("/servers")["servers"][0]["name"] == "web"

    def test_long_names_stay_within_255(self) -> None:
        names = server_request.names("x" * 255, 12)
        assert {len(name) for name in names} == {255}
        assert len(set(names)) == 12

    def test_reservation_id_instead_of_a_server(self, cloud: Any) -> None:
        result = cloud.create(min_count=2, return_reservation_id=True)
        assert set(result.json) == {"reservation_id"}
        found = cloud.get(f"/servers?reservation_id={result.json['reservation_id']}")
        assert len(found["servers"]) == 2

    def test_one_address_for_several_v28(self, cloud: Any) -> None:
        networks = [{"uuid": NETWORK, "fixed_ip": "10.0.0.5"}]
        refused(cloud.create(min_count=2, networks=networks), "fixed_ip")
        refused(cloud.create(max_count=2, networks=[{"port": PORT}]), "port")


class TestNetworks:
    def test_are_required_from_237(self, cloud: Any) -> None:
        body = {"server": {"name": "x", "flavorRef": "1", "imageRef": IMAGE}}
        assert cloud.call("POST", "/servers", body, version="2.36").status_code == 202
        refused(cloud.call("POST", "/servers", body, version="2.37"), "networks")

    @pytest.mark.parametrize("word", ["none", "auto"])
    def test_words_only_from_237(self, cloud: Any, word: str) -> None:
        assert cloud.create(networks=word, version="2.37").status_code == 202
        assert cloud.networks.asked == [([] if word == "none" else None, 1)]
        refused(cloud.create(networks=word, version="2.36"), "networks")

    def test_absent_before_237_is_auto(self, cloud: Any) -> None:
        cloud.create(version="2.1")
        assert cloud.networks.asked == [(None, 1)]

    def test_what_is_asked_for_is_kept(self, cloud: Any) -> None:
        networks = [
            {"uuid": NETWORK, "fixed_ip": "fd00:0::5", "tag": "nic1"},
            {"port": PORT},
            {"uuid": NETWORK, "port": OTHER_PORT},
        ]
        key = cloud.boot(networks=networks)
        assert spec_of(cloud, key).networks == [
            NetworkRequest(network_id=NETWORK, fixed_ip="fd00::5", tag="nic1"),
            NetworkRequest(port_id=PORT),
            NetworkRequest(port_id=OTHER_PORT),
        ]

    @pytest.mark.parametrize(
        "network",
        [
            {"port": PORT, "fixed_ip": "10.0.0.5"},
            {"uuid": "not-a-uuid"},
            {"uuid": NETWORK, "fixed_ip": "10.0.0"},
            {"uuid": NETWORK, "tag": "a,b"},
            {"uuid": NETWORK, "tag": ""},
            {"uuid": NETWORK, "more": 1},
            {},
        ],
    )
    def test_refused(self, cloud: Any, network: Any) -> None:
        refused(cloud.create(networks=[network]))

    def test_one_port_twice(self, cloud: Any) -> None:
        refused(cloud.create(networks=[{"port": PORT}, {"port": PORT}]), "twice")

    @pytest.mark.parametrize(
        ("version", "status"), [("2.31", 400), ("2.32", 202), ("2.37", 400), ("2.42", 202)]
    )
    def test_tags_come_and_go_with_the_version(self, cloud: Any, version: str, status: int) -> None:
        networks = [{"uuid": NETWORK, "tag": "nic1"}]
        assert cloud.create(networks=networks, version=version).status_code == status


class TestSecurityGroups:
    def test_what_is_asked_for_is_kept_and_shown(self, cloud: Any) -> None:
        cloud.networks.groups = ("default", "web")
        asked = [{"name": "web"}, {"name": "default"}, {"name": "web"}]
        result = cloud.create(security_groups=asked)
        server = result.json["server"]
        assert server["security_groups"] == [{"name": "web"}, {"name": "default"}]
        assert spec_of(cloud, server["id"]).security_groups == ["web", "default"]

    def test_unknown(self, cloud: Any) -> None:
        refused(cloud.create(security_groups=[{"name": "web"}]), "Security group web not found")
        assert cloud.get("/servers")["servers"] == []


class TestDisks:
    BOOT = {
        "uuid": IMAGE,
        "source_type": "image",
        "destination_type": "local",
        "boot_index": 0,
        "delete_on_termination": True,
    }

    def test_the_boot_disk_next_to_the_image(self, cloud: Any) -> None:
        assert cloud.create(block_device_mapping_v2=[self.BOOT]).status_code == 202
        as_it_is = {**self.BOOT, "disk_bus": "virtio", "device_type": "disk"}
        assert cloud.create(block_device_mapping_v2=[as_it_is]).status_code == 202

    @pytest.mark.parametrize(
        "change",
        [
            {"source_type": "volume"},
            {"destination_type": "volume"},
            {"source_type": "snapshot"},
            {"source_type": "blank"},
            {"boot_index": 1},
            {"boot_index": None},
            {"uuid": BIG_IMAGE},
            {"volume_size": 5},
            {"disk_bus": "scsi"},
            {"device_type": "cdrom"},
            {"tag": "disk"},
        ],
    )
    def test_anything_else_is_refused(self, cloud: Any, change: Any) -> None:
        result = cloud.create(block_device_mapping_v2=[{**self.BOOT, **change}])
        refused(result, "Block Device Mapping is Invalid")

    def test_neither_image_nor_disk(self, cloud: Any) -> None:
        refused(cloud.create(imageRef=""), "imageRef")


class TestFlavorAndImage:
    def test_unknown(self, cloud: Any) -> None:
        refused(cloud.create(flavorRef="nope"), "Flavor nope could not be found.")
        refused(cloud.create(imageRef=PORT), f"Image {PORT} could not be found.")
        refused(cloud.create(imageRef="cirros"), "imageRef")
        assert cloud.wakeup.reservations == []

    def test_too_small_for_the_image(self, cloud: Any) -> None:
        refused(cloud.create(imageRef=BIG_IMAGE), "memory is too small for requested image")
        cloud.images.images[BIG_IMAGE].min_ram = 0
        cloud.images.images[BIG_IMAGE].min_disk = 2
        refused(cloud.create(imageRef=BIG_IMAGE), "disk is too small for requested image")
        cloud.images.images[BIG_IMAGE].min_disk = 1
        cloud.images.images[BIG_IMAGE].size = 2**30 + 1
        refused(cloud.create(imageRef=BIG_IMAGE), "disk is too small for requested image")
        cloud.images.images[BIG_IMAGE].size = 2**30
        assert cloud.create(imageRef=BIG_IMAGE).status_code == 202

    def test_private_flavor_needs_access(self, cloud: Any) -> None:
        private = Flavor(flavorid="2", name="private", vcpus=1, memory_mb=64, is_public=False)
        cloud.database.transaction(lambda conn: flavors.create(conn, private))
        refused(cloud.create(flavorRef="2", user="u:p"), "Flavor 2 could not be found.")
        cloud.database.transaction(lambda conn: flavors.add_access(conn, "2", "p"))
        assert cloud.create(flavorRef="2", user="u:p").status_code == 202

    def test_number_as_flavor(self, cloud: Any) -> None:
        assert cloud.create(flavorRef=1).status_code == 202


class TestZones:
    def test_forced_host_is_for_administrators_v10(self, cloud: Any) -> None:
        result = cloud.create(user="u:p", availability_zone="nova:undefined")
        refused(result, "forced_host", status=403)
        assert cloud.row("instances") is None

    def test_forced_host_goes_into_the_request(self, cloud: Any) -> None:
        spec = spec_of(cloud, cloud.boot(availability_zone="nova:H1:n1"))
        assert (spec.availability_zone, spec.force_host, spec.force_node) == ("nova", "H1", "n1")
        spec = spec_of(cloud, cloud.boot(availability_zone="mars:h1"))
        assert spec.force_host == "h1"

    def test_unknown_zone_v10(self, cloud: Any) -> None:
        refused(cloud.create(availability_zone="mars"), "availability zone is not available")

    @pytest.mark.parametrize("zone", ["", "nova:", "nova:h:", "::", "a:b:c:d", "x" * 300, " nova"])
    def test_refused_v09(self, cloud: Any, zone: str) -> None:
        refused(cloud.create(availability_zone=zone), "availability_zone")

    def test_default_schedule_zone(self, cloud: Any) -> None:
        cloud.conf.set_override("default_schedule_zone", "nova")
        key = cloud.boot()
        assert spec_of(cloud, key).availability_zone == "nova"
        shown = cloud.get(f"/servers/{key}")["server"]["OS-EXT-AZ:availability_zone"]
        assert shown == "nova"


class TestSizes:
    @pytest.mark.parametrize(
        ("length", "status"), [(65532, 202), (65535, 400), (65536, 400), (0, 202)]
    )
    def test_user_data_v30(self, cloud: Any, length: int, status: int) -> None:
        # 65535 characters are allowed, but no base64 text has that length.
        assert cloud.create(user_data="A" * length).status_code == status

    def test_user_data_null_and_nonsense_v30(self, cloud: Any) -> None:
        assert cloud.create(user_data=None).status_code == 202
        refused(cloud.create(user_data="not base64!"), "user_data")

    @pytest.mark.parametrize(
        ("metadata", "status"),
        [
            ({"k" * 255: "v" * 255}, 202),
            ({"k" * 256: "v"}, 400),
            ({"": "v"}, 400),
            ({"k": "v" * 256}, 400),
            ({"k": 1}, 400),
            ({"k": None}, 400),
            ({"Role": "a", "role": "b"}, 202),
            ({f"k{n}": "v" for n in range(128)}, 202),
            ({f"k{n}": "v" for n in range(129)}, 403),
        ],
    )
    def test_metadata_v30(self, cloud: Any, metadata: Any, status: int) -> None:
        result = cloud.create(metadata=metadata)
        assert result.status_code == status, result.text
        if status == 202:
            key = result.json["server"]["id"]
            assert cloud.get(f"/servers/{key}")["server"]["metadata"] == metadata

    @pytest.mark.parametrize(
        ("tags", "status"),
        [
            (["a" * 60], 202),
            (["a" * 61], 400),
            ([""], 400),
            (["a/b"], 400),
            (["a,b"], 400),
            ([f"t{n}" for n in range(50)], 202),
            ([f"t{n}" for n in range(51)], 400),
        ],
    )
    def test_tags_v30(self, cloud: Any, tags: list[str], status: int) -> None:
        assert cloud.create(tags=tags, version="2.52").status_code == status

    def test_tags_only_from_252(self, cloud: Any) -> None:
        refused(cloud.create(tags=["a"], version="2.51"), "tags")


@pytest.mark.parametrize(
    "field",
    [
        {"key_name": "mine"},
        {"personality": [{"path": "/etc/motd", "contents": "aGk="}]},
        {"nonsense": 1},
        {"accessIPv4": "300.1.1.1"},
        {"config_drive": "maybe"},
        {"OS-DCF:diskConfig": "auto"},
        {"security_groups": [{"name": ""}]},
        {"host": "h1"},
    ],
)
def test_what_cannot_be_had_is_refused(cloud: Any, field: dict[str, Any]) -> None:
    refused(cloud.create(**field))
    assert cloud.row("instances") is None


def test_description_is_the_name_until_218(cloud: Any) -> None:
    key = cloud.create(name="web", version="2.18").json["server"]["id"]
    assert cloud.get(f"/servers/{key}", version="2.19")["server"]["description"] == "web"
    refused(cloud.create(description="d", version="2.18"), "description")


@pytest.mark.parametrize("key", ["os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"])
def test_hints_under_both_keys(cloud: Any, key: str) -> None:
    body = {
        "server": {"name": "x", "flavorRef": "1", "imageRef": IMAGE},
        key: {"different_host": [PORT], "custom": "x"},
    }
    result = cloud.call("POST", "/servers", body)
    assert result.status_code == 202
    spec = spec_of(cloud, result.json["server"]["id"])
    assert spec.scheduler_hints == {"different_host": [PORT], "custom": "x"}


def test_hint_at_a_group_that_does_not_exist(cloud: Any) -> None:
    refused(cloud.create(hints={"group": PORT}), f"Instance group {PORT} could not be found.")
    refused(cloud.create(hints={"same_host": "not-a-uuid"}), "same_host")


def test_a_token_without_a_project_cannot_boot(cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from novalite import context
    from novalite.api import auth

    def projectless(*_args: Any) -> context.RequestContext:
        return context.RequestContext(user_id="u", roles=["admin"])

    monkeypatch.setattr(auth.NoAuth, "authenticate", projectless)
    refused(cloud.create(), "project", status=403)


class TestDestination:
    """host and hypervisor_hostname: 2.74."""

    @pytest.mark.parametrize(
        "asked",
        [
            {"host": "h1"},
            {"host": "H1"},
            {"hypervisor_hostname": "h1"},
            {"host": "h1", "hypervisor_hostname": "h1"},
        ],
    )
    def test_goes_into_the_request(self, cloud: Any, asked: dict[str, str]) -> None:
        cloud.add_node("h1")
        result = cloud.create(version="2.74", **asked)
        assert result.status_code == 202, result.text
        spec = spec_of(cloud, result.json["server"]["id"])
        wanted = (asked.get("host"), asked.get("hypervisor_hostname"))
        assert (spec.requested_host, spec.requested_node) == wanted
        assert (spec.force_host, spec.force_node) == (None, None)

    @pytest.mark.parametrize(
        "asked",
        [
            {"host": "nope"},
            {"hypervisor_hostname": "nope"},
            {"hypervisor_hostname": "H1"},
            {"host": "h1", "hypervisor_hostname": "h2"},
        ],
    )
    def test_that_does_not_exist(self, cloud: Any, asked: dict[str, str]) -> None:
        cloud.add_node("h1")
        cloud.add_node("h2")
        name = asked.get("host") or asked["hypervisor_hostname"]
        refused(cloud.create(version="2.74", **asked), f"Compute host {name} could not be found.")

    @pytest.mark.parametrize("asked", [{"host": ""}, {"host": "a b"}, {"host": None}])
    def test_of_a_wrong_form(self, cloud: Any, asked: dict[str, Any]) -> None:
        refused(cloud.create(version="2.74", **asked), "host")

    def test_is_for_administrators(self, cloud: Any) -> None:
        cloud.add_node("h1")
        for name in ("h1", "nope"):  # a user is not told which hosts there are
            result = cloud.create(user="u:p", version="2.74", host=name)
            refused(result, "compute:servers:create:requested_destination", status=403)

    def test_one_way_of_naming_a_host_excludes_the_other(self, cloud: Any) -> None:
        cloud.add_node("h1")
        result = cloud.create(version="2.74", host="h1", availability_zone="nova:h1")
        refused(result, "mutually exclusive")
        assert cloud.create(version="2.74", host="h1", availability_zone="nova").status_code == 202


class TestTrustedCertificates:
    @pytest.mark.parametrize("value", [[], ["a", "a"], [""], [1], ["x" * 256], "a"])
    def test_wrong(self, cloud: Any, value: Any) -> None:
        result = cloud.create(version="2.63", trusted_image_certificates=value)
        refused(result, "trusted_image_certificates")

    def test_fifty_and_no_more(self, cloud: Any) -> None:
        for count, status in ((50, 202), (51, 400)):
            names = [f"c{n}" for n in range(count)]
            result = cloud.create(version="2.63", trusted_image_certificates=names)
            assert result.status_code == status


@pytest.mark.parametrize(
    ("version", "destination", "words"),
    [
        ("2.66", "volume", "volume_type"),
        ("2.67", "local", "volume_type with destination_type=local"),
        ("2.67", "volume", "non-zero size"),
    ],
)
def test_volume_type_of_a_disk(cloud: Any, version: str, destination: str, words: str) -> None:
    disk = {
        **{"source_type": "image", "destination_type": destination, "boot_index": 0},
        **{"uuid": IMAGE, "volume_type": "fast"},
    }
    refused(cloud.create(version=version, block_device_mapping_v2=[disk]), words)


class TestUnknownCommit:
    """The commit's answer got lost (rule 15)."""

    def test_it_happened(self, cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        real = cloud.database.transaction

        def lossy(work: Any) -> Any:
            real(work)
            raise exception.DatabaseUnavailable()

        monkeypatch.setattr(cloud.database, "transaction", lossy)
        result = cloud.create()
        assert result.status_code == 202
        assert cloud.get(f"/servers/{result.json['server']['id']}")["server"]["status"] == "BUILD"
        assert cloud.call("DELETE", f"/servers/{result.json['server']['id']}").status_code == 204

    def test_it_did_not_happen(self, cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def away(_work: Any) -> Any:
            raise exception.DatabaseUnavailable()

        monkeypatch.setattr(cloud.database, "transaction", away)
        assert cloud.create().status_code == 503
        assert cloud.wakeup.reservations == []
