# SPDX-License-Identifier: Apache-2.0
"""POST /servers with volumes, and how they are shown."""

from typing import Any

import pytest

from novalite import exception
from novalite.api import block_devices
from novalite.api.block_devices import Disks
from novalite.db import instances
from novalite.objects import base, capacity
from novalite.objects.block_device import BlockDevice
from novalite.objects.flavor import Flavor
from novalite.objects.instance import Instance
from novalite.objects.request_spec import ImageMeta, RequestSpec
from novalite.volume import errors
from tests.unit.api.cloud import BIG_IMAGE, IMAGE

VOLUME = "cccccccc-0000-0000-0000-000000000001"
OTHER = "cccccccc-0000-0000-0000-000000000002"
ROOT = {
    "uuid": VOLUME,
    "source_type": "volume",
    "destination_type": "volume",
    "boot_index": 0,
}
COPY = {**ROOT, "uuid": IMAGE, "source_type": "image", "volume_size": 5}
LOCAL = {**ROOT, "uuid": IMAGE, "source_type": "image", "destination_type": "local"}
EXTRA = {**ROOT, "uuid": OTHER, "boot_index": -1}


@pytest.fixture(autouse=True)
def known(cloud: Any) -> None:
    cloud.volumes.known = (VOLUME, OTHER)


def refused(result: Any, words: str) -> None:
    assert result.status_code == 400, result.text
    assert words in result.json["badRequest"]["message"]


def stored(cloud: Any, key: str) -> tuple[Instance, RequestSpec]:
    spec: RequestSpec = base.decode(cloud.row("request_specs", instance_uuid=key).spec)
    return cloud.database.read(lambda conn: instances.get(conn, key)), spec


def boot(cloud: Any, *devices: Any, image: str = "", **kw: Any) -> tuple[Instance, RequestSpec]:
    result = cloud.create(imageRef=image, block_device_mapping_v2=list(devices), **kw)
    assert result.status_code == 202, result.text
    return stored(cloud, result.json["server"]["id"])


class TestWhatIsStored:
    def test_a_volume_to_boot_from_v02(self, cloud: Any) -> None:
        cloud.volumes.image = ImageMeta(name="cirros", min_ram=64)
        server, spec = boot(cloud, ROOT)
        [device] = server.block_devices
        assert (device.volume_id, device.device_name, device.is_root) == (VOLUME, "/dev/vda", True)
        assert (server.image_ref, spec.volume_backed, spec.image.name) == ("", True, "cirros")
        assert capacity.need(spec.flavor, spec.volume_backed).disk_gb == 0

    def test_a_copy_of_an_image_to_boot_from(self, cloud: Any) -> None:
        for image in ("", IMAGE):
            server, spec = boot(cloud, {**COPY, "delete_on_termination": True}, image=image)
            [device] = server.block_devices
            assert (device.source_id, device.volume_id, device.volume_size) == (IMAGE, None, 5)
            assert device.delete_on_termination
            assert (server.image_ref, spec.volume_backed, spec.image.id) == ("", True, IMAGE)

    def test_an_image_with_volumes_beside_it(self, cloud: Any) -> None:
        blank = {"source_type": "blank", "destination_type": "volume", "volume_size": "2"}
        server, spec = boot(cloud, LOCAL, EXTRA, blank, image=IMAGE)
        assert (server.image_ref, spec.volume_backed) == (IMAGE, False)
        assert [(d.source_type, d.device_name, d.volume_size) for d in server.block_devices] == [
            ("volume", "/dev/vdb", None),
            ("blank", "/dev/vdc", 2),
        ]

    def test_the_old_syntax(self, cloud: Any) -> None:
        old = {"volume_id": VOLUME, "device_name": "vda", "delete_on_termination": "1"}
        result = cloud.create(imageRef="", block_device_mapping=[old])
        server, spec = stored(cloud, result.json["server"]["id"])
        assert spec.volume_backed and server.block_devices[0].delete_on_termination
        extra = {"volume_id": VOLUME, "device_name": "/dev/vdc"}
        result = cloud.create(block_device_mapping=[extra])
        server, spec = stored(cloud, result.json["server"]["id"])
        assert not spec.volume_backed
        assert [device.device_name for device in server.block_devices] == ["/dev/vdc"]

    def test_a_server_without_volumes_asks_nobody(self, cloud: Any) -> None:
        server, _spec = boot(cloud, LOCAL, image=IMAGE)
        assert (server.block_devices, cloud.volumes.asked) == ([], 0)
        assert cloud.row("instances", uuid=server.uuid).block_devices is None

    def test_a_small_root_disk_of_the_flavor_does_not_matter(self, cloud: Any) -> None:
        cloud.images.images[IMAGE] = ImageMeta(id=IMAGE, min_disk=5)
        boot(cloud, COPY)
        refused(cloud.create(), "disk is too small for requested image")


