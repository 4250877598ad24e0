# SPDX-License-Identifier: Apache-2.0
"""Where a create asks to be placed, subject to the filters: host and hypervisor_hostname (2.74).

Called by :mod:`novalite.api.operations`; what forces a host past the filters is in zones.py.
"""

from novalite import context as context_module
from novalite import exception
from novalite.api import server_request
from novalite.api.parts import Parts
from novalite.db import compute_nodes


def check(
    parts: Parts, context: context_module.RequestContext, request: server_request.ServerRequest
) -> None:
    """Refuse a destination that does not exist, or that the caller may not name.

    :raises exception.PolicyNotAuthorized: it is for administrators
    :raises exception.InvalidInput: the zone names a host too
    :raises exception.HostInBodyNotFound: there is no such host or node
    """
    host, node = request.host, request.hypervisor_hostname
    if host is None and node is None:
        return
    parts.policy.check(context, "compute:servers:create:requested_destination")
    if request.zone.forced:
        raise exception.InvalidInput(
            "One mechanism with host and/or hypervisor_hostname and another mechanism with "
            "zone:host:node are mutually exclusive."
        )
    if not parts.database.read(lambda conn: compute_nodes.exists(conn, host, node)):
        raise exception.HostInBodyNotFound(host=host or node)
