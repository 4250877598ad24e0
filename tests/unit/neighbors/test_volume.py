# SPDX-License-Identifier: Apache-2.0
"""Block storage v3 of the stand-ins."""

import logging
from typing import Any

import pytest

from tests.unit.neighbors.support import ENDPOINTS, Cloud, User

NEW = {"OpenStack-API-Version": "volume 3.44"}


class Storage:
    """Block storage as one user reaches it."""

    def __init__(self, cloud: Cloud, user: str = "demo", project: str = "demo"):
        self._user: User = cloud.user(user, project)
        self.project = cloud.project_id(project)

    def __call__(
        self, method: str, path: str, body: Any = None, expect: int = 200, **kw: Any
    ) -> Any:
        kw.setdefault("headers", NEW)
        return self._user("volume", method, f"/v3/{self.project}{path}", body, expect, **kw)

    def make(self, expect: int = 202, **volume: Any) -> Any:
        body = self("POST", "/volumes", {"volume": {"size": 1, **volume}}, expect)
        return body["volume"] if expect == 202 else body["badRequest"]["message"]

    def show(self, volume_id: str) -> Any:
        return self("GET", f"/volumes/{volume_id}")["volume"]

    def attach(self, volume_id: str, server: str = "s", expect: int = 200, **more: Any) -> Any:
        asked = {"volume_uuid": volume_id, "instance_uuid": server, **more}
        body = self("POST", "/attachments", {"attachment": asked}, expect)
        return body["attachment"] if expect == 200 else body["badRequest"]["message"]


@pytest.fixture
def storage(cloud: Cloud) -> Storage:
    return Storage(cloud)


def image_of(cloud: Cloud, **changes: Any) -> str:
    with cloud.store.write() as tx:
        doc = tx.find("image", name="cirros")[0]
        doc.update(changes)
        tx.replace("image", doc)
    return str(doc["id"])


def test_versions_and_the_version_of_an_answer(cloud: Cloud) -> None:
    answer = cloud.volume.simulate_get("/")
    version = answer.json["versions"][0]
    assert answer.status_code == 300
    assert (version["id"], version["version"], version["min_version"]) == ("v3.0", "3.70", "3.0")
    assert cloud.volume.simulate_get("/v3/").status_code == 200
    for asked, told in ((None, "3.0"), ("3.44", "3.44"), ("latest", "3.70")):
        headers = {"OpenStack-API-Version": f"volume {asked}"} if asked else {}
        answer = cloud.volume.simulate_get("/v3/x/volumes", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["OpenStack-API-Version"] == f"volume {told}"
    for asked, status in (("3.71", 406), ("2.0", 400)):
        headers = {"OpenStack-API-Version": f"volume {asked}"}
        assert cloud.volume.simulate_get("/v3/", headers=headers).status_code == status


def test_the_catalogue_names_the_project(cloud: Cloud) -> None:
    project = cloud.project_id("demo")
    catalog = cloud.user("demo", "demo")("identity", "GET", "/v3/auth/catalog")["catalog"]
    urls = {each["type"]: each["endpoints"][0]["url"] for each in catalog}
    assert urls["volumev3"] == urls["block-storage"] == f"{ENDPOINTS.volume}/v3/{project}"


def test_a_volume_comes_and_goes(storage: Storage) -> None:
    made = storage.make(name="data", metadata={"a": "b"})
    assert made["status"] == "creating"
    assert not [key for key in made if key.startswith("os-vol")]
    shown = storage.show(made["id"])
    assert (shown["status"], shown["size"], shown["bootable"]) == ("available", 1, "false")
    assert shown["attachments"] == []
    assert [v["id"] for v in storage("GET", "/volumes")["volumes"]] == [made["id"]]
    query = "metadata={'a': 'b'}"
    found = storage("GET", "/volumes/detail", query_string=query)["volumes"]
    assert [v["name"] for v in found] == ["data"]
    found = storage("GET", "/volumes/detail", query_string="metadata={'a': 'c'}")["volumes"]
    assert found == []
    assert storage("GET", "/limits")["limits"]["absolute"]["totalGigabytesUsed"] == 1
    storage("DELETE", f"/volumes/{made['id']}", expect=202)
    storage("GET", f"/volumes/{made['id']}", expect=404)


def test_a_volume_from_an_image(
    cloud: Cloud, storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    image = image_of(cloud, min_disk=2)
    assert "smaller than the image minDisk size 2GB" in storage.make(400, imageRef=image)
    shown = storage.show(storage.make(size=2, imageRef=image)["id"])
    assert shown["bootable"] == "true"
    assert shown["volume_image_metadata"]["image_id"] == image
    assert "Image download 0.00 MB at " in caplog.text
    assert "Invalid image identifier" in storage.make(400, imageRef="nothing")


def test_a_volume_takes_its_time(cloud: Cloud) -> None:
    from falcon import testing

    from novalite.neighbors import app

    cloud.conf.set_override("volume_create_time", 3600.0, "neighbors")
    cloud.volume = testing.TestClient(app.make_volume(cloud.conf, cloud.store, ENDPOINTS))
    storage = Storage(cloud)
    made = storage.make()
    assert storage.show(made["id"])["status"] == "creating"
    assert "current status is creating" in storage.attach(made["id"], expect=400)


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        ({"size": 0}, "must be an integer and greater than 0"),
        ({"size": "x"}, "must be an integer and greater than 0"),
        ({"snapshot_id": "s"}, "snapshot_id cannot be had here"),
        ({"multiattach": True}, "multiattach"),
        ({"colour": "red"}, "'colour' was unexpected"),
        ({"metadata": {"a": 1}}, "metadata"),
    ],
)
def test_what_a_volume_cannot_be(storage: Storage, volume: Any, words: str) -> None:
    assert words in storage.make(400, **volume)


