# SPDX-License-Identifier: Apache-2.0
import uuid
from typing import Any

import pytest
import requests

from novalite import context, exception
from novalite.image import client
from tests.unit.neighbors import support
from tests.unit.neighbors.support import Clock, Cloud, Wire


def asker(cloud: Cloud, project: str = "demo", **values: Any) -> context.RequestContext:
    return context.RequestContext(
        user_id="u", project_id=cloud.project_id(project), overwrite=False, **values
    )


def add_image(cloud: Cloud, **values: Any) -> str:
    """Put an image of the project admin into the store."""
    fields = {"name": "i", "container_format": "bare", "disk_format": "raw", **values}
    status = fields.pop("status", "active")
    image = cloud.user()("image", "POST", "/v2/images", fields, 201)
    with cloud.store.write() as tx:
        doc = tx.get("image", image["id"])
        assert doc is not None
        tx.replace("image", {**doc, "status": status, "size": 5})
    return str(image["id"])


def test_public_image(cloud: Cloud, wire: Wire) -> None:
    image_id = add_image(
        cloud, visibility="public", min_ram=64, min_disk=2, hw_machine_type="q35", os_type="linux"
    )
    found = client.ImageClient(cloud.conf).get(asker(cloud), image_id)
    assert (found.id, found.name) == (image_id, "i")
    assert (found.min_ram, found.min_disk, found.size) == (64, 2, 5)
    assert (found.disk_format, found.container_format) == ("raw", "bare")
    assert found.properties == {"hw_machine_type": "q35", "os_type": "linux"}


@pytest.mark.parametrize(
    "image_id", ["2e11184b-452e-486b-92c6-5659fa10cecd", "cirros", "../images", "a b", "%2f"]
)
def test_unknown_image(cloud: Cloud, wire: Wire, image_id: str) -> None:
    with pytest.raises(exception.ImageInBodyNotFound) as caught:
        client.ImageClient(cloud.conf).get(asker(cloud), image_id)
    assert caught.value.message() == f"Image {image_id} could not be found."


@pytest.mark.parametrize("visibility", ["private", "shared"])
def test_foreign_image_does_not_exist(cloud: Cloud, wire: Wire, visibility: str) -> None:
    image_id = add_image(cloud, visibility=visibility)
    images = client.ImageClient(cloud.conf)
    with pytest.raises(exception.ImageInBodyNotFound):
        images.get(asker(cloud), image_id)
    assert images.get(asker(cloud, "admin"), image_id).id == image_id
    assert images.get(asker(cloud, roles=["admin"]), image_id).id == image_id


def test_shared_image_of_a_member(cloud: Cloud, wire: Wire) -> None:
    image_id = add_image(cloud, visibility="shared")
    member = {"member": cloud.project_id("demo")}
    cloud.user()("image", "POST", f"/v2/images/{image_id}/members", member)
    assert client.ImageClient(cloud.conf).get(asker(cloud), image_id).id == image_id


@pytest.mark.parametrize("status", ["queued", "saving", "deactivated"])
def test_image_that_is_not_active(cloud: Cloud, wire: Wire, status: str) -> None:
    image_id = add_image(cloud, visibility="public", status=status)
    with pytest.raises(exception.ImageNotActive) as caught:
        client.ImageClient(cloud.conf).get(asker(cloud), image_id)
    assert caught.value.message() == f"Image {image_id} is not active."
    assert isinstance(caught.value, exception.ImageInBodyNotFound)


def test_active_images_are_remembered_for_a_while(cloud: Cloud, wire: Wire) -> None:
    clock = Clock()
    images = client.ImageClient(cloud.conf, clock)
    image_id = add_image(cloud, visibility="public", os_type="linux")
    first = images.get(asker(cloud), image_id)
    first.properties["os_type"] = "changed by the caller"
    assert images.get(asker(cloud), image_id).properties == {"os_type": "linux"}
    assert len(wire.of("/v2/images")) == 1
    clock.now += cloud.conf.glance.image_cache_time
    images.get(asker(cloud), image_id)
    assert len(wire.of("/v2/images")) == 2


def test_what_one_project_sees_is_not_remembered_for_another(cloud: Cloud, wire: Wire) -> None:
    images = client.ImageClient(cloud.conf)
    image_id = add_image(cloud, visibility="private")
    images.get(asker(cloud, "admin"), image_id)
    with pytest.raises(exception.ImageInBodyNotFound):
        images.get(asker(cloud, "demo"), image_id)


def test_failures_are_not_remembered(cloud: Cloud, wire: Wire) -> None:
    images = client.ImageClient(cloud.conf)
    image_id = add_image(cloud, visibility="public", status="queued")
    with pytest.raises(exception.ImageNotActive):
        images.get(asker(cloud), image_id)
    with cloud.store.write() as tx:
        doc = tx.get("image", image_id)
        assert doc is not None
        tx.replace("image", {**doc, "status": "active"})
    assert images.get(asker(cloud), image_id).id == image_id


