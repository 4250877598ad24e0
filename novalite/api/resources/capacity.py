# SPDX-License-Identifier: Apache-2.0
"""/novalite/capacity: how many more servers of a flavor fit; ours, not Nova's."""

import falcon

from novalite.api import http, questions, validation
from novalite.api.parts import Resource
from novalite.api.schemas import capacity as schemas
from novalite.api.views import capacity as view


class CapacityResource(Resource):
    """/novalite/capacity"""

    @validation.body(schemas.ASK)
    def on_post(self, req: http.Request, resp: falcon.Response) -> None:
        """Count how many servers more fit, host by host, and say what binds."""
        self.policy.check(req.state.context, "novalite:capacity")
        asked = req.state.body["capacity"]
        flavor, report = questions.capacity(self.parts, req.state.context, asked)
        http.send(resp, view.show(flavor, report))
