# SPDX-License-Identifier: Apache-2.0
"""The status codes of every route, and the bodies of errors.

Called by :mod:`novalite.api.openapi.document`. Which errors a route can have follows from what it
takes; the table is of successes only.
"""

from typing import Any

from novalite.api import errors, http, microversion

Json = dict[str, Any]

_SERVER = "/v2.1/servers/{server_id}"
_FLAVOR = "/v2.1/flavors/{flavor_id}"
_KEYPAIRS = "/v2.1/os-keypairs"
_AGGREGATE = "/v2.1/os-aggregates/{aggregate_id}"

# Status and whether there is a body. What is not here answers 200 with a body.
_Done = tuple[tuple[int, bool], ...]
_EMPTY_202: _Done = ((202, False),)
_EMPTY_204: _Done = ((204, False),)


def _always(done: _Done) -> microversion.Ranges:
    return microversion.Ranges((1, done))


_SUCCESS: dict[tuple[str, str], microversion.Ranges] = {
    ("POST", "/v2.1/servers"): _always(((202, True),)),
    ("DELETE", _SERVER): _always(_EMPTY_204),
    ("POST", f"{_SERVER}/action"): _always(((200, True), (202, False))),
    ("DELETE", f"{_SERVER}/metadata/{{key}}"): _always(_EMPTY_204),
    ("DELETE", f"{_SERVER}/tags"): _always(_EMPTY_204),
    ("GET", f"{_SERVER}/tags/{{tag}}"): _always(_EMPTY_204),
    ("PUT", f"{_SERVER}/tags/{{tag}}"): _always(((201, False), (204, False))),
    ("DELETE", f"{_SERVER}/tags/{{tag}}"): _always(_EMPTY_204),
    ("DELETE", _FLAVOR): _always(_EMPTY_202),
    ("DELETE", f"{_FLAVOR}/os-extra_specs/{{key}}"): _always(((200, False),)),
    ("POST", _KEYPAIRS): microversion.Ranges((1, ((200, True),)), (2, ((201, True),))),
    ("DELETE", f"{_KEYPAIRS}/{{keypair_name}}"): microversion.Ranges(
        (1, _EMPTY_202), (2, _EMPTY_204)
    ),
    ("DELETE", _AGGREGATE): _always(((200, False),)),
    ("DELETE", "/v2.1/os-server-groups/{server_group_id}"): _always(_EMPTY_204),
    ("DELETE", "/v2.1/os-services/{service_id}"): _always(_EMPTY_204),
    ("DELETE", "/v2.1/os-quota-sets/{tenant_id}"): _always(_EMPTY_202),
}
_DEFAULT = _always(((200, True),))

# What every route may say that needs a token, who writes besides, who sends a body besides.
_COMMON = (400, 401, 403, 404, 406, 500, 503)
_WRITING = (409,)
_WITH_BODY = (413, 415)
_WITHOUT_TOKEN = (400, 500)


def of(method: str, url: str, version: int, *, body: bool, token: bool) -> Json:
    """Return the answers of a route by status."""
    found: Json = {}
    for status, full in _SUCCESS.get((method, url), _DEFAULT).at(version):
        answer: Json = {"description": "Accepted" if status == 202 else "Done"}
        if full and method != "HEAD":
            answer["content"] = {http.JSON: {"schema": {"type": "object"}}}
        found[str(status)] = answer
    wrong: tuple[int, ...] = _COMMON if token else _WITHOUT_TOKEN
    if method in ("POST", "PUT", "DELETE"):
        wrong += _WRITING
    if body:
        wrong += _WITH_BODY
    for status in sorted(wrong):
        found[str(status)] = {"$ref": f"#/components/responses/{_name(status)}"}
    return found


def _name(status: int) -> str:
    return f"Error{status}"


def components() -> Json:
    """Return the error answers, one a status."""
    return {_name(status): _error(status, key) for status, key in sorted(errors.KEYS.items())}


def _error(status: int, key: str) -> Json:
    [example] = errors.body(status, "").values()
    content = {
        "type": "object",
        "properties": {
            name: {"const": status} if name == "code" else {"type": "string"} for name in example
        },
        "required": sorted(example),
        "additionalProperties": False,
    }
    body = {
        "type": "object",
        "properties": {key: content},
        "required": [key],
        "additionalProperties": False,
    }
    return {"description": key, "content": {http.JSON: {"schema": body}}}
