# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/tags: the tags of a server, since 2.26."""

import urllib.parse
from collections.abc import Callable
from typing import Any

import falcon

from novalite import exception
from novalite.api import http, links, microversion, server_state, validation
from novalite.api.parts import Resource
from novalite.api.resources import servers
from novalite.api.schemas import common
from novalite.api.schemas import server_tags as schemas
from novalite.api.views import servers as view
from novalite.db import instance_changes


class _Tags(Resource):
    def _find(self, req: http.Request, server_id: str, rule: str) -> Any:
        return servers.find(self.parts, req, server_id, f"os-server-tags:{rule}")

    def _change(
        self, server_id: str, what: str, change: Callable[[set[str]], set[str]]
    ) -> set[str]:
        """Change the tags and return the former ones."""
        return self.database.transaction(
            lambda conn: instance_changes.change_tags(
                conn, server_id, change, lambda row: server_state.check_settled(row, what)
            )
        )


class ServerTagsResource(_Tags):
    """/servers/{server_id}/tags"""

    @microversion.between(26)
    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """List the tags."""
        row = self._find(req, server_id, "index")
        http.send(resp, {"tags": view.tags(row)})

    @microversion.between(26)
    @validation.body(schemas.UPDATE_ALL)
    def on_put(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Replace all tags."""
        self._find(req, server_id, "update_all")
        wanted = set(req.state.body["tags"])
        self._change(server_id, "update tags", lambda _tags: wanted)
        http.send(resp, {"tags": sorted(wanted)})

    @microversion.between(26)
    def on_delete(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Remove all tags."""
        self._find(req, server_id, "delete_all")
        self._change(server_id, "delete tags", lambda _tags: set())
        http.send_nothing(resp, 204)


class ServerTagResource(_Tags):
    """/servers/{server_id}/tags/{tag}"""

    @microversion.between(26)
    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str, tag: str) -> None:
        """Tell whether the server has the tag: 204 or 404."""
        row = self._find(req, server_id, "show")
        if tag not in view.tags(row):
            raise exception.InstanceTagNotFound(instance_id=server_id, tag=tag)
        http.send_nothing(resp, 204)

    @microversion.between(26)
    def on_put(self, req: http.Request, resp: falcon.Response, server_id: str, tag: str) -> None:
        """Add the tag: 201 if it is new, 204 if it was there."""
        self._find(req, server_id, "update")
        _check_no_body(req)
        _check_tag(tag)

        def add(tags: set[str]) -> set[str]:
            if tag not in tags and len(tags) >= common.MAX_TAGS:
                raise exception.InvalidInput(
                    f"The number of tags exceeded the per-server limit {common.MAX_TAGS}"
                )
            return tags | {tag}

        former = self._change(server_id, "update tag", add)
        resp.location = links.Links(self.conf, req).href(
            "servers", f"{server_id}/tags/{urllib.parse.quote(tag, safe='')}"
        )
        http.send_nothing(resp, 204 if tag in former else 201)

    @microversion.between(26)
    def on_delete(self, req: http.Request, resp: falcon.Response, server_id: str, tag: str) -> None:
        """Remove the tag."""
        self._find(req, server_id, "delete")

        def remove(tags: set[str]) -> set[str]:
            if tag not in tags:
                raise exception.InstanceTagNotFound(instance_id=server_id, tag=tag)
            return tags - {tag}

        self._change(server_id, "delete tag", remove)
        http.send_nothing(resp, 204)


def _check_no_body(req: http.Request) -> None:
    if req.content_length:
        schemas.NOTHING.at(req.state.version).check(validation.read(req))


def _check_tag(tag: str) -> None:
    try:
        schemas.TAG.check(tag)
    except exception.ValidationError as error:
        raise exception.InvalidInput(
            f"Tag '{tag[:64]}' is invalid. It must be a non empty string without characters '/' "
            f"and ','. Validation error message: {error.message()}"
        ) from error
