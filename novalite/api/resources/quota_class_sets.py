# SPDX-License-Identifier: Apache-2.0
"""/os-quota-class-sets: limits of all projects that have none of their own.

Only the class ``default`` is ever looked at; others can be set and shown, as in Nova.
"""

import falcon

from novalite import exception
from novalite.api import http, quotas, validation
from novalite.api.parts import Resource
from novalite.api.schemas import quota_class_sets as schemas
from novalite.api.views import quota_class_sets as view
from novalite.db import quota_limits

_LONGEST = 255


class QuotaClassSetResource(Resource):
    """/os-quota-class-sets/{quota_class}"""

    def on_get(self, req: http.Request, resp: falcon.Response, quota_class: str) -> None:
        """Show the limits of a class."""
        self.policy.check(req.state.context, "os-quota-class-sets:show")
        _check(quota_class)
        found = self._limits(quota_class)
        shown = view.detail(found, req.state.version)
        http.send(resp, {"quota_class_set": {"id": quota_class, **shown}})

    @validation.body(schemas.UPDATE)
    def on_put(self, req: http.Request, resp: falcon.Response, quota_class: str) -> None:
        """Change some of the limits of a class."""
        self.policy.check(req.state.context, "os-quota-class-sets:update")
        _check(quota_class)
        asked = {name: int(text) for name, text in req.state.body["quota_class_set"].items()}
        self.database.transaction(
            lambda conn: quota_limits.set_class_limits(conn, quota_class, asked)
        )
        found = self._limits(quota_class)
        http.send(resp, {"quota_class_set": view.detail(found, req.state.version)})

    def _limits(self, quota_class: str) -> quota_limits.Limits:
        options = quotas.options(self.conf)
        return self.database.read(lambda conn: quota_limits.of_class(conn, options, quota_class))


def _check(quota_class: str) -> None:
    if len(quota_class) > _LONGEST or not quota_class.isprintable():
        raise exception.InvalidInput("The name of a quota class has at most 255 characters.")
