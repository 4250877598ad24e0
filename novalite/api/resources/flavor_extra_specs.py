# SPDX-License-Identifier: Apache-2.0
"""/flavors/{flavor_id}/os-extra_specs: properties that filters and drivers read."""

from typing import Any

import falcon

from novalite import exception
from novalite.api import http, validation
from novalite.api.parts import Resource
from novalite.api.resources import flavors as flavors_resource
from novalite.api.schemas import flavors as schemas
from novalite.db import flavors


class FlavorExtraSpecsResource(Resource):
    """/flavors/{flavor_id}/os-extra_specs"""

    def on_get(self, req: http.Request, resp: falcon.Response, flavor_id: str) -> None:
        """List all extra specs."""
        self.policy.check(req.state.context, "os-flavor-extra-specs:index")
        flavor = flavors_resource.find(self.parts, req, flavor_id)
        http.send(resp, {"extra_specs": flavor.extra_specs})

    @validation.body(schemas.EXTRA_SPECS)
    def on_post(self, req: http.Request, resp: falcon.Response, flavor_id: str) -> None:
        """Add or replace extra specs."""
        self.policy.check(req.state.context, "os-flavor-extra-specs:create")
        specs = _texts(req.state.body["extra_specs"])
        self.database.transaction(lambda conn: flavors.put_extra_specs(conn, flavor_id, specs))
        http.send(resp, {"extra_specs": specs})


class FlavorExtraSpecResource(Resource):
    """/flavors/{flavor_id}/os-extra_specs/{key}"""

    def on_get(self, req: http.Request, resp: falcon.Response, flavor_id: str, key: str) -> None:
        """Show one extra spec."""
        self.policy.check(req.state.context, "os-flavor-extra-specs:show")
        flavor = flavors_resource.find(self.parts, req, flavor_id)
        if key not in flavor.extra_specs:
            raise exception.FlavorExtraSpecNotFound(flavor_id=flavor_id, key=key)
        http.send(resp, {key: flavor.extra_specs[key]})

    @validation.body(schemas.EXTRA_SPEC)
    def on_put(self, req: http.Request, resp: falcon.Response, flavor_id: str, key: str) -> None:
        """Replace one extra spec."""
        self.policy.check(req.state.context, "os-flavor-extra-specs:update")
        if key not in req.state.body:
            raise exception.InvalidInput("Request body and URI mismatch")
        specs = _texts({key: req.state.body[key]})
        self.database.transaction(lambda conn: flavors.put_extra_specs(conn, flavor_id, specs))
        http.send(resp, specs)

    def on_delete(self, req: http.Request, resp: falcon.Response, flavor_id: str, key: str) -> None:
        """Remove one extra spec."""
        self.policy.check(req.state.context, "os-flavor-extra-specs:delete")
        self.database.transaction(lambda conn: flavors.delete_extra_spec(conn, flavor_id, key))
        http.send_nothing(resp, 200)


def _texts(specs: dict[str, Any]) -> dict[str, str]:
    """Return values as text.

    :raises exception.ValidationError: a number has more digits than a text may have characters
    """
    texts = {key: str(value) for key, value in specs.items()}
    for key, text in texts.items():
        if len(text) > schemas.LONGEST:
            raise exception.ValidationError(
                detail=f"Invalid input for field/attribute {key}. Value: {text[:200]}... "
                f"It has more than {schemas.LONGEST} characters."
            )
    return texts
