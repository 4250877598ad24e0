# SPDX-License-Identifier: Apache-2.0
"""Every answer and every body sent, at every microversion that changes one; see body_table.py."""

import importlib
import itertools
from typing import Any

import pytest

from novalite import exception
from novalite.api import app, microversion, validation
from tests.unit.api import body_table, body_world
from tests.unit.api.body_table import CHANGES, FIELDS, GETS, OURS, Row, Steps
from tests.unit.api.cloud import FLAVOR, IMAGE, Cloud

_NUMBERS = itertools.count()


def boundaries() -> list[int]:
    """Return the minor versions at which something changes, and those just before."""
    found = {1, microversion.MAX}
    for row in (*GETS, *CHANGES):
        found |= {row.lowest, row.highest}
        found |= {since for steps in row.answer.values() for since, _came, _went in steps}
    for versions in FIELDS.values():
        found |= {versions.start, versions.stop}
    found |= {version - 1 for version in found}
    return sorted(version for version in found if 1 <= version <= microversion.MAX)


VERSIONS = boundaries()


def keys(steps: Steps, version: int) -> frozenset[str]:
    held: set[str] = set()
    for since, came, went in sorted(steps):
        if since <= version:
            held = (held | set(came.split())) - set(went.split())
    return frozenset(held)


def wanted(row: Row, version: int) -> dict[str, frozenset[str]]:
    found = {place: keys(steps, version) for place, steps in row.answer.items()}
    return {place: names for place, names in found.items() if names}


def body_of(row: Row, version: int) -> Any:
    """Return what a client sends."""
    number = next(_NUMBERS)
    server = {"name": "new", "flavorRef": FLAVOR, "imageRef": IMAGE}
    if version >= 37:
        server["networks"] = "none"
    policy: Any = {"policy": "affinity"} if version >= 64 else {"policies": ["affinity"]}
    bodies: dict[tuple[str, str], Any] = {
        ("POST", "/v2.1/servers"): {"server": server},
        ("PUT", "/v2.1/servers/{server_id}"): {"server": {"name": "other"}},
        ("POST", "/v2.1/servers/{server_id}/metadata"): {"metadata": {"key": "value"}},
        ("PUT", "/v2.1/servers/{server_id}/metadata"): {"metadata": {"key": "value"}},
        ("PUT", "/v2.1/servers/{server_id}/metadata/{key}"): {"meta": {"key": "value"}},
        ("PUT", "/v2.1/servers/{server_id}/tags"): {"tags": ["tag"]},
        ("POST", "/v2.1/flavors"): {
            "flavor": {"name": f"new-{number}", "vcpus": 1, "ram": 1, "disk": 1}
        },
        ("PUT", "/v2.1/flavors/{flavor_id}"): {"flavor": {"description": "d"}},
        ("PUT", "/v2.1/os-services/{service_id}"): {"status": "disabled", "disabled_reason": "r"},
        ("PUT", "/v2.1/os-services/disable-log-reason"): {
            "host": "h1",
            "binary": "nova-compute",
            "disabled_reason": "r",
        },
        ("POST", "/v2.1/os-aggregates"): {"aggregate": {"name": f"new-{number}"}},
        ("PUT", "/v2.1/os-aggregates/{aggregate_id}"): {"aggregate": {"name": f"new-{number}"}},
        ("POST", "/v2.1/os-aggregates/{aggregate_id}/action"): {
            "set_metadata": {"metadata": {"key": "value"}}
        },
        ("POST", "/v2.1/os-server-groups"): {"server_group": {"name": "new", **policy}},
        ("PUT", "/v2.1/os-quota-sets/{tenant_id}"): {"quota_set": {"cores": 50}},
        ("PUT", "/v2.1/os-quota-class-sets/default"): {"quota_class_set": {"cores": 50}},
    }
    return bodies[row.method, row.url]


def name_of(row: Row) -> str:
    return f"{row.method} {row.url}"


@pytest.fixture
def world(cloud: Cloud) -> body_world.World:
    cloud.conf.set_override("server_groups", -1, group="quota")
    cloud.conf.set_override("instances", -1, group="quota")
    cloud.conf.set_override("cores", -1, group="quota")
    return body_world.make(cloud)


@pytest.mark.parametrize("row", (*GETS, *CHANGES), ids=name_of)
def test_keys_at_every_boundary(world: body_world.World, row: Row) -> None:
    for version in VERSIONS:
        body = None if row.method == "GET" else body_of(row, version)
        answer = world.cloud.client.simulate_request(
            row.method,
            world.url(row.url),
            headers={"X-Auth-Token": "admin:admin", microversion.HEADER: f"compute 2.{version}"},
            json=body,
        )
        if not row.lowest <= version <= row.highest:
            assert answer.status_code in (400, 404), version
            continue
        assert answer.status_code == row.status, (version, answer.text)
        found = dict(body_world.places(answer.json)) if answer.text else {}
        assert found == wanted(row, version), version


def test_every_route_is_in_the_table() -> None:
    """A new route needs its rows."""
    urls = [row.url.partition("?")[0] for row in GETS]
    missing = []
    for route, resource in app.ROUTES.items():
        if hasattr(resource, "on_get") and route not in OURS:
            shape = route.split("/")
            if not any(_fits(shape, url.split("/")) for url in urls):
                missing.append(route)
    assert missing == []


def _fits(route: list[str], url: list[str]) -> bool:
    return len(route) == len(url) and all(
        want == have or want.startswith("{") for want, have in zip(route, url, strict=True)
    )


VALUES: dict[str, Any] = {
    "key_name": "k",
    "description": "d",
    "tags": ["t"],
    "personality": [],
    "trusted_image_certificates": ["id"],
    "host": "h1",
    "hypervisor_hostname": "h1",
    "name": "n",
    "locked_reason": "r",
    "swap": 1,
    "nonsense": 1,
}
REQUIRED: dict[str, dict[str, Any]] = {
    "servers.CREATE": {"name": "n", "flavorRef": "1", "imageRef": IMAGE, "networks": []},
    "flavors.CREATE": {"name": "n", "vcpus": 1, "ram": 1, "disk": 1},
}


@pytest.mark.parametrize("key", FIELDS, ids=" ".join)
def test_fields_are_taken_at_their_microversions(key: tuple[str, str, str]) -> None:
    schema, wrapper, field = key
    module, _, name = schema.partition(".")
    ranges = getattr(importlib.import_module(f"novalite.api.schemas.{module}"), name)
    body = {wrapper: {**REQUIRED.get(schema, {}), field: VALUES[field]}}
    taken = [version for version in VERSIONS if _takes(ranges, version, body)]
    assert taken == [version for version in VERSIONS if version in FIELDS[key]]


def _takes(ranges: microversion.Ranges, version: int, body: Any) -> bool:
    try:
        schema: validation.Schema = ranges.at(version)
        schema.check(body)
    except (exception.ValidationError, exception.VersionNotFound):
        return False
    return True


def test_the_table_ends_where_the_api_ends() -> None:
    assert max(row.highest for row in GETS) == microversion.MAX
    assert body_table.CHANGES
