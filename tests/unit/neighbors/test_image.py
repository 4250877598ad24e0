# SPDX-License-Identifier: Apache-2.0
import hashlib
import io
from typing import Any

import pytest

from novalite.neighbors import seed
from tests.unit.neighbors.support import PASSWORD, Cloud, User

PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
BINARY = {"Content-Type": "application/octet-stream"}


def create(user: User, expect: int = 201, **fields: Any) -> Any:
    return user("image", "POST", "/v2/images", fields, expect)


def upload(user: User, image_id: str, data: bytes, expect: int = 204, **headers: str) -> Any:
    path = f"/v2/images/{image_id}/file"
    return user(
        "image", "PUT", path, expect=expect, body=None, headers=BINARY | headers, **raw(data)
    )


def raw(data: bytes) -> dict[str, Any]:
    # ``body`` of the test client, past the helper's own ``body``.
    return {"extras": {"wsgi.input": io.BytesIO(data), "CONTENT_LENGTH": str(len(data))}}


def active(user: User, **fields: Any) -> Any:
    image = create(user, container_format="bare", disk_format="raw", **fields)
    upload(user, image["id"], b"data")
    return user("image", "GET", f"/v2/images/{image['id']}")


def names(user: User, query: str = "") -> list[str]:
    return [
        image["name"] for image in user("image", "GET", "/v2/images", query_string=query)["images"]
    ]


@pytest.fixture
def admin(cloud: Cloud) -> User:
    return cloud.user()


@pytest.fixture
def demo(cloud: Cloud) -> User:
    return cloud.user("demo", "demo")


def test_version_document(cloud: Cloud) -> None:
    answer = cloud.image.simulate_get("/")
    assert answer.status_code == 300
    current = [item for item in answer.json["versions"] if item["status"] == "CURRENT"]
    assert len(current) == 1
    assert current[0]["links"][0]["href"] == "http://image.test/v2/"


def test_a_token_is_needed(cloud: Cloud) -> None:
    for headers in ({}, {"X-Auth-Token": "nonsense"}):
        answer = cloud.image.simulate_get("/v2/images", headers=headers)
        assert answer.status_code == 401
        assert answer.json["error"]["code"] == 401


def test_a_token_without_scope_is_not_enough(cloud: Cloud) -> None:
    cloud.user("demo", None)("image", "GET", "/v2/images", expect=403)


def test_two_public_images_are_seeded(demo: User) -> None:
    images = demo("image", "GET", "/v2/images", query_string="status=active&visibility=public")
    assert {image["name"] for image in images["images"]} == {"cirros", "cirros-alt"}
    for image in images["images"]:
        assert image["size"] > 0
        assert image["os_hash_algo"] == "sha512"


def test_life_of_an_image(cloud: Cloud, demo: User) -> None:
    data = b"x" * 700_000
    image = create(
        demo, name="i", container_format="bare", disk_format="qcow2", os_type="linux", tags=["a"]
    )
    assert image["status"] == "queued"
    assert image["owner"] == cloud.project_id("demo")
    assert image["os_type"] == "linux"
    assert image["visibility"] == "shared"
    assert image["file"] == f"/v2/images/{image['id']}/file"
    demo("image", "GET", image["file"], expect=204)
    upload(demo, image["id"], data)
    shown = demo("image", "GET", f"/v2/images/{image['id']}")
    assert shown["status"] == "active"
    assert shown["size"] == len(data)
    assert shown["checksum"] == hashlib.md5(data).hexdigest()
    assert shown["os_hash_value"] == hashlib.sha512(data).hexdigest()
    answer = cloud.image.simulate_get(shown["file"], headers={"X-Auth-Token": demo.token})
    assert answer.content == data
    upload(demo, image["id"], data, expect=409)
    demo("image", "DELETE", f"/v2/images/{image['id']}", expect=204)
    demo("image", "GET", f"/v2/images/{image['id']}", expect=404)
    assert not (cloud.store.files / image["id"]).exists()


def test_a_name_in_the_id_position_is_404(admin: User) -> None:
    answer = admin("image", "GET", "/v2/images/cirros", expect=404)
    assert "cirros" in answer["error"]["message"]


def test_foreign_private_images_do_not_exist(admin: User, demo: User) -> None:
    image = active(admin, name="secret", visibility="private")
    path = f"/v2/images/{image['id']}"
    for method, where in (("GET", path), ("DELETE", path), ("GET", f"{path}/file")):
        demo("image", method, where, expect=404)
    assert "secret" not in names(demo)
    assert "secret" not in names(demo, f"id=in:{image['id']}")


def test_public_images_of_others_cannot_be_changed(admin: User, demo: User) -> None:
    image = active(admin, name="p", visibility="public")
    path = f"/v2/images/{image['id']}"
    demo("image", "GET", path)
    demo("image", "DELETE", path, expect=403)
    change = [{"op": "replace", "path": "/name", "value": "q"}]
    demo("image", "PATCH", path, change, 403, headers=PATCH)
    create(demo, 403, name="p", visibility="public")


