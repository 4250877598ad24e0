# SPDX-License-Identifier: Apache-2.0
"""Who asks: the request context that goes through API, bus and logs."""

from typing import Any

from oslo_context import context


class RequestContext(context.RequestContext):
    """oslo.context's RequestContext under Nova's reading.

    ``is_admin`` is what its maker says: the API asks the policy rule context_is_admin, the bus
    carries the answer. Only where nobody has said so, the role ``admin`` decides. It is serialized
    without the token: no process behind the API needs the user's token, since neighbours are called
    with the service's own credentials.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if kwargs.get("is_admin") is None:
            self.is_admin = "admin" in (self.roles or [])

    def to_wire(self) -> dict[str, Any]:
        """Return the few fields that travel over the bus."""
        return {
            "request_id": self.request_id,
            "global_request_id": self.global_request_id,
            "user_id": self.user_id,
            "project_id": self.project_id,
            "roles": list(self.roles or []),
            "is_admin": self.is_admin,
        }


def from_wire(values: dict[str, Any]) -> RequestContext:
    """Return the context that :meth:`RequestContext.to_wire` wrote."""
    known = ("request_id", "global_request_id", "user_id", "project_id", "roles", "is_admin")
    return RequestContext(
        overwrite=False, **{name: values[name] for name in known if values.get(name) is not None}
    )


def service_context() -> RequestContext:
    """Return a context for work that no user asked for; the log shows ``- - - - -`` for it."""
    return RequestContext(is_admin=True, overwrite=False)
