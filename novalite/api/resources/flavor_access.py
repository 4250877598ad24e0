# SPDX-License-Identifier: Apache-2.0
"""/flavors/{flavor_id}/os-flavor-access and /action: who may use a flavor that is not public."""

from collections.abc import Callable
from typing import Any

import falcon
import sqlalchemy as sa

from novalite import exception
from novalite.api import http, microversion, validation
from novalite.api.parts import Resource
from novalite.api.schemas import flavors as schemas
from novalite.api.views import flavors as view
from novalite.db import flavors


class FlavorAccessResource(Resource):
    """/flavors/{flavor_id}/os-flavor-access"""

    def on_get(self, req: http.Request, resp: falcon.Response, flavor_id: str) -> None:
        """List the projects with access; a public flavor has no such list."""
        self.policy.check(req.state.context, "os-flavor-access")

        def work(conn: sa.Connection) -> list[str]:
            if flavors.get(conn, flavor_id).is_public:
                raise exception.NotFound("Access list not available for public flavors.")
            return flavors.access(conn, flavor_id)

        http.send(resp, view.access(flavor_id, self.database.read(work)))


Change = Callable[[sa.Connection, str, str], None]
ACTIONS: dict[str, tuple[microversion.Ranges, str, Change]] = {
    "addTenantAccess": (
        schemas.ADD_ACCESS,
        "os-flavor-access:add_tenant_access",
        flavors.add_access,
    ),
    "removeTenantAccess": (
        schemas.REMOVE_ACCESS,
        "os-flavor-access:remove_tenant_access",
        flavors.remove_access,
    ),
}


class FlavorActionResource(Resource):
    """/flavors/{flavor_id}/action"""

    @validation.body(schemas.ACTION)
    def on_post(self, req: http.Request, resp: falcon.Response, flavor_id: str) -> None:
        """Give a project access, or take it."""
        name = next(iter(req.state.body))
        if name not in ACTIONS:
            raise exception.InvalidInput(f"There is no such action: {name[:64]}")
        ranges, rule, change = ACTIONS[name]
        self.policy.check(req.state.context, rule)
        ranges.at(req.state.version).check(req.state.body)
        project = req.state.body[name]["tenant"]

        def work(conn: sa.Connection) -> Any:
            flavor = flavors.get(conn, flavor_id)
            if flavor.is_public and name == "addTenantAccess":
                raise exception.Conflict("Can not add access to a public flavor.")
            change(conn, flavor_id, project)
            return flavors.access(conn, flavor_id)

        http.send(resp, view.access(flavor_id, self.database.transaction(work)))
