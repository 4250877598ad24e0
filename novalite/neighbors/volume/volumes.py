# SPDX-License-Identifier: Apache-2.0
"""Resources of block storage v3: volumes and what is done to them."""

import logging
import time
from typing import Any

import falcon

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.image import records as images
from novalite.neighbors.image.files import Files
from novalite.neighbors.store import Doc, Store, Tx
from novalite.neighbors.volume import records

LOG = logging.getLogger("novalite.neighbors")

MOST = 1000
_CHUNK = 2**20
_MIB = 2**20


def check_project(req: falcon.Request, project_id: str) -> Caller:
    """Return who asks, if the URL's project is his; administrators may name any.

    :raises Fault: 400
    """
    caller = http.caller(req)
    if not caller.is_admin and project_id != caller.project_id:
        raise Fault(400, "Malformed request url")
    return caller


class Volumes:
    """``/v3/{project}/volumes`` and ``/volumes/detail``."""

    def __init__(self, store: Store, base: str, seconds: float):
        """Make the resource.

        :param seconds: how long the making of a volume takes
        """
        self._store = store
        self._files = Files(store.files)
        self._base = base
        self._seconds = seconds

    def on_get(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """List volumes by id and name."""
        self._list(req, resp, project_id, detail=False)

    def on_get_detail(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """List volumes with everything about them."""
        self._list(req, resp, project_id, detail=True)

    def _list(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, *, detail: bool
    ) -> None:
        caller, params = check_project(req, project_id), http.query(req)
        with self._store.read() as tx:
            docs = records.listed(tx, caller, project_id, params)
            docs, more = http.page(docs, params, http.limit(params, MOST))
            shown = [
                records.shown(tx, caller, doc, self._base)
                if detail
                else records.short(doc, self._base)
                for doc in docs
            ]
        body: Doc = {"volumes": shown}
        if more and docs:
            size = http.limit(params, MOST)
            href = f"{self._base}{req.path}?limit={size}&marker={docs[-1]['id']}"
            body["volumes_links"] = [{"rel": "next", "href": href}]
        http.reply(resp, body)

    def on_post(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """Make a volume, empty or from an image."""
        caller, asked = check_project(req, project_id), http.body_object(req, "volume")
        image = self._image(caller, asked.get("imageRef"))
        doc = records.new(caller, project_id, asked, image, self._seconds)
        if image is not None:
            self._download(image, doc)
        with self._store.write() as tx:
            tx.insert("volume", doc)
        http.reply(resp, {"volume": records.created(doc, self._base)}, 202)

    def _image(self, caller: Caller, image_id: Any) -> Doc | None:
        if not image_id:
            return None
        with self._store.read() as tx:
            doc = tx.get("image", str(image_id))
            if doc is None or not images.visible(tx, caller, doc):
                raise Fault(400, "Invalid image identifier or unable to access requested image.")
        if doc["status"] != "active":
            raise Fault(400, f"Invalid input received: Image {image_id} is not active.")
        return doc

    def _download(self, image: Doc, volume: Doc) -> None:
        """Read the image as the making of a volume does; no guest ever reads the copy."""
        began, size = time.monotonic(), 0
        try:
            with self._files.path(image["id"]).open("rb") as data:
                while piece := data.read(_CHUNK):
                    size += len(piece)
        except FileNotFoundError as error:
            raise Fault(400, f"Invalid input received: Image {image['id']} is gone.") from error
        rate = size / _MIB / max(time.monotonic() - began, 1e-6)
        LOG.info("Image download %.2f MB at %.2f MB/s", size / _MIB, rate)
        LOG.info("Volume %s is made from image %s", volume["id"], image["id"])


class Volume:
    """``/v3/{project}/volumes/{id}``."""

    def __init__(self, store: Store, base: str):
        self._store = store
        self._base = base

    def on_get(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, volume_id: str
    ) -> None:
        """Show a volume."""
        caller = check_project(req, project_id)
        with self._store.read() as tx:
            doc = records.get(tx, caller, volume_id)
            shown = records.shown(tx, caller, doc, self._base)
        http.reply(resp, {"volume": shown})

    def on_put(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, volume_id: str
    ) -> None:
        """Change name and description."""
        caller, asked = check_project(req, project_id), http.body_object(req, "volume")
        with self._store.write() as tx:
            doc = records.get(tx, caller, volume_id)
            for key in ("name", "description"):
                if isinstance(asked.get(key), str):
                    doc[key] = asked[key]
            _touch(tx, doc)
            shown = records.shown(tx, caller, doc, self._base)
        http.reply(resp, {"volume": shown})

    def on_delete(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, volume_id: str
    ) -> None:
        """Delete a volume that nothing uses."""
        caller = check_project(req, project_id)
        with self._store.write() as tx:
            doc = records.get(tx, caller, volume_id)
            used = tx.count("attachment", parent=volume_id)
            forced = caller.is_admin and http.boolean(http.query(req).get("force"))
            if used or (records.status(doc) not in ("available", "error") and not forced):
                raise records.invalid(
                    "Volume status must be available or error or error_restoring or "
                    "error_extending or error_managing and must not be migrating, attached, "
                    "belong to a group, have snapshots, awaiting a transfer, or be "
                    "disassociated from snapshots after volume transfer."
                )
            tx.remove("volume", volume_id)
        resp.status = 202


def _touch(tx: Tx, doc: Doc) -> None:
    doc["updated_at"] = time.time()
    tx.replace("volume", doc)


class Action:
    """``/v3/{project}/volumes/{id}/action``."""

    def __init__(self, store: Store):
        self._store = store

    def on_post(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, volume_id: str
    ) -> None:
        """Do what the one key of the body says."""
        caller, body = check_project(req, project_id), http.body(req)
        if not isinstance(body, dict) or len(body) != 1:
            raise Fault(400, "The body must be an object with the name of one action.")
        [(name, asked)] = body.items()
        if not isinstance(asked, dict):
            asked = {}
        with self._store.write() as tx:
            doc = records.get(tx, caller, volume_id)
            if name == "os-force_delete":
                _force_delete(tx, caller, doc)
                resp.status = 202
                return
            if name == "os-set_bootable":
                doc["bootable"] = asked.get("bootable") in (True, "true", "True")
                resp.status = 200
            elif name == "os-reset_status":
                _reset(caller, doc, asked)
                resp.status = 202
            else:
                raise Fault(400, f"There is no such action: {name}")
            _touch(tx, doc)


def _force_delete(tx: Tx, caller: Caller, doc: Doc) -> None:
    if not caller.is_admin:
        raise Fault(403, "Policy doesn't allow volume_extension:volume_admin_actions:force_delete.")
    if tx.count("attachment", parent=doc["id"]):
        raise records.invalid(f"Volume {doc['id']} is still attached, detach volume first.")
    tx.remove("volume", doc["id"])


def _reset(caller: Caller, doc: Doc, asked: Doc) -> None:
    if not caller.is_admin:
        raise Fault(403, "Policy doesn't allow volume_extension:volume_admin_actions:reset_status.")
    status = asked.get("status")
    if status not in records.STATES:
        raise Fault(400, f"Must specify a valid status: {', '.join(records.STATES)}")
    doc["status"] = status
    doc["ready_at"] = 0.0
