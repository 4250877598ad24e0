# SPDX-License-Identifier: Apache-2.0
"""Services, and hosts by their compute service, as JSON."""

from collections.abc import Iterable, Mapping
from typing import Any

from oslo_config import cfg

from novalite.api import times, zones
from novalite.objects.service import Service

COMPUTE = "nova-compute"


def status(service: Service) -> str:
    """Return whether the operator lets the service be used."""
    return "disabled" if service.disabled else "enabled"


def state(conf: cfg.ConfigOpts, service: Service) -> str:
    """Return whether the service has been heard of lately."""
    return "up" if service.is_up(float(conf.service_down_time)) else "down"


def detail(
    conf: cfg.ConfigOpts, service: Service, by_host: Mapping[str, str], version: int
) -> dict[str, Any]:
    """Return a service as in GET /os-services.

    :param by_host: the zones that aggregates give to hosts
    """
    shown: dict[str, Any] = {
        "id": service.uuid if version >= 53 else service.id,
        "binary": service.binary,
        "host": service.host,
        "zone": zones.of_service(conf, service, by_host),
        "status": status(service),
        "state": state(conf, service),
        "updated_at": times.micro(service.last_seen_up),
        "disabled_reason": service.disabled_reason,
    }
    if version >= 11:
        shown["forced_down"] = bool(service.forced_down)
    return shown


def host_states(conf: cfg.ConfigOpts, services: Iterable[Service]) -> dict[str, str]:
    """Return what ``host_status`` of a server says, by host."""
    found = {}
    for service in services:
        if state(conf, service) == "down":
            found[service.host] = "DOWN"
        else:
            found[service.host] = "MAINTENANCE" if service.disabled else "UP"
    return found
