# SPDX-License-Identifier: Apache-2.0
"""The application of image v2: its routes, its version document, its schemas."""

import falcon

from novalite.neighbors import http
from novalite.neighbors.endpoints import Endpoints
from novalite.neighbors.identity.tokens import Tokens
from novalite.neighbors.image import members, records, resources
from novalite.neighbors.image.files import Files
from novalite.neighbors.store import Doc, Store

VERSIONS = ("v2.9", "v2.7", "v2.5", "v2.4", "v2.3", "v2.2", "v2.1", "v2.0")


class Versions:
    """``/`` (300) and ``/versions`` (200)."""

    anonymous = ("GET", "HEAD")

    def __init__(self, base: str, status: int):
        links = [{"rel": "self", "href": f"{base}/v2/"}]
        self._status = status
        self._body: Doc = {
            "versions": [
                {
                    "id": version,
                    "status": "CURRENT" if version == VERSIONS[0] else "SUPPORTED",
                    "links": links,
                }
                for version in VERSIONS
            ]
        }

    def on_get(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Show the document."""
        http.reply(resp, self._body, self._status)

    on_head = on_get


class Schemas:
    """``/v2/schemas/{name}``: which keys the items of an answer have."""

    def on_get(self, _req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """Show one schema."""
        own = {"image": _image_properties(), "member": _member_properties()}
        if name in own:
            http.reply(resp, _schema(name, own[name]))
            return
        singular = name.removesuffix("s")
        if singular not in own or name == singular:
            raise http.Fault(404, f"There is no schema '{name}'.")
        items = {
            "type": "array",
            "items": _schema(singular, own[singular]),
        }
        text = {"type": "string"}
        http.reply(resp, _schema(name, {name: items, "first": text, "next": text, "schema": text}))


def _schema(name: str, properties: Doc) -> Doc:
    return {
        "name": name,
        "properties": properties,
        "additionalProperties": {"type": "string"},
    }


_JSON_TYPES = {str: "string", int: "integer", bool: "boolean", list: "array"}


def _image_properties() -> Doc:
    found: Doc = {
        key: {"type": ["null", _JSON_TYPES[kind]] if default is None else _JSON_TYPES[kind]}
        for key, (kind, default) in records.FIELDS.items()
    }
    for key in records.READ_ONLY:
        kind = "integer" if key in ("size", "virtual_size") else "string"
        found[key] = {"type": ["null", kind], "readOnly": True}
    found["locations"] = {"type": "array", "readOnly": True}
    return found


def _member_properties() -> Doc:
    keys = ("image_id", "member_id", "created_at", "updated_at", "schema")
    found: Doc = {key: {"type": "string"} for key in keys}
    found["status"] = {"type": "string", "enum": list(members.STATUSES)}
    return found


def make_app(store: Store, issuer: Tokens, endpoints: Endpoints) -> http.App:
    """Return the WSGI application of image v2."""
    files = Files(store.files)
    member = members.Members(store)
    deactivate = resources.Action(store, "active", "deactivated")
    reactivate = resources.Action(store, "deactivated", "active")
    routes: list[tuple[str, object]] = [
        ("/", Versions(endpoints.image, 300)),
        ("/versions", Versions(endpoints.image, 200)),
        ("/v2/images", resources.Images(store)),
        ("/v2/images/{image_id}", resources.Image(store, files)),
        ("/v2/images/{image_id}/file", resources.ImageFile(store, files)),
        ("/v2/images/{image_id}/tasks", resources.Tasks(store)),
        ("/v2/images/{image_id}/tags/{tag}", resources.Tag(store)),
        ("/v2/images/{image_id}/actions/deactivate", deactivate),
        ("/v2/images/{image_id}/actions/reactivate", reactivate),
        ("/v2/images/{image_id}/members", member),
        ("/v2/schemas/{name}", Schemas()),
    ]
    app = http.make_app("image", issuer, routes, http.standard_error)
    app.add_route("/v2/images/{image_id}/members/{member_id}", member, suffix="one")
    return app