def test_shared_images_are_for_members(cloud: Cloud, admin: User, demo: User) -> None:
    image = active(admin, name="s", visibility="shared")
    path = f"/v2/images/{image['id']}"
    demo("image", "GET", path, expect=404)
    member = cloud.project_id("demo")
    admin("image", "POST", f"{path}/members", {"member": member})
    admin("image", "POST", f"{path}/members", {"member": member}, 409)
    demo("image", "GET", path)
    assert "s" not in names(demo)
    demo("image", "PUT", f"{path}/members/{member}", {"status": "accepted"})
    assert "s" in names(demo)
    demo("image", "DELETE", path, expect=403)
    admin("image", "DELETE", f"{path}/members/{member}", expect=204)
    demo("image", "GET", path, expect=404)


def test_community_images_are_seen_by_id_or_on_request(admin: User, demo: User) -> None:
    image = active(admin, name="c", visibility="community")
    demo("image", "GET", f"/v2/images/{image['id']}")
    assert "c" not in names(demo)
    assert names(demo, "visibility=community") == ["c"]


def test_filters(demo: User) -> None:
    first = active(demo, name="f1", instance_uuid="u1", image_type="backup", tags=["t"])
    second = active(demo, name="f2", instance_uuid="u1", image_type="snapshot")
    create(demo, name="f3", instance_uuid="u1", container_format="bare", disk_format="raw")
    assert sorted(names(demo, "instance_uuid=u1")) == ["f1", "f2", "f3"]
    assert names(demo, "instance_uuid=u1&image_type=backup") == ["f1"]
    assert names(demo, "name=f2") == ["f2"]
    assert names(demo, "status=queued") == ["f3"]
    assert sorted(names(demo, f"id=in:{first['id']},{second['id']}")) == ["f1", "f2"]
    assert sorted(names(demo, "status=in:queued,active&instance_uuid=u1")) == ["f1", "f2", "f3"]
    assert names(demo, "tag=t") == ["f1"]
    assert sorted(names(demo, "size_min=1&size_max=4")) == ["f1", "f2"]
    assert names(demo, "created_at=lt:2001-01-01T00:00:00Z") == []
    assert names(demo, "os_hidden=true") == []
    demo("image", "GET", "/v2/images", query_string="size_min=x", expect=400)


def test_sorting_and_paging(demo: User) -> None:
    for name in ("a", "b", "c"):
        create(demo, name=name, mark="m")
    assert names(demo, "mark=m&sort_key=name&sort_dir=asc") == ["a", "b", "c"]
    assert names(demo, "mark=m&sort=name:desc") == ["c", "b", "a"]
    page = demo("image", "GET", "/v2/images", query_string="mark=m&limit=2&sort=name:asc")
    assert [image["name"] for image in page["images"]] == ["a", "b"]
    path, _, query = page["next"].partition("?")
    assert [
        image["name"] for image in demo("image", "GET", path, query_string=query)["images"]
    ] == ["c"]
    assert names(demo, "limit=0") == []
    for query in ("limit=-1", "limit=x", "marker=nowhere", "sort_dir=up"):
        demo("image", "GET", "/v2/images", query_string=query, expect=400)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"disk_format": "floppy"}, "disk_format"),
        ({"visibility": "loud"}, "visibility"),
        ({"min_ram": -1}, "min_ram"),
        ({"min_ram": "1"}, "min_ram"),
        ({"min_disk": True}, "min_disk"),
        ({"id": "no-uuid"}, "id"),
        ({"os_type": 5}, "os_type"),
        ({"tags": ["x" * 300]}, "tags"),
    ],
)
def test_bad_fields_are_named(demo: User, fields: dict[str, Any], word: str) -> None:
    answer = create(demo, 400, **fields)
    assert f"'{word}'" in answer["error"]["message"]


def test_an_id_is_taken_once(demo: User) -> None:
    image = create(demo, name="x")
    create(demo, 409, id=image["id"])


def test_patch(demo: User) -> None:
    image = create(demo, name="x", k="v")
    path = f"/v2/images/{image['id']}"
    operations = [
        {"op": "replace", "path": "/name", "value": "y"},
        {"op": "add", "path": "/a~1b", "value": "slash"},
        {"op": "remove", "path": "/k"},
        {"op": "replace", "path": "/tags", "value": ["t", "t"]},
    ]
    shown = demo("image", "PATCH", path, operations, headers=PATCH)
    assert shown["name"] == "y" and shown["a/b"] == "slash" and "k" not in shown
    assert shown["tags"] == ["t"]
    for operation, status in (
        ({"op": "replace", "path": "/status", "value": "active"}, 403),
        ({"op": "replace", "path": "/nothing", "value": "x"}, 409),
        ({"op": "remove", "path": "/name"}, 403),
        ({"op": "remove", "path": "/nothing"}, 409),
        ({"op": "move", "path": "/name"}, 400),
        ({"op": "add", "path": "name", "value": "x"}, 400),
        ({"op": "add", "path": "/name"}, 400),
        ({"op": "replace", "path": "/visibility", "value": "public"}, 403),
    ):
        demo("image", "PATCH", path, [operation], status, headers=PATCH)
    demo("image", "PATCH", path, [], 415)


