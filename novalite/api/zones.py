# SPDX-License-Identifier: Apache-2.0
"""Availability zones: the words in a request, and which zones there are."""

from collections.abc import Mapping
from dataclasses import dataclass

from oslo_config import cfg

from novalite import exception
from novalite.db import aggregates, engine
from novalite.objects.service import Service

MAX_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Wanted:
    """What ``availability_zone`` asks for; a host or node in it is forced."""

    zone: str | None = None
    host: str | None = None
    node: str | None = None

    @property
    def forced(self) -> bool:
        """Tell whether the filters are to be skipped."""
        return self.host is not None or self.node is not None


def parse(text: str | None, default: str | None) -> Wanted:
    """Read ZONE, ZONE:HOST, ZONE:HOST:NODE, ZONE::NODE or :HOST; no zone is the *default* one.

    A colon announces a host or a node, so one that nothing follows is refused.

    :raises exception.InvalidInput: more than two colons, or an empty part
    """
    if text is None:
        return Wanted(zone=default)
    zone, *rest = text.split(":")
    host = rest[0] if rest else ""
    node = rest[1] if len(rest) > 1 else ""
    if len(rest) > 2 or (rest and not rest[-1]) or text != text.strip() or not text:
        raise exception.InvalidInput(
            reason=f"availability_zone '{text[:MAX_LENGTH]}' must be ZONE, ZONE:HOST, "
            "ZONE:HOST:NODE or ZONE::NODE"
        )
    return Wanted(zone or default, host or None, node or None)


def check(conf: cfg.ConfigOpts, database: engine.Database, wanted: Wanted) -> None:
    """Refuse a zone that no host can be in; a forced host is looked for whatever its zone.

    The default zone is the one of all hosts that no aggregate gives another, so it is always there.

    :raises exception.ZoneNotAvailable: no aggregate with a host has this zone
    """
    zone = wanted.zone
    if zone is None or wanted.forced or zone == conf.default_availability_zone:
        return
    if not database.read(lambda conn: aggregates.zone_has_hosts(conn, zone)):
        raise exception.ZoneNotAvailable()


def of_service(conf: cfg.ConfigOpts, service: Service, by_host: Mapping[str, str]) -> str:
    """Return the zone shown for a service.

    :param by_host: the zones that aggregates give to hosts, see :mod:`novalite.db.aggregates`
    """
    if service.binary == "nova-compute":
        return by_host.get(service.host) or str(conf.default_availability_zone)
    return str(conf.internal_service_availability_zone)
