# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document says what the code does: routes, parameters, bodies, statuses, errors."""

import re
from collections.abc import Iterator
from typing import Any

import falcon
import jsonschema
import pytest

from novalite.api import app, errors, microversion, paging, validation
from novalite.api.openapi import bodies, dialect, document
from tests.unit.api import body_world
from tests.unit.api.cloud import Cloud

LATEST = microversion.MAX
# Below and at every microversion at which something on a route or in a body changes.
VERSIONS = (1, 2, 10, 11, 19, 25, 26, 33, 52, 53, 55, 63, 66, 74, 75, 78, LATEST)
NAMES = re.compile(r"\{(\w+)\}")
VERBS = ("enable", "disable", "disable-log-reason", "force-down")


@pytest.fixture(scope="module")
def documents() -> dict[int, Any]:
    return {version: document.make(version) for version in VERSIONS}


def operations(made: Any) -> Iterator[tuple[str, str, Any]]:
    for url, methods in made["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), url, operation


def query_of(operation: Any) -> set[str]:
    return {part["name"] for part in operation.get("parameters", ()) if part.get("in") == "query"}


def url_of(url: str, world: body_world.World, version: int) -> str:
    """Return a URL of the world, for a route."""
    node = world.values["node" if version >= 53 else "number"]
    if url.endswith(("/search", "/servers")):
        node = "h1"
    return url.format(**world.values, hypervisor_id=node, quota_class="default")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_route_is_in_it_and_nothing_else(version: int, documents: dict[int, Any]) -> None:
    found = {(method, url) for method, url, _operation in operations(documents[version])}
    wanted = {("GET", "/healthz")}
    for url, resource in app.ROUTES.items():
        for method in falcon.HTTP_METHODS:
            handler = getattr(resource, f"on_{method.lower()}", None)
            lowest, highest = getattr(handler, "served", (1, LATEST))
            if handler is not None and lowest <= version <= highest:
                wanted.add((method, url))
    if version < 53:
        # Where later the id of a service stands.
        wanted.remove(("PUT", "/v2.1/os-services/{service_id}"))
        words = VERBS if version >= 11 else VERBS[:3]
        wanted |= {("PUT", f"/v2.1/os-services/{word}") for word in words}
    assert found == wanted


def test_every_schema_is_in_it(documents: dict[int, Any]) -> None:
    used = {name for made in documents.values() for name in made["components"]["schemas"]}
    assert used == {name for name, _ranges in bodies.named()}
    for name, ranges in bodies.named():
        steps = {id(one) for one in ranges.values()}
        for version, made in documents.items():
            if name in made["components"]["schemas"]:
                steps.discard(id(ranges.at(version)))
                wanted = dialect.schema(ranges.at(version).document)
                assert made["components"]["schemas"][name] == wanted
        # The latest step is what clients use; it must have been seen.
        latest = ranges.values()[0]
        assert id(latest) not in steps, name


def test_every_body_that_is_read_is_in_it(documents: dict[int, Any]) -> None:
    for url, resource in app.ROUTES.items():
        for method, handler in document.handlers(resource, LATEST):
            if validation.body_of(handler) is not None:
                operation = documents[LATEST]["paths"][url][method.lower()]
                assert "requestBody" in operation, (method, url)


@pytest.mark.parametrize("version", VERSIONS)
def test_parameters_are_those_that_are_taken(
    version: int, cloud: Cloud, documents: dict[int, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the document is taken; from 2.75 on everything that is taken is in it."""
    taken: set[str] = set()

    def note(_query: Any, _version: int, *names: str, since: int = 75) -> None:
        taken.update(names)

    world = body_world.make(cloud)
    monkeypatch.setattr(paging, "refuse_unknown", note)
    for method, url, operation in operations(documents[version]):
        if method not in ("GET", "PUT", "DELETE") or url == "/healthz":
            continue
        taken.clear()
        world.cloud.call(
            method,
            url_of(url, world, version),
            {"quota_set": {}} if method == "PUT" else None,
            version=microversion.text(version),
        )
        assert query_of(operation) <= taken, (method, url)
        if version >= 75:
            assert query_of(operation) == taken, (method, url)


def test_parameters_in_the_path_are_those_of_the_route(documents: dict[int, Any]) -> None:
    for made in documents.values():
        for _method, url, operation in operations(made):
            parts = operation.get("parameters", ())
            found = [part["name"] for part in parts if part.get("in") == "path"]
            assert found == NAMES.findall(url)


def test_who_needs_a_token(cloud: Cloud, documents: dict[int, Any]) -> None:
    for method, url, operation in operations(documents[LATEST]):
        if url != "/healthz":
            status = cloud.call(method, NAMES.sub("x", url), headers={"X-Auth-Token": ""})
            assert (status.status_code == 401) == ("security" not in operation), (method, url)


@pytest.mark.parametrize("version", [1, 52, LATEST])
def test_answers_of_reads(version: int, cloud: Cloud, documents: dict[int, Any]) -> None:
    world = body_world.make(cloud)
    for method, url, operation in operations(documents[version]):
        if method != "GET" or url == "/healthz":
            continue
        if "os-flavor-access" in url:
            world.values["flavor_id"] = "private"
        if "os-extra_specs" in url:
            world.values.update(flavor_id="1", key="hw:foo")
        answer = cloud.call(method, url_of(url, world, version), version=microversion.text(version))
        success = [status for status in operation["responses"] if status[0] == "2"]
        assert str(answer.status_code) in success, (url, answer.text)
        full = "content" in operation["responses"][str(answer.status_code)]
        assert full == bool(answer.content), url
        world.values.update(flavor_id="1", key="key")


@pytest.mark.parametrize("status", sorted(errors.KEYS))
def test_bodies_of_errors(status: int, documents: dict[int, Any]) -> None:
    response = documents[LATEST]["components"]["responses"][f"Error{status}"]
    schema = response["content"]["application/json"]["schema"]
    check = jsonschema.Draft202012Validator(schema)
    body = errors.body(status, "text")
    assert check.is_valid(body)
    [key] = body
    for wrong in ({}, {key: {}}, {"x": body[key]}, {key: {**body[key], "code": status + 1}}):
        assert not check.is_valid(wrong)


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_sound(version: int, documents: dict[int, Any]) -> None:
    """Names are used once, references lead somewhere, schemas are of the newer draft."""
    made = documents[version]
    found = [operation["operationId"] for _method, _url, operation in operations(made)]
    assert len(found) == len(set(found))
    for kind, name in re.findall(r"#/components/(\w+)/([\w.-]+)", str(made)):
        assert name in made["components"][kind]
    for schema in made["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert made["info"]["version"] == f"2.{version}"
    assert "(?i:" not in str(made)


def test_microversion_is_asked_for(documents: dict[int, Any]) -> None:
    for version, required in ((1, False), (LATEST, True)):
        header = documents[version]["components"]["parameters"]["Microversion"]
        assert header["name"] == "OpenStack-API-Version"
        assert header["schema"]["enum"] == [f"compute 2.{version}"]
        assert header["required"] == required


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"pattern": "^(?:(?i:1)|(?i:on))$"}, {"pattern": "^(?:1|[oO][nN])$"}),
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"minimum": 0}, {"minimum": 0}),
        # Names of properties are not keywords, whatever they are called.
        (
            {"properties": {"pattern": {"enum": ["(?i:x)"]}, "minimum": {"type": "null"}}},
            {"properties": {"pattern": {"enum": ["(?i:x)"]}, "minimum": {"type": "null"}}},
        ),
        (
            {"oneOf": [{"items": {"minimum": 1, "exclusiveMinimum": True}}]},
            {"oneOf": [{"items": {"exclusiveMinimum": 1}}]},
        ),
    ],
)
def test_newer_words(old: Any, new: Any) -> None:
    assert dialect.schema(old) == new
