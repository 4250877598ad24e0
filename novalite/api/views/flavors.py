# SPDX-License-Identifier: Apache-2.0
"""Flavors as JSON."""

from typing import Any

from oslo_config import cfg

from novalite.api import http, links
from novalite.objects.flavor import Flavor


class FlavorView:
    """Shows flavors to one request.

    :param extra_specs: the caller may see them; they are shown from 2.61 on
    """

    def __init__(self, conf: cfg.ConfigOpts, req: http.Request, *, extra_specs: bool):
        self._version = req.state.version
        self._links = links.Links(conf, req)
        self._extra_specs = extra_specs and self._version >= 61

    def summary(self, flavor: Flavor) -> dict[str, Any]:
        """Return a flavor as in GET /flavors."""
        shown: dict[str, Any] = {
            "id": flavor.flavorid,
            "name": flavor.name,
            "links": self._links.pair("flavors", flavor.flavorid),
        }
        if self._version >= 55:
            shown["description"] = flavor.description
        return shown

    def detail(self, flavor: Flavor) -> dict[str, Any]:
        """Return the whole flavor; no swap is shown as an empty text until 2.74, then as 0."""
        shown = self.summary(flavor)
        shown.update(
            {
                "ram": flavor.memory_mb,
                "disk": flavor.root_gb,
                "vcpus": flavor.vcpus,
                "swap": flavor.swap_mb or (0 if self._version >= 75 else ""),
                "rxtx_factor": flavor.rxtx_factor,
                "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gb,
                "OS-FLV-DISABLED:disabled": bool(flavor.disabled),
                "os-flavor-access:is_public": bool(flavor.is_public),
            }
        )
        if self._extra_specs:
            shown["extra_specs"] = flavor.extra_specs
        return shown


def access(flavorid: str, projects: list[str]) -> dict[str, Any]:
    """Return who may use a private flavor."""
    return {
        "flavor_access": [{"flavor_id": flavorid, "tenant_id": project} for project in projects]
    }