class TestRefused:
    @pytest.mark.parametrize(
        ("devices", "words"),
        [
            ([{**ROOT, "uuid": IMAGE}], f"failed to get volume {IMAGE}."),
            ([{**ROOT, "boot_index": 1}], "Boot sequence for the instance and image/block device"),
            ([EXTRA], "Boot sequence"),
            ([ROOT, {**EXTRA, "boot_index": 0}], "Boot sequence"),
            ([ROOT, {**EXTRA, "boot_index": 2}], "Boot sequence"),
            ([ROOT, {**EXTRA, "uuid": VOLUME}], "One volume cannot be used twice."),
            ([{**ROOT, "source_type": "snapshot"}], f"failed to get snapshot {VOLUME}."),
            ([{**COPY, "volume_size": 0}], "need to have a non-zero size specified"),
            ([{**COPY, "volume_size": None}], "need to have a non-zero size specified"),
            ([{**COPY, "volume_size": 2**31}], "greater than the maximum of 2147483647"),
            ([{**COPY, "volume_size": "10000000000"}], "does not match"),
            ([{**COPY, "uuid": VOLUME}], f"Image {VOLUME} could not be found."),
            ([{**COPY, "uuid": BIG_IMAGE}], "memory is too small"),
            ([LOCAL], "imageRef must name the image"),
            ([{**ROOT, "destination_type": "local"}], "Mapping volume to local is not supported."),
            ([{**ROOT, "uuid": ""}], "Missing device UUID."),
            ([{"uuid": VOLUME, "boot_index": 0}], "Invalid source_type field."),
            ([{**ROOT, "disk_bus": "scsi"}], "disk_bus"),
            ([{**ROOT, "guest_format": "swap"}], "guest_format"),
            ([{**ROOT, "no_device": True}], "no_device"),
            ([ROOT, {**EXTRA, "device_name": "/dev/vda"}], "(/dev/vda) is in use."),
            ([ROOT, {**EXTRA, "device_name": "sda"}], "device path (sda) is invalid."),
            (
                [ROOT, {"source_type": "blank", "destination_type": "volume"}],
                "Blank volumes (source: 'blank', dest: 'volume') need to have non-zero size",
            ),
            (
                [{"source_type": "blank", "destination_type": "volume", "volume_size": 1}],
                "Boot sequence",
            ),
            ([ROOT, {"source_type": "blank", "uuid": OTHER}], "Invalid device UUID."),
        ],
    )
    def test_by_a_text_of_nova(self, cloud: Any, devices: Any, words: str) -> None:
        refused(cloud.create(imageRef="", block_device_mapping_v2=devices), words)
        assert cloud.row("instances") is None

    @pytest.mark.parametrize(
        ("old", "words"),
        [
            ({"snapshot_id": VOLUME}, "failed to get snapshot"),
            ({"device_name": "vda"}, "Missing device UUID."),
            ({"volume_id": VOLUME, "no_device": True}, "no_device"),
            ({"volume_id": VOLUME, "device_name": "vdb"}, "Boot sequence"),
        ],
    )
    def test_in_the_old_syntax(self, cloud: Any, old: Any, words: str) -> None:
        refused(cloud.create(imageRef="", block_device_mapping=[old]), words)

    def test_both_syntaxes_at_once(self, cloud: Any) -> None:
        old = [{"volume_id": VOLUME}]
        result = cloud.create(block_device_mapping=old, block_device_mapping_v2=[ROOT])
        refused(result, "Using different block_device_mapping syntaxes is not allowed")

    def test_one_volume_for_several_servers(self, cloud: Any) -> None:
        result = cloud.create(imageRef="", block_device_mapping_v2=[ROOT], max_count=2)
        refused(result, "Cannot attach one or more volumes to multiple instances")
        result = cloud.create(imageRef="", block_device_mapping_v2=[COPY], max_count=2)
        assert result.status_code == 202

    def test_a_volume_smaller_than_its_image(self, cloud: Any) -> None:
        cloud.images.images[IMAGE] = ImageMeta(id=IMAGE, min_disk=6)
        result = cloud.create(imageRef="", block_device_mapping_v2=[COPY])
        refused(result, "Volume size is 5368709120 bytes, minimum size is 6442450944 bytes.")
        cloud.images.images[IMAGE] = ImageMeta(id=IMAGE, size=6 * 2**30)
        result = cloud.create(imageRef="", block_device_mapping_v2=[COPY])
        refused(result, "Volume is too small for requested image.")

    def test_what_block_storage_says(self, cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def away(*_args: Any) -> None:
            raise exception.NeighborUnavailable(service="block storage")

        monkeypatch.setattr(cloud.volumes, "check", away)
        assert cloud.create(imageRef="", block_device_mapping_v2=[ROOT]).status_code == 503

    def test_the_rule(self, cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        checked: list[str] = []
        monkeypatch.setattr(cloud.policy, "check", lambda _context, rule, *_: checked.append(rule))
        boot(cloud, ROOT)
        assert "servers:create:attach_volume" in checked
        checked.clear()
        boot(cloud, LOCAL, image=IMAGE)
        assert "servers:create:attach_volume" not in checked


class TestNames:
    def test_local_disks_come_first(self) -> None:
        flavor = Flavor("f", "f", 1, 1, ephemeral_gb=1, swap_mb=1)
        devices = [BlockDevice("blank") for _ in range(3)]
        devices[1].device_name = "/dev/vdd"
        block_devices.name(Disks("i", devices), flavor)
        assert [device.device_name for device in devices] == ["/dev/vde", "/dev/vdd", "/dev/vdf"]

    def test_there_are_only_so_many(self) -> None:
        flavor = Flavor("f", "f", 1, 1)
        block_devices.name(Disks("i", [BlockDevice("blank") for _ in range(25)]), flavor)
        with pytest.raises(errors.InvalidBDMFormat, match="more than 26 disks"):
            block_devices.name(Disks("i", [BlockDevice("blank") for _ in range(26)]), flavor)


class TestShown:
    @pytest.fixture
    def key(self, cloud: Any) -> str:
        tagged = {**EXTRA, "tag": "data", "delete_on_termination": True}
        return boot(cloud, ROOT, tagged)[0].uuid

    def test_in_the_server(self, cloud: Any, key: str) -> None:
        old = cloud.get(f"/servers/{key}", version="2.1")["server"]
        assert old["image"] == ""
        attached = "os-extended-volumes:volumes_attached"
        assert old[attached] == [{"id": VOLUME}, {"id": OTHER}]
        server = cloud.get(f"/servers/{key}", version="2.3")["server"]
        expected = [
            {"id": VOLUME, "delete_on_termination": False},
            {"id": OTHER, "delete_on_termination": True},
        ]
        assert server[attached] == expected
        [listed] = cloud.get("/servers/detail", version="2.3")["servers"]
        assert (listed[attached], listed["image"]) == (expected, "")

    def test_as_attachments(self, cloud: Any, key: str) -> None:
        path = f"/servers/{key}/os-volume_attachments"
        first, second = cloud.get(path, version="2.1")["volumeAttachments"]
        assert first == {"id": VOLUME, "volumeId": VOLUME, "serverId": key, "device": "/dev/vda"}
        newer = cloud.get(f"{path}/{OTHER}", version="2.70")["volumeAttachment"]
        assert newer == {**second, "tag": "data"}
        newest = cloud.get(f"{path}/{OTHER}", version="2.79")["volumeAttachment"]
        assert newest == {**newer, "delete_on_termination": True}
        result = cloud.call("GET", f"{path}/{IMAGE}")
        assert result.status_code == 404
        assert "is not attached to volume" in result.json["itemNotFound"]["message"]

    def test_not_before_it_is_made(self, cloud: Any) -> None:
        key = boot(cloud, COPY)[0].uuid
        assert cloud.get(f"/servers/{key}/os-volume_attachments")["volumeAttachments"] == []
        plain = cloud.boot()
        assert cloud.get(f"/servers/{plain}/os-volume_attachments")["volumeAttachments"] == []

    def test_not_to_others(self, cloud: Any, key: str) -> None:
        path = f"/servers/{key}/os-volume_attachments"
        assert cloud.call("GET", path, user="u:other").status_code == 404


def test_the_next_to_delete_it_gives_volumes_back(cloud: Any) -> None:
    key = boot(cloud, COPY)[0].uuid
    assert cloud.call("DELETE", f"/servers/{key}").status_code == 204
    assert cloud.get(f"/servers/{key}")["server"]["OS-EXT-STS:task_state"] == "deleting"
