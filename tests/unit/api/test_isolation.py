# SPDX-License-Identifier: Apache-2.0
"""Ways to another project's things other than their URL: bodies, hints, filters, markers, names."""

import uuid
from typing import Any

import pytest

from tests.unit.api.cloud import Cloud

MINE, THEIRS = "eve:mine", "bob:theirs"
GROUP = {"server_group": {"name": "g", "policies": ["anti-affinity"]}}
KEY = {
    "keypair": {
        "name": "their-key",
        "public_key": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{43 * 'A'}",
    }
}


@pytest.fixture
def theirs(cloud: Cloud) -> dict[str, str]:
    """One of everything that belongs to the other project."""
    group = cloud.call("POST", "/os-server-groups", GROUP, user=THEIRS).json["server_group"]["id"]
    assert cloud.call("POST", "/os-keypairs", KEY, user=THEIRS).status_code in (200, 201)
    server = cloud.boot(user=THEIRS, name="secret-name", metadata={"k": "v"}, tags=["secret-tag"])
    cloud.change(server, host="secret-host", hostname="secret-name")
    return {"group": str(group), "server": server, "reservation": reservation(cloud, server)}


def reservation(cloud: Cloud, server: str) -> str:
    return str(cloud.row("instances", uuid=server).reservation_id)


def listed(cloud: Cloud, query: str, path: str = "/servers/detail", **kwargs: Any) -> Any:
    return cloud.call("GET", path, query_string=query, user=MINE, **kwargs)


FILTERS = (
    "project_id=theirs",
    "tenant_id=theirs",
    "all_tenants=0&project_id=theirs",
    "all_projects=1",
    "user_id=bob",
    "uuid={server}",
    "host=secret-host",
    "node=secret-host",
    "name=secret",
    "name=.*",
    "hostname=secret-name",
    "display_name=secret-name",
    "reservation_id={reservation}",
    "changes-since=1970-01-01T00:00:00Z",
    "status=BUILD",
    "vm_state=building",
    "metadata=k",
    "tags=secret-tag",
    "tags-any=secret-tag",
    "not-tags=nothing",
    "sort_key=uuid&sort_dir=asc",
    "ip=.*",
    "locked=false",
)


def test_no_filter_finds_them(cloud: Cloud, theirs: dict[str, str]) -> None:
    for query in FILTERS:
        for path in ("/servers", "/servers/detail"):
            for version in ("2.1", "2.53", "2.74"):
                result = listed(cloud, query.format(**theirs), path, version=version)
                assert result.status_code in (200, 400), query
                if result.status_code == 200:
                    assert result.json["servers"] == [], query


@pytest.mark.parametrize("query", ["all_tenants", "all_tenants=1", "all_tenants=1&deleted=1"])
@pytest.mark.parametrize("path", ["/servers", "/servers/detail"])
def test_all_tenants_is_for_administrators(cloud: Cloud, query: str, path: str) -> None:
    assert listed(cloud, query, path).status_code == 403


def test_a_marker_of_theirs_is_unknown(cloud: Cloud, theirs: dict[str, str]) -> None:
    """With the same words as one that never was."""
    markers = (theirs["server"], str(uuid.uuid4()))
    answers = [listed(cloud, f"marker={marker}") for marker in markers]
    assert [answer.status_code for answer in answers] == [400, 400]
    pairs = zip(markers, answers, strict=True)
    assert len({answer.text.replace(marker, "ID") for marker, answer in pairs}) == 1


def test_their_things_in_a_body(cloud: Cloud, theirs: dict[str, str]) -> None:
    assert cloud.create(user=MINE, hints={"group": theirs["group"]}).status_code == 400
    assert cloud.create(user=MINE, key_name="their-key").status_code == 400
    forced = cloud.create(user=MINE, availability_zone="nova:secret-host")
    assert forced.status_code == 403
    assert listed(cloud, "").json["servers"] == []
    group = cloud.call("GET", f"/os-server-groups/{theirs['group']}", user=THEIRS)
    assert group.json["server_group"]["members"] == []


@pytest.mark.parametrize("path", ["/os-server-groups?all_projects=1", "/os-keypairs", "/limits"])
def test_other_lists(cloud: Cloud, theirs: dict[str, str], path: str) -> None:
    path, _, query = path.partition("?")
    result = cloud.call("GET", path, user=MINE, query_string=query)
    assert result.status_code == 200
    assert theirs["group"] not in result.text and "their-key" not in result.text


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/os-keypairs", "user_id=bob"),
        ("/os-keypairs/their-key", "user_id=bob"),
        ("/limits", "tenant_id=theirs"),
        ("/os-quota-sets/theirs", ""),
        ("/os-quota-sets/theirs/detail", ""),
        ("/os-simple-tenant-usage/theirs", ""),
    ],
)
def test_other_owners_named_in_the_url(
    cloud: Cloud, theirs: dict[str, str], path: str, query: str
) -> None:
    result = cloud.call("GET", path, user=MINE, query_string=query, version="2.53")
    assert result.status_code == 403, result.text


def test_the_project_in_the_url_is_that_of_the_token(cloud: Cloud, theirs: dict[str, str]) -> None:
    for project in ("theirs", str(uuid.uuid4())):
        result = cloud.call("GET", f"/{project}/servers/{theirs['server']}", user=MINE)
        assert result.status_code in (400, 404)
    assert cloud.call("GET", f"/mine/servers/{theirs['server']}", user=MINE).status_code == 404


def test_a_foreign_id_is_answered_like_one_that_never_was(
    cloud: Cloud, theirs: dict[str, str]
) -> None:
    never = str(uuid.uuid4())
    for tail in ("", "/ips", "/metadata", "/tags", "/os-instance-actions"):
        answers = [
            cloud.call("GET", f"/servers/{key}{tail}", user=MINE, version="2.53")
            for key in (theirs["server"], never)
        ]
        assert [answer.status_code for answer in answers] == [404, 404]
        texts = {
            answers[0].text.replace(theirs["server"], "ID"),
            answers[1].text.replace(never, "ID"),
        }
        assert len(texts) == 1


def test_a_deleted_server_of_theirs_stays_theirs(cloud: Cloud, theirs: dict[str, str]) -> None:
    assert cloud.call("DELETE", f"/servers/{theirs['server']}", user=THEIRS).status_code == 204
    path = f"/servers/{theirs['server']}/os-instance-actions"
    assert cloud.call("GET", path, user=THEIRS, version="2.53").status_code == 200
    assert cloud.call("GET", path, user=MINE, version="2.53").status_code == 404
