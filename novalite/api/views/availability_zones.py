# SPDX-License-Identifier: Apache-2.0
"""Availability zones as JSON, worked out from the services and the zones of their hosts."""

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from novalite.api import times, zones
from novalite.api.views import services as services_view
from novalite.objects.service import Service

Json = dict[str, Any]


def short(conf: cfg.ConfigOpts, services: list[Service], by_host: Mapping[str, str]) -> list[Json]:
    """Return the zones of computes; one is available when it has an enabled service."""
    computes = [service for service in services if service.binary == services_view.COMPUTE]
    found: dict[str, bool] = {}
    for service in computes:
        zone = zones.of_service(conf, service, by_host)
        found[zone] = found.get(zone, False) or not service.disabled
    return [_zone(name, found[name], None) for name in sorted(found)]


def detail(conf: cfg.ConfigOpts, services: list[Service], by_host: Mapping[str, str]) -> list[Json]:
    """Return all zones with their hosts and services."""
    found: dict[str, Json] = {}
    available: dict[str, bool] = {}
    for service in services:
        zone = zones.of_service(conf, service, by_host)
        available[zone] = available.get(zone, False) or not service.disabled
        if service.disabled:
            continue
        hosts = found.setdefault(zone, {})
        hosts.setdefault(service.host, {})[service.binary] = {
            "available": services_view.state(conf, service) == "up",
            "active": True,
            "updated_at": times.micro(service.last_seen_up),
        }
    return [_zone(name, available[name], found.get(name)) for name in sorted(available)]


def _zone(name: str, available: bool, hosts: Json | None) -> Json:
    return {"zoneName": name, "zoneState": {"available": available}, "hosts": hosts}