def test_memory_is_bounded(cloud: Cloud, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CACHE_SIZE", 1)
    images = client.ImageClient(cloud.conf)
    ids = [add_image(cloud, visibility="public") for _ in range(2)]
    for image_id in (*ids, ids[1], ids[0]):
        images.get(asker(cloud), image_id)
    assert len(wire.of("/v2/images")) == 3


def test_cache_can_be_switched_off(cloud: Cloud, wire: Wire) -> None:
    cloud.conf.set_override("image_cache_time", 0.0, "glance")
    images = client.ImageClient(cloud.conf)
    image_id = add_image(cloud, visibility="public")
    for _ in range(2):
        images.get(asker(cloud), image_id)
    assert len(wire.of("/v2/images")) == 2


def test_one_dead_connection_is_survived(cloud: Cloud, wire: Wire) -> None:
    image_id = add_image(cloud, visibility="public")
    wire.before = once(requests.ConnectionError("reset"))
    assert client.ImageClient(cloud.conf).get(asker(cloud), image_id).id == image_id


def once(error: Exception) -> support.Fault:
    left = [error]

    def fault(request: requests.PreparedRequest) -> None:
        if "/v2/" in str(request.url) and left:
            raise left.pop()

    return fault


def always(error: Exception, where: str = "/v2/") -> support.Fault:
    def fault(request: requests.PreparedRequest) -> None:
        if where in str(request.url):
            raise error

    return fault


@pytest.mark.parametrize(
    ("error", "where"),
    [
        (requests.ConnectionError("refused"), "image.test"),
        (requests.ReadTimeout("late"), "image.test"),
        (requests.ConnectionError("refused"), "identity.test"),
    ],
)
def test_service_that_does_not_answer(
    cloud: Cloud, wire: Wire, error: Exception, where: str
) -> None:
    wire.before = always(error, where)
    with pytest.raises(exception.NeighborUnavailable):
        client.ImageClient(cloud.conf).get(asker(cloud), str(uuid.uuid4()))


def test_service_that_is_broken(cloud: Cloud, wire: Wire) -> None:
    image_id = add_image(cloud, visibility="public")
    images = client.ImageClient(cloud.conf)
    with cloud.store.write() as tx:
        tx.run("UPDATE records SET doc = '{}' WHERE kind = 'image'")
    with pytest.raises(exception.NeighborUnavailable) as caught:
        images.get(asker(cloud), image_id)
    assert "image service" in caught.value.message()


def test_account_that_is_refused_is_said_in_the_log(
    cloud: Cloud, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    cloud.conf.set_override("password", "wrong one", "service_user")
    support.connect_bare(cloud)
    with pytest.raises(exception.NeighborUnavailable):
        client.ImageClient(cloud.conf).get(asker(cloud), str(uuid.uuid4()))
    assert "401" in caplog.text
    assert "wrong one" not in caplog.text


def test_expired_token_is_renewed(cloud: Cloud, wire: Wire) -> None:
    images = client.ImageClient(cloud.conf)
    image_id = add_image(cloud, visibility="public")
    images.get(asker(cloud), image_id)
    with cloud.store.write() as tx:
        tx.run("DELETE FROM tokens")
    assert images.get(asker(cloud, "admin"), image_id).id == image_id


def test_region_without_the_service(
    cloud: Cloud, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    cloud.conf.set_override("region_name", "Elsewhere", "service_user")
    with pytest.raises(exception.NeighborUnavailable):
        client.ImageClient(cloud.conf).get(asker(cloud), str(uuid.uuid4()))
    assert "Elsewhere" in caplog.text


@pytest.mark.parametrize("url", ["http://image.test", "http://image.test/v2/"])
def test_endpoint_override_with_and_without_version(cloud: Cloud, wire: Wire, url: str) -> None:
    cloud.conf.set_override("endpoint_override", url, "glance")
    image_id = add_image(cloud, visibility="public")
    assert client.ImageClient(cloud.conf).get(asker(cloud), image_id).id == image_id


def test_the_request_id_goes_along(cloud: Cloud, wire: Wire) -> None:
    seen: list[str] = []
    wire.before = lambda request: seen.append(request.headers.get("X-OpenStack-Request-ID", ""))
    ctxt = asker(cloud)
    with pytest.raises(exception.ImageInBodyNotFound):
        client.ImageClient(cloud.conf).get(ctxt, str(uuid.uuid4()))
    assert ctxt.request_id in seen


class TestNoAuth:
    @pytest.fixture(autouse=True)
    def noauth(self, cloud: Cloud) -> None:
        cloud.conf.set_override("auth_strategy", "noauth2", "api")

    def test_nothing_configured_believes_any_uuid(self, cloud: Cloud) -> None:
        images = client.ImageClient(cloud.conf)
        image_id = str(uuid.uuid4())
        assert images.get(asker(cloud), image_id).id == image_id
        with pytest.raises(exception.ImageInBodyNotFound):
            images.get(asker(cloud), "cirros")

    def test_override_without_account_sends_no_token(self, cloud: Cloud, wire: Wire) -> None:
        cloud.conf.set_override("auth_url", None, "service_user")
        cloud.conf.set_override("endpoint_override", "http://image.test", "glance")
        bare = support.connect_bare(cloud)
        tokens: list[str | None] = []
        bare.before = lambda request: tokens.append(request.headers.get("X-Auth-Token"))
        # The stand-in itself insists on a token; that is what this ends with.
        with pytest.raises(exception.NeighborUnavailable):
            client.ImageClient(cloud.conf).get(asker(cloud), str(uuid.uuid4()))
        assert tokens == [None]


def test_keystone_without_account_is_said_in_the_log(
    cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(exception.NeighborUnavailable):
        client.ImageClient(cloud.conf).get(asker(cloud), str(uuid.uuid4()))
    assert "[service_user] auth_url" in caplog.text
