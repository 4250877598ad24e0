# SPDX-License-Identifier: Apache-2.0
"""/flavors: list, show, create, delete."""

import uuid
from collections.abc import Callable
from typing import Any

import falcon

from novalite import exception
from novalite.api import http, links, microversion, paging, validation
from novalite.api.parts import Parts, Resource
from novalite.api.schemas import flavors as schemas
from novalite.api.views import flavors as view
from novalite.db import flavors
from novalite.objects.flavor import Flavor

_PARAMETERS = ("limit", "marker", "is_public", "minRam", "minDisk", "sort_key", "sort_dir")


def visible_to(req: http.Request) -> str | None:
    """Return the project whose flavors are visible; None is all of them."""
    context = req.state.context
    return None if context.is_admin else context.project_id or ""


def find(parts: Parts, req: http.Request, flavor_id: str) -> Flavor:
    """Return a flavor that the caller may see.

    :raises exception.FlavorNotFound: there is none
    """
    return parts.database.read(lambda conn: flavors.get(conn, flavor_id, visible_to(req)))


class _Shows(Resource):
    """What all of them have in common."""

    def _view(self, req: http.Request) -> view.FlavorView:
        allowed = self.policy.allows(req.state.context, "os-flavor-extra-specs:index")
        return view.FlavorView(self.conf, req, extra_specs=allowed)


class _Lists(_Shows):
    """What both lists have in common."""

    def _list(
        self,
        req: http.Request,
        resp: falcon.Response,
        collection: str,
        show: Callable[[Flavor], dict[str, Any]],
    ) -> None:
        query = self._query(req)
        found, more = self.database.read(lambda conn: flavors.page(conn, query))
        body: dict[str, Any] = {"flavors": [show(flavor) for flavor in found]}
        if more and found:
            urls = links.Links(self.conf, req)
            body["flavors_links"] = urls.next_page(req, collection, found[-1].flavorid)
        http.send(resp, body)

    def _query(self, req: http.Request) -> flavors.Query:
        values = paging.values(req)
        paging.refuse_unknown(values, req.state.version, *_PARAMETERS)
        page = paging.page(self.conf, values)
        context = req.state.context
        query = flavors.Query(
            project_id=context.project_id,
            min_ram=_size(values, "minRam"),
            min_disk=_size(values, "minDisk"),
            sort=_sort(values),
            marker=page.marker,
            limit=page.limit,
        )
        if not context.is_admin:
            query.disabled = False
            return query
        wanted = paging.last(values, "is_public")
        if wanted is not None:
            query.is_public = None if wanted.lower() == "none" else _is_public(wanted)
        return query


class FlavorsResource(_Lists):
    """/flavors"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List flavors by id and name."""
        self._list(req, resp, "flavors", self._view(req).summary)

    @validation.body(schemas.CREATE)
    def on_post(self, req: http.Request, resp: falcon.Response) -> None:
        """Make a flavor."""
        self.policy.check(req.state.context, "os-flavor-manage:create")
        asked = req.state.body["flavor"]
        key = asked.get("id")
        public = asked.get("os-flavor-access:is_public", True)
        flavor = Flavor(
            flavorid=str(uuid.uuid4()) if key is None or key == "auto" else str(key),
            name=asked["name"],
            vcpus=int(asked["vcpus"]),
            memory_mb=int(asked["ram"]),
            root_gb=int(asked["disk"]),
            ephemeral_gb=int(asked.get("OS-FLV-EXT-DATA:ephemeral", 0)),
            swap_mb=int(asked.get("swap", 0)),
            rxtx_factor=_rxtx_factor(asked.get("rxtx_factor", 1.0)),
            is_public=paging.boolean("is_public", str(public)),
            description=asked.get("description"),
        )
        self.database.transaction(lambda conn: flavors.create(conn, flavor))
        http.send(resp, {"flavor": self._view(req).detail(flavor)})


class FlavorsDetailResource(_Lists):
    """/flavors/detail"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List flavors with everything about them."""
        self._list(req, resp, "flavors/detail", self._view(req).detail)


class FlavorResource(_Shows):
    """/flavors/{flavor_id}"""

    def on_get(self, req: http.Request, resp: falcon.Response, flavor_id: str) -> None:
        """Show a flavor."""
        flavor = find(self.parts, req, flavor_id)
        http.send(resp, {"flavor": self._view(req).detail(flavor)})

    @microversion.between(55)
    @validation.body(schemas.UPDATE)
    def on_put(self, req: http.Request, resp: falcon.Response, flavor_id: str) -> None:
        """Change the description."""
        self.policy.check(req.state.context, "os-flavor-manage:update")
        description = req.state.body["flavor"]["description"]
        flavor = self.database.transaction(
            lambda conn: flavors.describe(conn, flavor_id, description)
        )
        http.send(resp, {"flavor": self._view(req).detail(flavor)})

    def on_delete(self, req: http.Request, resp: falcon.Response, flavor_id: str) -> None:
        """Remove a flavor; servers keep their own copy."""
        self.policy.check(req.state.context, "os-flavor-manage:delete")
        self.database.transaction(lambda conn: flavors.delete(conn, flavor_id))
        http.send_nothing(resp, 202)


def _size(values: dict[str, list[str]], name: str) -> int:
    text = paging.last(values, name)
    return 0 if text is None else paging.number(name, text)


def _sort(values: dict[str, list[str]]) -> list[tuple[str, str]]:
    keys = paging.sorting(values, flavors.SORT, list(flavors.DEFAULT_SORT))
    if values.get("sort_key") and not values.get("sort_dir"):
        return [(key, "asc") for key, _way in keys]
    return keys


def _is_public(text: str) -> bool:
    word = text.strip().lower()
    if word not in paging.TRUE | paging.FALSE:
        raise exception.InvalidInput(f"Invalid is_public filter [{text[:64]}]")
    return word in paging.TRUE


def _rxtx_factor(value: Any) -> float:
    factor = float(value)
    if not 0 < factor <= 3.40282e38:
        raise exception.InvalidInput("rxtx_factor must be a positive number up to 3.40282e+38")
    return factor
