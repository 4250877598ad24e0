# SPDX-License-Identifier: Apache-2.0
"""/os-availability-zone: the zones, and for administrators what is in them."""

import falcon
import sqlalchemy as sa

from novalite.api import http
from novalite.api.parts import Resource
from novalite.api.views import availability_zones as view
from novalite.db import aggregates, services
from novalite.objects.service import Service


def _services_and_zones(conn: sa.Connection) -> tuple[list[Service], dict[str, str]]:
    return services.list_all(conn), aggregates.zones(conn)


class AvailabilityZonesResource(Resource):
    """/os-availability-zone"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List the zones a server can be asked for in."""
        self.policy.check(req.state.context, "os-availability-zone:list")
        found, by_host = self.database.read(_services_and_zones)
        http.send(resp, {"availabilityZoneInfo": view.short(self.conf, found, by_host)})


class AvailabilityZonesDetailResource(Resource):
    """/os-availability-zone/detail"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List all zones with hosts and services."""
        self.policy.check(req.state.context, "os-availability-zone:detail")
        found, by_host = self.database.read(_services_and_zones)
        http.send(resp, {"availabilityZoneInfo": view.detail(self.conf, found, by_host)})
