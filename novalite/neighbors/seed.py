# SPDX-License-Identifier: Apache-2.0
"""What a new file of the neighbours holds: accounts, two images, two networks.

Run at every start; makes only what is not there, so a changed file keeps its changes.
"""

import io
import logging
import time
import uuid

from novalite.neighbors.identity import entities, tokens
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.image import records, resources
from novalite.neighbors.image.files import Files
from novalite.neighbors.network.networks import Networks, Subnets
from novalite.neighbors.store import Doc, Store, Tx

LOG = logging.getLogger("novalite.neighbors")

DOMAIN = "default"
PROJECTS = ("admin", "demo", "service")
ROLES = ("admin", "member", "reader", "service")
# The seeds act as an administrator of the project service.
IMAGES = ("cirros", "cirros-alt")
NETWORKS: tuple[tuple[str, Doc, Doc], ...] = (
    (
        "private",
        {"shared": True},
        {"name": "private-subnet", "cidr": "10.0.0.0/16"},
    ),
    (
        "public",
        {"router:external": True},
        {"name": "public-subnet", "cidr": "172.24.0.0/20", "enable_dhcp": False},
    ),
)


def seed(store: Store, passwords: dict[str, str | None]) -> None:
    """Make what is missing.

    :param passwords: of the users admin, demo and nova; a user without one is not made
    """
    files = Files(store.files)
    files.clean()
    with store.write() as tx:
        _reset_uploads(tx)
        if tx.get("domain", DOMAIN) is not None:
            return
        _accounts(tx, passwords)
        service = tx.find("project", name="service", owner=DOMAIN)[0]
        caller = Caller(
            user_id="",
            target=tokens.target_of("project", service["id"]),
            methods=(),
            audit_ids=(),
            issued=0.0,
            expires=0.0,
            roles=frozenset({"admin"}),
        )
        _networks(tx, caller)
        _images(tx, caller, files)
    LOG.info("Made accounts, images and networks in %s", store.path)


def _reset_uploads(tx: Tx) -> None:
    """An upload that was cut off by the end of the process can be done again."""
    for image in tx.find("image"):
        if image["status"] == "saving":
            image.update(status="queued", updated_at=time.time())
            tx.replace("image", image)


def _accounts(tx: Tx, passwords: dict[str, str | None]) -> None:
    nobody = Caller("", "", (), (), 0.0, 0.0)
    kinds = {kind.name: kind for kind in entities.KINDS}
    domain = kinds["domain"].make(tx, nobody, {"name": "Default"})
    tx.insert("domain", {**domain, "id": DOMAIN})
    ids: dict[str, str] = {}
    for kind, names in (("role", ROLES), ("project", PROJECTS)):
        for name in names:
            ids[f"{kind}:{name}"] = tx.insert(kind, kinds[kind].make(tx, nobody, {"name": name}))[
                "id"
            ]
    grants = {
        "admin": (("admin", "admin"), ("demo", "admin")),
        "demo": (("demo", "member"),),
        "nova": (("service", "admin"), ("service", "service")),
    }
    for name, given in grants.items():
        if not passwords.get(name):
            continue
        user = kinds["user"].make(tx, nobody, {"name": name, "password": passwords[name]})
        tx.insert("user", user)
        for project, role in given:
            _grant(tx, user, f"project:{ids[f'project:{project}']}", ids[f"role:{role}"])
        if name == "admin":
            _grant(tx, user, f"domain:{DOMAIN}", ids["role:admin"])
            _grant(tx, user, tokens.SYSTEM, ids["role:admin"])


def _grant(tx: Tx, user: Doc, target: str, role_id: str) -> None:
    tx.run("INSERT INTO assignments VALUES (?, ?, ?)", user["id"], target, role_id)


def _networks(tx: Tx, caller: Caller) -> None:
    networks = Networks()
    subnets = Subnets(networks)
    for name, flags, subnet in NETWORKS:
        network = networks.create(tx, caller, {"name": name, **flags})
        subnets.create(tx, caller, {"network_id": network["id"], **subnet})


def _images(tx: Tx, caller: Caller, files: Files) -> None:
    for name in IMAGES:
        asked = {"name": name, "visibility": "public", "container_format": "bare"}
        doc = records.new(caller, {**asked, "disk_format": "raw", "os_distro": "cirros"})
        # Enough for a client to download and compare; no guest boots from it.
        data = f"novalite stand-in image {name}\n".encode().ljust(4096, b"\0")
        key = uuid.uuid4().hex
        stored = files.write(doc["id"], io.BytesIO(data), key, len(data))
        files.publish(doc["id"], key)
        tx.insert("image", doc)
        resources.activate(tx, doc, stored)