def test_protected_images_stay(demo: User) -> None:
    image = create(demo, name="x", protected=True)
    path = f"/v2/images/{image['id']}"
    demo("image", "DELETE", path, expect=403)
    change = [{"op": "replace", "path": "/protected", "value": False}]
    demo("image", "PATCH", path, change, headers=PATCH)
    demo("image", "DELETE", path, expect=204)


def test_upload_is_refused_with_the_reason(demo: User) -> None:
    image = create(demo, name="x")
    answer = upload(demo, image["id"], b"x", 400)
    assert "disk_format, container_format" in answer["error"]["message"]
    upload(demo, image["id"], b"x", 415, **{"Content-Type": "text/plain"})


def test_a_broken_upload_can_be_done_again(cloud: Cloud, demo: User) -> None:
    image = create(demo, name="x", container_format="bare", disk_format="raw")
    path = f"/v2/images/{image['id']}"
    short = {"wsgi.input": io.BytesIO(b"half"), "CONTENT_LENGTH": "8"}
    demo("image", "PUT", f"{path}/file", expect=400, headers=BINARY, extras=short)
    assert demo("image", "GET", path)["status"] == "queued"
    assert list(cloud.store.files.glob("*.part")) == []
    upload(demo, image["id"], b"whole")
    assert demo("image", "GET", path)["status"] == "active"


def test_an_image_deleted_while_its_data_comes_stays_deleted(cloud: Cloud, demo: User) -> None:
    image = create(demo, name="x", container_format="bare", disk_format="raw")
    path = f"/v2/images/{image['id']}"

    class Deleting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() == 0:
                assert demo("image", "GET", path)["status"] == "saving"
                demo("image", "DELETE", path, expect=204)
            return super().read(size)

    extras = {"wsgi.input": Deleting(b"data"), "CONTENT_LENGTH": "4"}
    demo("image", "PUT", f"{path}/file", expect=410, headers=BINARY, extras=extras)
    assert sorted(file.name for file in cloud.store.files.iterdir()) == sorted(
        image["id"] for image in demo("image", "GET", "/v2/images")["images"]
    )


def test_a_restart_frees_what_was_being_saved(cloud: Cloud, demo: User) -> None:
    image = create(demo, name="x", container_format="bare", disk_format="raw")
    with cloud.store.write() as tx:
        doc = tx.get("image", image["id"])
        assert doc is not None
        tx.replace("image", {**doc, "status": "saving"})
    left = cloud.store.files / f"{image['id']}.k.part"
    left.write_bytes(b"half")
    seed.seed(cloud.store, {"admin": PASSWORD})
    assert demo("image", "GET", f"/v2/images/{image['id']}")["status"] == "queued"
    assert not left.exists()


def test_deactivation(admin: User, demo: User) -> None:
    seeded = demo("image", "GET", "/v2/images", query_string="name=cirros")["images"][0]["id"]
    demo("image", "POST", f"/v2/images/{seeded}/actions/deactivate", expect=403)
    image = active(demo, name="x")
    path = f"/v2/images/{image['id']}"
    demo("image", "POST", f"{path}/actions/deactivate", expect=204)
    assert demo("image", "GET", path)["status"] == "deactivated"
    demo("image", "GET", f"{path}/file", expect=403)
    admin("image", "GET", f"{path}/file")
    admin("image", "POST", f"{path}/actions/reactivate", expect=204)
    assert demo("image", "GET", path)["status"] == "active"


def test_tags_tasks_and_schemas(demo: User) -> None:
    image = create(demo, name="x")
    path = f"/v2/images/{image['id']}"
    demo("image", "PUT", f"{path}/tags/t1", expect=204)
    assert demo("image", "GET", path)["tags"] == ["t1"]
    demo("image", "DELETE", f"{path}/tags/t1", expect=204)
    demo("image", "DELETE", f"{path}/tags/t1", expect=404)
    assert demo("image", "GET", f"{path}/tasks") == {"tasks": []}
    schema = demo("image", "GET", "/v2/schemas/image")
    assert set(create(demo, name="y")) - {"checksum"} <= set(schema["properties"])
    assert demo("image", "GET", "/v2/schemas/images")["properties"]["images"]["type"] == "array"
    demo("image", "GET", "/v2/schemas/nothing", expect=404)
