# SPDX-License-Identifier: Apache-2.0
"""The client of block storage against the stand-in."""

import dataclasses
from typing import Any

import pytest
import requests
from falcon import testing

from novalite import context, exception
from novalite.neighbors import app
from novalite.objects.block_device import BlockDevice
from novalite.volume import client, errors
from tests.unit.neighbors.support import ENDPOINTS, Cloud, Wire

SERVER = "11111111-0000-0000-0000-000000000001"
FROM_IMAGE = BlockDevice("image", volume_size=1, boot_index=0, device_name="/dev/vda")


class World:
    """The client, and what block storage holds."""

    def __init__(self, cloud: Cloud, wire: Wire):
        self.cloud, self.wire = cloud, wire
        self.waits: list[float] = []
        self.on_wait = lambda: None
        self.client = client.VolumeClient(cloud.conf, self._wait)
        self.ctxt = context.RequestContext(
            user_id="u", project_id=cloud.project_id("demo"), overwrite=False
        )

    def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.on_wait()

    def of_kind(self, kind: str) -> list[Any]:
        with self.cloud.store.read() as tx:
            return tx.find(kind)

    @property
    def volumes(self) -> dict[str, str]:
        return {doc["id"]: doc["status"] for doc in self.of_kind("volume")}

    @property
    def hosts(self) -> list[str]:
        return [doc["connector"]["host"] for doc in self.of_kind("attachment")]

    def change(self, volume_id: str, **values: Any) -> None:
        with self.cloud.store.write() as tx:
            doc = tx.get("volume", volume_id)
            assert doc is not None
            tx.replace("volume", {**doc, **values})

    def image(self) -> BlockDevice:
        with self.cloud.store.read() as tx:
            found = tx.find("image", name="cirros")[0]["id"]
        return dataclasses.replace(FROM_IMAGE, source_id=found)

    def volume(self, project: str = "demo", **values: Any) -> BlockDevice:
        """Return a device for a volume that a user has made."""
        path = f"/v3/{self.cloud.project_id(project)}/volumes"
        body = {"volume": {"size": 1}}
        made = self.cloud.user("admin", project)("volume", "POST", path, body, 202)["volume"]
        self.change(made["id"], **{"bootable": True, **values})
        return BlockDevice(
            "volume",
            source_id=made["id"],
            volume_id=made["id"],
            boot_index=0,
            device_name="/dev/vda",
        )

    def attach(self, *devices: BlockDevice, host: str = "host1", **kw: Any) -> list[BlockDevice]:
        return self.client.attach(
            self.ctxt, SERVER, host, devices, kw.pop("cancelled", lambda: False), **kw
        )

    def making_takes(self, seconds: float) -> None:
        self.cloud.conf.set_override("volume_create_time", seconds, "neighbors")
        made = app.make_volume(self.cloud.conf, self.cloud.store, ENDPOINTS)
        self.cloud.volume = testing.TestClient(made)


@pytest.fixture
def world(cloud: Cloud, wire: Wire) -> World:
    return World(cloud, wire)


# -- check


def test_a_volume_that_can_be_had(world: World) -> None:
    meta = {"image_id": "i", "image_name": "n", "min_ram": "64", "os_distro": "cirros"}
    device = world.volume(image=meta)
    image = world.client.check(world.ctxt, [device])
    assert (image.id, image.name, image.min_ram) == ("", "n", 64)
    assert image.properties == {"os_distro": "cirros"}
    assert device.volume_size == 1


def test_volumes_that_cannot_be_had(world: World) -> None:
    missing = dataclasses.replace(world.volume(), volume_id="nothing")
    cases: list[tuple[BlockDevice, type[Exception]]] = [
        (missing, errors.InvalidBDMVolume),
        (world.volume("admin"), errors.InvalidBDMVolume),
        (world.volume(bootable=False), errors.InvalidBDMVolumeNotBootable),
        (world.volume(status="in-use"), errors.InvalidVolume),
        (dataclasses.replace(FROM_IMAGE, volume_type="x"), errors.VolumeTypeInBodyNotFound),
    ]
    for device, expected in cases:
        with pytest.raises(expected) as error:
            world.client.check(world.ctxt, [device])
        assert isinstance(error.value, exception.Invalid)
    world.client.check(world.ctxt, [dataclasses.replace(FROM_IMAGE, volume_type="lvmdriver-1")])


def test_extra_volumes_need_not_be_bootable(world: World) -> None:
    device = dataclasses.replace(world.volume(bootable=False), boot_index=None)
    world.client.check(world.ctxt, [device])


# -- attach


def test_a_root_volume_from_an_image(world: World) -> None:
    made = []
    [device] = world.attach(world.image(), on_made=lambda: made.append(world.hosts))
    assert made == [[]]
    assert world.volumes == {device.volume_id: "in-use"}
    [volume] = world.of_kind("volume")
    assert volume["project_id"] == world.ctxt.project_id
    assert (world.hosts, device.path) == (
        ["host1"],
        f"/dev/stack-volumes/volume-{device.volume_id}",
    )


def test_a_repeat_makes_no_second_volume(world: World) -> None:
    device = world.image()
    first = world.attach(device)
    second = world.attach(device, host="host2")
    assert [d.volume_id for d in first] == [d.volume_id for d in second]
    assert (len(world.volumes), world.hosts) == (1, ["host2"])


