# SPDX-License-Identifier: Apache-2.0
"""/os-quota-sets: limits of a project, and with ``user_id`` of one user in it."""

from typing import Any

import falcon
import sqlalchemy as sa

from novalite import exception
from novalite.api import http, paging, quotas, server_request, validation
from novalite.api.parts import Resource
from novalite.api.schemas import quota_sets as schemas
from novalite.api.views import quota_sets as view
from novalite.db import quota_limits
from novalite.db import quotas as db_quotas

_LONGEST = 255


class _Quotas(Resource):
    """What all of them have in common."""

    def _user(self, req: http.Request, project: str) -> str | None:
        """Return the user that is asked about, or None for the project.

        :raises exception.Invalid: an id that nobody can have, or an unknown parameter
        """
        query = paging.values(req)
        paging.refuse_unknown(query, req.state.version, "user_id")
        user = paging.last(query, "user_id") or None
        for kind, name in (("Project", project), ("User", user or "")):
            if len(name) > _LONGEST or not name.isprintable():
                raise exception.InvalidInput(
                    f"{kind} ID {name[:64]!r} is not a valid {kind.lower()}."
                )
        return user

    def _limits(self, project: str, user: str | None) -> quota_limits.Limits:
        options = quotas.options(self.conf)
        return self.database.read(lambda conn: quota_limits.limits(conn, options, project, user))


class QuotaSetResource(_Quotas):
    """/os-quota-sets/{tenant_id}"""

    def on_get(self, req: http.Request, resp: falcon.Response, tenant_id: str) -> None:
        """Show limits."""
        self.policy.check(req.state.context, "os-quota-sets:show", tenant_id)
        found = self._limits(tenant_id, self._user(req, tenant_id))
        shown = view.summary(found, req.state.version)
        http.send(resp, {"quota_set": {"id": tenant_id, **shown}})

    @validation.body(schemas.UPDATE)
    def on_put(self, req: http.Request, resp: falcon.Response, tenant_id: str) -> None:
        """Change some limits: all that were sent, or none if one of them is wrong."""
        self.policy.check(req.state.context, "os-quota-sets:update", tenant_id)
        user = self._user(req, tenant_id)
        body: dict[str, Any] = req.state.body["quota_set"]
        force = server_request.truth("force", body.get("force"))
        asked = {name: int(value) for name, value in body.items() if name != "force"}
        options = quotas.options(self.conf)

        def work(conn: sa.Connection) -> quota_limits.Limits:
            quota_limits.lock(conn, tenant_id)
            if not force:
                found = quota_limits.limits(conn, options, tenant_id, user)
                sums = quota_limits.user_sums(conn, tenant_id, user or "")
                used = _used(conn, tenant_id, user)
                quotas.check_settable(found, sums, used, asked, of_user=user is not None)
            quota_limits.set_limits(conn, tenant_id, user or "", asked)
            return quota_limits.limits(conn, options, tenant_id, user)

        found = self.database.transaction(work)
        http.send(resp, {"quota_set": view.summary(found, req.state.version)})

    def on_delete(self, req: http.Request, resp: falcon.Response, tenant_id: str) -> None:
        """Take the limits of the user back, or those of the project and all its users."""
        self.policy.check(req.state.context, "os-quota-sets:delete", tenant_id)
        user = self._user(req, tenant_id)

        def work(conn: sa.Connection) -> None:
            quota_limits.lock(conn, tenant_id)
            quota_limits.delete_limits(conn, tenant_id, user or "")

        self.database.transaction(work)
        http.send_nothing(resp, 202)


class QuotaSetDefaultsResource(_Quotas):
    """/os-quota-sets/{tenant_id}/defaults"""

    def on_get(self, req: http.Request, resp: falcon.Response, tenant_id: str) -> None:
        """Show the limits of a project that has none of its own."""
        self.policy.check(req.state.context, "os-quota-sets:defaults", tenant_id)
        options = quotas.options(self.conf)
        found = self.database.read(
            lambda conn: quota_limits.of_class(conn, options, quota_limits.DEFAULT_CLASS)
        )
        shown = view.summary(found, req.state.version)
        http.send(resp, {"quota_set": {"id": tenant_id, **shown}})


class QuotaSetDetailResource(_Quotas):
    """/os-quota-sets/{tenant_id}/detail"""

    def on_get(self, req: http.Request, resp: falcon.Response, tenant_id: str) -> None:
        """Show limits, each with what is in use of it."""
        self.policy.check(req.state.context, "os-quota-sets:detail", tenant_id)
        user = self._user(req, tenant_id)
        found = self._limits(tenant_id, user)
        used = self.database.read(lambda conn: _used(conn, tenant_id, user))
        shown = view.detail(found, used, req.state.version)
        http.send(resp, {"quota_set": {"id": tenant_id, **shown}})


def _used(conn: sa.Connection, project: str, user: str | None) -> dict[str, int]:
    """Return what is in use by the project, or by the user in it."""
    found = db_quotas.usages(conn, project, user)
    return {name: usage.project if user is None else usage.user for name, usage in found.items()}