def test_others_do_not_see_it(cloud: Cloud, storage: Storage) -> None:
    volume = storage.make()["id"]
    admin = Storage(cloud, "admin", "admin")
    assert admin("GET", "/volumes")["volumes"] == []
    found = admin("GET", "/volumes/detail", query_string="all_tenants=1")["volumes"]
    assert [v["os-vol-host-attr:host"] for v in found] == ["neighbors@lvmdriver-1#lvmdriver-1"]
    assert admin.show(volume)["id"] == volume
    other = Storage(cloud)
    other.project = cloud.project_id("admin")
    other("GET", "/volumes", expect=400)
    foreign = Storage(cloud, "admin", "admin").make()["id"]
    storage("GET", f"/volumes/{foreign}", expect=404)


def test_attaching_in_three_steps(cloud: Cloud, storage: Storage) -> None:
    volume = storage.make()["id"]
    made = storage.attach(volume)
    assert (made["status"], storage.show(volume)["status"]) == ("reserved", "reserved")
    assert "current status is reserved" in storage.attach(volume, "other", expect=400)
    storage("DELETE", f"/volumes/{volume}", expect=400)
    path = f"/attachments/{made['id']}"
    connector = {"host": "compute1", "mountpoint": "/dev/vda"}
    body = {"attachment": {"connector": connector}}
    info = storage("PUT", path, body)["attachment"]["connection_info"]
    assert info["device_path"].endswith(volume)
    assert storage.show(volume)["status"] == "attaching"
    storage("POST", f"{path}/action", {"os-complete": None}, 204)
    shown = Storage(cloud, "admin", "demo").show(volume)
    [item] = shown["attachments"]
    assert shown["status"] == "in-use"
    assert (item["server_id"], item["host_name"], item["device"], item["attachment_id"]) == (
        "s",
        "compute1",
        "/dev/vda",
        made["id"],
    )
    found = storage("GET", "/attachments", query_string="instance_id=s")["attachments"]
    assert [each["volume_id"] for each in found] == [volume]
    assert storage("DELETE", path)["attachments"] == []
    assert storage.show(volume)["status"] == "available"
    storage("GET", path, expect=404)


def test_attachments_need_their_version(storage: Storage) -> None:
    old = {"OpenStack-API-Version": "volume 3.26"}
    storage("GET", "/attachments", expect=404, headers=old)
    made = storage.attach(storage.make()["id"], connector={"host": "h"})
    action = f"/attachments/{made['id']}/action"
    headers = {"OpenStack-API-Version": "volume 3.43"}
    storage("POST", action, {"os-complete": None}, 404, headers=headers)


def test_actions(cloud: Cloud, storage: Storage) -> None:
    volume = storage.make()["id"]
    path = f"/volumes/{volume}/action"
    storage("POST", path, {"os-set_bootable": {"bootable": True}})
    assert storage.show(volume)["bootable"] == "true"
    storage("POST", path, {"os-reset_status": {"status": "error"}}, 403)
    storage("POST", path, {"os-unknown": {}}, 400)
    Storage(cloud, "admin", "demo")("POST", path, {"os-reset_status": {"status": "error"}}, 202)
    assert storage.show(volume)["status"] == "error"


def test_what_never_changes(storage: Storage) -> None:
    [kind] = storage("GET", "/types")["volume_types"]
    assert storage("GET", "/types/default")["volume_type"] == kind
    storage("GET", "/types/other", expect=404)
    assert storage("GET", "/snapshots")["snapshots"] == []
    zones = storage("GET", "/os-availability-zone")["availabilityZoneInfo"]
    assert [zone["zoneName"] for zone in zones] == ["nova"]
    assert storage("GET", f"/os-quota-sets/{storage.project}")["quota_set"]["volumes"] == -1