def test_an_answer_that_got_lost_makes_no_second_volume(world: World) -> None:
    def lose(request: requests.PreparedRequest) -> None:
        if request.method == "POST" and str(request.path_url).endswith("/volumes"):
            raise requests.exceptions.ConnectionError("cut off")

    world.wire.after = lose
    with pytest.raises(exception.NeighborUnavailable):
        world.attach(world.image())
    world.wire.after = lambda request: None
    assert len(world.volumes) == 1
    [device] = world.attach(world.image())
    assert world.volumes == {device.volume_id: "in-use"}


def test_a_volume_in_error_is_made_anew(world: World) -> None:
    [device] = world.attach(world.image())
    world.client.detach(world.ctxt, SERVER, [device], "host1")
    world.change(str(device.volume_id), status="error")
    [other] = world.attach(world.image())
    assert world.volumes == {other.volume_id: "in-use"}
    assert other.volume_id != device.volume_id


def test_it_waits_while_a_volume_is_made(world: World) -> None:
    world.making_takes(3600)

    def ready() -> None:
        if len(world.waits) == 7:
            world.change(world.of_kind("volume")[0]["id"], ready_at=0.0)

    world.on_wait = ready
    world.attach(world.image())
    assert world.waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0])


def test_it_does_not_wait_for_ever(world: World) -> None:
    world.making_takes(3600)
    world.cloud.conf.set_override("block_device_allocate_retries", 2)
    with pytest.raises(errors.VolumeNotCreated, match="3 attempts. And its status is creating"):
        world.attach(world.image())
    assert len(world.waits) == 2
    world.client.release(world.ctxt, SERVER, [world.image()], built=False)
    assert world.volumes == {}


def test_a_cancelled_build_does_not_wait(world: World) -> None:
    world.making_takes(3600)
    with pytest.raises(exception.BuildCancelled):
        world.attach(world.image(), cancelled=lambda: bool(world.waits))
    assert len(world.waits) == 1


def test_a_volume_that_went_to_another_server(world: World) -> None:
    device = world.volume()
    world.client.attach(world.ctxt, "other", "host1", [device], lambda: False)
    with pytest.raises(errors.InvalidVolume, match="Currently in 'in-use' status") as caught:
        world.attach(device)
    assert exception.is_of_request(caught.value), "no other host would fare better"
    assert len(world.hosts) == 1


def test_a_volume_that_was_deleted_meanwhile(world: World) -> None:
    device = dataclasses.replace(world.volume(), volume_id="gone")
    with pytest.raises(errors.InvalidVolume, match="Currently in 'deleted' status"):
        world.attach(device)


def test_a_volume_that_is_still_taken_off_may_come_to_another_host(world: World) -> None:
    device = world.volume()
    world.change(str(device.volume_id), status="detaching")
    with pytest.raises(errors.VolumeNotCreated, match="status is detaching"):
        world.attach(device)


# -- giving back


@pytest.mark.parametrize("delete", [False, True])
def test_a_server_that_ran_keeps_what_it_may(world: World, delete: bool) -> None:
    root = dataclasses.replace(world.image(), delete_on_termination=delete)
    extra = dataclasses.replace(
        world.volume(), boot_index=None, device_name="/dev/vdb", delete_on_termination=delete
    )
    devices = world.attach(root, extra)
    for _again in range(2):
        world.client.release(world.ctxt, SERVER, devices, built=True)
    left = {} if delete else {str(each.volume_id): "available" for each in devices}
    assert (world.volumes, world.hosts) == (left, [])


def test_a_server_that_never_ran_leaves_only_what_was_brought(world: World) -> None:
    extra = dataclasses.replace(
        world.volume(), boot_index=None, device_name="/dev/vdb", delete_on_termination=True
    )
    world.attach(world.image(), extra)
    world.client.release(world.ctxt, SERVER, [world.image(), extra], built=False)
    assert world.volumes == {extra.volume_id: "available"}


def test_a_volume_that_was_made_twice_goes_with_the_server(world: World) -> None:
    [device] = world.attach(world.image())
    twin = world.volume(metadata={client.SERVER_KEY: SERVER, client.DEVICE_KEY: "/dev/vda"})
    world.client.release(world.ctxt, SERVER, [device], built=True)
    assert world.volumes == {device.volume_id: "available"}
    assert twin.volume_id not in world.volumes


def test_a_host_takes_only_its_own_attachments(world: World) -> None:
    device = world.image()
    world.attach(device, host="host2")
    world.client.detach(world.ctxt, SERVER, [device], "host1")
    assert world.hosts == ["host2"]
    world.client.detach(world.ctxt, SERVER, [device], "host2")
    assert world.hosts == []


def test_no_block_storage(world: World) -> None:
    world.cloud.conf.set_override("catalog_info", "other::publicURL", "cinder")
    with pytest.raises(exception.NeighborUnavailable):
        world.client.check(world.ctxt, [world.image(), world.volume()])
    world.cloud.conf.set_override("auth_strategy", "noauth2", "api")
    world.cloud.conf.set_override("auth_url", None, "service_user")
    with pytest.raises(exception.InvalidInput):
        world.client.check(world.ctxt, [world.image()])
    world.client.release(world.ctxt, SERVER, [world.image()], built=True)


def test_the_endpoint_can_be_given(world: World) -> None:
    template = "http://volume.test/v3/%(project_id)s"
    world.cloud.conf.set_override("endpoint_template", template, "cinder")
    world.cloud.conf.set_override("catalog_info", "other::publicURL", "cinder")
    assert world.attach(world.image())
