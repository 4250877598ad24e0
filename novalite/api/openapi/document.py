# SPDX-License-Identifier: Apache-2.0
"""Makes the OpenAPI document of one microversion from ROUTES, the handlers and their schemas.

``novalite-manage api openapi`` prints it. It holds what is served at that microversion and nothing
else. Nothing is asked for it: no database, no option, no service.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from novalite.api import app, healthz, http, microversion, middleware
from novalite.api.openapi import answers, bodies, dialect, parameters
from novalite.api.parts import Resource

Json = dict[str, Any]
Handler = Callable[..., None]

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
_NAMES = re.compile(r"\{(\w+)\}")
_REF = re.compile(r"#/components/schemas/([\w.-]+)")
_SERVICE = "/v2.1/os-services/{service_id}"
_TEXT = (
    "Every path below /v2.1 is also served with the project's id in front: /v2.1/PROJECT/servers. "
    "Numbers and yes and no may also be given as text; minimum and maximum hold for these too."
)


def make(version: int) -> Json:
    """Return the document of 2.*version*."""
    paths = dict(_paths(version))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "OpenStack Compute API of novalite",
            "version": microversion.text(version),
            "description": _TEXT,
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
            },
            "parameters": {"Microversion": _microversion(version)},
            "responses": answers.components(),
            "schemas": _schemas(paths, version),
        },
    }


def handlers(resource: type[Resource], version: int) -> Iterator[tuple[str, Handler]]:
    """Yield the methods that a resource has at a microversion."""
    for method in METHODS:
        handler = getattr(resource, f"on_{method.lower()}", None)
        if handler is None:
            continue
        lowest, highest = microversion.served(handler)
        if lowest <= version <= highest:
            yield method, handler


def _paths(version: int) -> Iterator[tuple[str, Json]]:
    for url, resource in app.ROUTES.items():
        found = {}
        for method, handler in handlers(resource, version):
            if url == _SERVICE and method == "PUT" and version < 53:
                continue
            ranges = bodies.of(method, url, handler)
            found[method.lower()] = _operation(method, url, handler, ranges, version)
        if found:
            yield url, found
    if version < 53:
        handler = dict(handlers(app.ROUTES[_SERVICE], version))["PUT"]
        for since, verb, schemas in bodies.VERBS:
            if since <= version:
                url = _SERVICE.replace("{service_id}", verb)
                yield url, {"put": _operation("PUT", url, handler, [schemas], version)}
    yield healthz.PATH, {"get": _health()}


def _operation(
    method: str, url: str, handler: Handler, ranges: list[microversion.Ranges], version: int
) -> Json:
    token = url not in middleware.DOCUMENTS
    found: Json = {
        "operationId": _operation_id(method, url),
        "summary": (handler.__doc__ or "").partition("\n")[0],
        "tags": [url.split("/")[2] if token else "versions"],
        "responses": answers.of(method, url, version, body=bool(ranges), token=token),
    }
    parts = list(parameters.of(method, url, _NAMES.findall(url), version))
    for part in parts:
        part["schema"] = dialect.schema(part["schema"])
    if token:
        parts.append({"$ref": "#/components/parameters/Microversion"})
    else:
        found["security"] = []
    if parts:
        found["parameters"] = parts
    if ranges:
        found["requestBody"] = _body(ranges, version)
    return found


def _body(ranges: list[microversion.Ranges], version: int) -> Json:
    refs = [{"$ref": f"#/components/schemas/{bodies.name_of(one)}"} for one in ranges]
    nothing = [one.at(version).document.get("type") == "null" for one in ranges]
    return {
        "required": not all(nothing),
        "content": {http.JSON: {"schema": refs[0] if len(refs) == 1 else {"oneOf": refs}}},
    }


def _schemas(paths: Json, version: int) -> Json:
    """Return the schemas that *paths* name."""
    used = set(_REF.findall(str(paths)))
    ranges = {name: ranges for name, ranges in bodies.named() if name in used}
    return {name: dialect.schema(one.at(version).document) for name, one in sorted(ranges.items())}


def _operation_id(method: str, url: str) -> str:
    words = [method.lower(), *re.findall(r"[\w.-]+", url)]
    if len(url) > 1 and url.endswith("/"):
        words.append("slash")
    return "_".join(words)


def _microversion(version: int) -> Json:
    """Return the header that asks for this microversion; without it 2.1 is meant."""
    return {
        "name": microversion.HEADER,
        "in": "header",
        "required": version > microversion.MIN,
        "schema": {"type": "string", "enum": [f"compute {microversion.text(version)}"]},
    }


def _health() -> Json:
    shown = {http.JSON: {"schema": {"type": "object", "required": ["status"]}}}
    return {
        "operationId": "get_healthz",
        "summary": "Tell whether requests can be served.",
        "tags": ["health"],
        "security": [],
        "responses": {
            "200": {"description": "They can, maybe degraded", "content": shown},
            "503": {"description": "The database is away", "content": shown},
        },
    }
