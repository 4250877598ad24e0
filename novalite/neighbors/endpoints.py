# SPDX-License-Identifier: Apache-2.0
"""Where the services are: the URLs that identity's catalogue and the version documents show.

Made by the server from the sockets it has bound. Image and network are unversioned, since clients
append the version themselves; compute is as configured; block storage names the project.
"""

import hashlib
from dataclasses import dataclass

from novalite.neighbors.store import Doc

INTERFACES = ("public", "internal", "admin")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Base URLs without a slash at the end."""

    region: str
    identity: str
    image: str
    network: str
    volume: str
    compute: str

    def services(self, project_id: str = "") -> list[tuple[str, str, str]]:
        """Return (type, name, URL) of each service as the project reaches it."""
        volume = f"{self.volume}/v3/{project_id}".rstrip("/")
        return [
            ("identity", "keystone", f"{self.identity}/v3"),
            ("image", "glance", self.image),
            ("network", "neutron", self.network),
            ("volumev3", "cinderv3", volume),
            ("block-storage", "cinder", volume),
            ("compute", "nova", self.compute),
        ]

    def catalog(self, project_id: str = "") -> list[Doc]:
        """Return the catalogue as a token of the project carries it."""
        return [
            {
                "id": stable_id(kind),
                "type": kind,
                "name": name,
                "endpoints": [
                    {
                        "id": stable_id(kind, interface),
                        "interface": interface,
                        "region": self.region,
                        "region_id": self.region,
                        "url": url,
                    }
                    for interface in INTERFACES
                ],
            }
            for kind, name, url in self.services(project_id)
        ]


def stable_id(*words: str) -> str:
    """Return an id of 32 hexadecimal digits that is the same at every start."""
    return hashlib.sha256("/".join(words).encode()).hexdigest()[:32]
