# SPDX-License-Identifier: Apache-2.0
"""/os-availability-zone: the zones, and for administrators what is in them."""

import falcon

from novalite.api import http
from novalite.api.parts import Resource
from novalite.api.views import availability_zones as view
from novalite.db import services


class AvailabilityZonesResource(Resource):
    """/os-availability-zone"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List the zones a server can be asked for in."""
        self.policy.check(req.state.context, "os-availability-zone:list")
        found = self.database.read(services.list_all)
        http.send(resp, {"availabilityZoneInfo": view.short(self.conf, found)})


class AvailabilityZonesDetailResource(Resource):
    """/os-availability-zone/detail"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List all zones with hosts and services."""
        self.policy.check(req.state.context, "os-availability-zone:detail")
        found = self.database.read(services.list_all)
        http.send(resp, {"availabilityZoneInfo": view.detail(self.conf, found)})
