# SPDX-License-Identifier: Apache-2.0
"""Flavors as JSON."""

from typing import Any

from novalite.api import links
from novalite.objects.flavor import Flavor


def summary(flavor: Flavor, urls: links.Links) -> dict[str, Any]:
    """Return a flavor as in GET /flavors."""
    return {
        "id": flavor.flavorid,
        "name": flavor.name,
        "links": urls.pair("flavors", flavor.flavorid),
    }


def detail(flavor: Flavor, urls: links.Links) -> dict[str, Any]:
    """Return the whole flavor; no swap is shown as an empty text (until 2.75)."""
    return {
        "id": flavor.flavorid,
        "name": flavor.name,
        "ram": flavor.memory_mb,
        "disk": flavor.root_gb,
        "vcpus": flavor.vcpus,
        "swap": flavor.swap_mb or "",
        "rxtx_factor": flavor.rxtx_factor,
        "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gb,
        "OS-FLV-DISABLED:disabled": bool(flavor.disabled),
        "os-flavor-access:is_public": bool(flavor.is_public),
        "links": urls.pair("flavors", flavor.flavorid),
    }


def access(flavorid: str, projects: list[str]) -> dict[str, Any]:
    """Return who may use a private flavor."""
    return {
        "flavor_access": [{"flavor_id": flavorid, "tenant_id": project} for project in projects]
    }
