# SPDX-License-Identifier: Apache-2.0
"""Which schemas the body of a request may have, as the handlers themselves say.

Called by :mod:`novalite.api.openapi.document`. What a handler decides by hand is in tables here; a
test finds every schema that is in none of them.
"""

import functools
import importlib
import pkgutil
from typing import Any

from novalite.api import microversion, schemas, validation
from novalite.api.resources import aggregates, flavor_access, server_actions
from novalite.api.schemas import server_tags, services

Ranges = microversion.Ranges

_SERVICE = "/v2.1/os-services/{service_id}"
# Verbs in the place of an id, until 2.52: (since, last word of the URL, schema).
VERBS: tuple[tuple[int, str, Ranges], ...] = (
    (1, "enable", services.SWITCH),
    (1, "disable", services.SWITCH),
    (1, "disable-log-reason", services.DISABLE_LOG_REASON),
    (11, "force-down", services.FORCE_DOWN),
)
# Bodies that the handlers read themselves.
_BY_HAND: dict[tuple[str, str], list[Ranges]] = {
    ("PUT", _SERVICE): [services.UPDATE],
    ("PUT", "/v2.1/servers/{server_id}/tags/{tag}"): [server_tags.NOTHING],
    ("POST", "/v2.1/servers/{server_id}/action"): [
        ranges for ranges, _rule, _action in server_actions.ACTIONS.values()
    ],
    ("POST", "/v2.1/flavors/{flavor_id}/action"): [
        ranges for ranges, _rule, _change in flavor_access.ACTIONS.values()
    ],
    ("POST", "/v2.1/os-aggregates/{aggregate_id}/action"): [
        ranges for ranges, _rule, _member, _change in aggregates.ACTIONS.values()
    ],
}


def of(method: str, url: str, handler: Any) -> list[Ranges]:
    """Return the schemas one of which a body must fit; none if the handler takes no body."""
    found = _BY_HAND.get((method, url))
    if found is not None:
        return found
    ranges = validation.body_of(handler)
    return [] if ranges is None else [ranges]


@functools.cache
def named() -> tuple[tuple[str, Ranges], ...]:
    """Return (name, schemas) for all of :mod:`novalite.api.schemas`.

    Those that only say that a body has one key are left out: the actions say which keys.
    """
    found = []
    for info in pkgutil.iter_modules(schemas.__path__):
        module = importlib.import_module(f"{schemas.__name__}.{info.name}")
        for name, value in vars(module).items():
            if isinstance(value, Ranges) and name != "ACTION":
                found.append((f"{info.name}.{name}", value))
    return tuple(found)


def name_of(ranges: Ranges) -> str:
    """Return the name of schemas.

    :raises KeyError: they are not in :mod:`novalite.api.schemas`
    """
    return {id(one): name for name, one in named()}[id(ranges)]
