# SPDX-License-Identifier: Apache-2.0
"""Resources of image v2: images, their data and their state."""

import logging
import sqlite3
import time
import uuid
from urllib import parse

import falcon

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.image import patch, records
from novalite.neighbors.image.files import Files, Stored
from novalite.neighbors.store import Doc, Store, Tx

LOG = logging.getLogger("novalite.neighbors")

MOST = 1000
DEFAULT_LIMIT = 100


class Images:
    """``/v2/images``."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """List images, newest first unless the query says otherwise."""
        params = http.query(req)
        with self._store.read() as tx:
            docs = records.listed(tx, http.caller(req), params)
        keys, directions = _sorting(params)
        docs = http.sort(docs[::-1], keys, directions)
        size = http.limit(params, MOST) if "limit" in params else DEFAULT_LIMIT
        docs, more = http.page(docs, params, size)
        body: Doc = {
            "images": [records.view(doc) for doc in docs],
            "first": _link(req, params, None),
            "schema": "/v2/schemas/images",
        }
        if more and docs:
            body["next"] = _link(req, params, docs[-1]["id"])
        http.reply(resp, body)

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Make a record without data."""
        doc = records.new(http.caller(req), http.body(req))
        try:
            with self._store.write() as tx:
                tx.insert("image", doc)
        except sqlite3.IntegrityError as error:
            raise http.integrity(error, f"Image ID {doc['id']} already exists!") from error
        resp.set_header("Location", f"{req.prefix}/v2/images/{doc['id']}")
        http.reply(resp, records.view(doc), 201)


def _sorting(params: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    if "sort" in params:
        pairs = [item.partition(":") for item in params["sort"][-1].split(",")]
        return [key for key, _, _ in pairs], [word or "desc" for _, _, word in pairs]
    keys = params.get("sort_key") or ["created_at"]
    directions = params.get("sort_dir") or ["desc"]
    if len(directions) == 1:
        directions = directions * len(keys)
    return keys, directions


def _link(req: falcon.Request, params: dict[str, list[str]], marker: str | None) -> str:
    kept = {key: values for key, values in params.items() if key != "marker"}
    if marker:
        kept["marker"] = [marker]
    text = parse.urlencode(kept, doseq=True)
    return f"/v2/images?{text}" if text else "/v2/images"


class Image:
    """``/v2/images/{id}``."""

    def __init__(self, store: Store, files: Files):
        self._store = store
        self._files = files

    def on_get(self, req: falcon.Request, resp: falcon.Response, image_id: str) -> None:
        """Show an image."""
        with self._store.read() as tx:
            doc = records.get(tx, http.caller(req), image_id)
        http.reply(resp, records.view(doc))

    def on_patch(self, req: falcon.Request, resp: falcon.Response, image_id: str) -> None:
        """Change an image."""
        media_type = (req.content_type or "").partition(";")[0].strip()
        if media_type not in patch.MEDIA_TYPES:
            raise Fault(415, f"The content type must be {patch.MEDIA_TYPES[0]}.")
        operations, caller = http.body(req), http.caller(req)
        with self._store.write() as tx:
            doc = records.get_owned(tx, caller, image_id, "modify")
            patch.apply(caller, doc, operations)
            doc["updated_at"] = time.time()
            tx.replace("image", doc)
        http.reply(resp, records.view(doc))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, image_id: str) -> None:
        """Delete an image with its data."""
        with self._store.write() as tx:
            doc = records.get_owned(tx, http.caller(req), image_id, "delete")
            if doc["protected"]:
                raise Fault(403, f"Image {image_id} is protected and cannot be deleted.")
            tx.remove("image", image_id)
            tx.run("DELETE FROM members WHERE image_id = ?", image_id)
        self._files.remove(image_id)
        LOG.info("Image %s (%s) was deleted", image_id, doc["name"])
        resp.status = 204


class ImageFile:
    """``/v2/images/{id}/file``."""

    def __init__(self, store: Store, files: Files):
        self._store = store
        self._files = files

    def on_get(self, req: falcon.Request, resp: falcon.Response, image_id: str) -> None:
        """Give the data; 204 while there is none."""
        with self._store.read() as tx:
            doc = records.get(tx, http.caller(req), image_id)
        if doc["status"] == "deactivated" and not http.caller(req).is_admin:
            raise Fault(
                403, "The requested image has been deactivated. Image data download is forbidden."
            )
        if doc["status"] not in ("active", "deactivated"):
            resp.status = 204
            return
        try:
            data = self._files.read(image_id)
        except FileNotFoundError as error:
            raise Fault(404, f"The data of image {image_id} could not be found.") from error
        resp.content_type = "application/octet-stream"
        resp.set_header("Content-MD5", doc["checksum"])
        resp.set_stream(data, doc["size"])

    def on_put(self, req: falcon.Request, resp: falcon.Response, image_id: str) -> None:
        """Take the data: the image is ``saving`` meanwhile and ``active`` in the end."""
        media_type = (req.content_type or "").partition(";")[0].strip()
        if media_type != "application/octet-stream":
            raise Fault(415, "The content type must be application/octet-stream.")
        caller = http.caller(req)
        with self._store.write() as tx:
            doc = records.get_owned(tx, caller, image_id, "modify")
            _may_upload(doc)
            _set_status(tx, doc, "saving")
        key = uuid.uuid4().hex
        try:
            stored = self._files.write(image_id, http.stream(req), key, req.content_length)
        except Exception as error:
            with self._store.write() as tx:
                left = tx.get("image", image_id)
                if left is not None and left["status"] == "saving":
                    _set_status(tx, left, "queued")
            LOG.warning("Upload of image %s ended early: %s", image_id, error)
            raise Fault(400, f"The data of image {image_id} did not arrive: {error}") from error
        self._finish(image_id, key, stored)
        resp.status = 204

    def _finish(self, image_id: str, key: str, stored: Stored) -> None:
        with self._store.write() as tx:
            doc = tx.get("image", image_id)
            if doc is not None:
                # Inside the transaction, so that a delete comes before or after both.
                self._files.publish(image_id, key)
                activate(tx, doc, stored)
        if doc is None:
            self._files.discard(image_id, key)
            raise Fault(410, f"Image {image_id} was deleted while its data came in.")
        LOG.info("Image %s (%s) is active with %d bytes", image_id, doc["name"], stored.size)


def activate(tx: Tx, doc: Doc, stored: Stored) -> None:
    """Write what is known of the data now that it is all there."""
    doc.update(
        size=stored.size,
        checksum=stored.md5,
        os_hash_algo="sha512",
        os_hash_value=stored.sha512,
    )
    if doc["disk_format"] == "raw":
        doc["virtual_size"] = stored.size
    _set_status(tx, doc, "active")


def _may_upload(doc: Doc) -> None:
    if doc["status"] != "queued":
        raise Fault(409, f"Image status transition from {doc['status']} to saving is not allowed")
    missing = [key for key in ("disk_format", "container_format") if not doc[key]]
    if missing:
        raise Fault(400, f"Properties {', '.join(missing)} must be set prior to saving data.")


def _set_status(tx: Tx, doc: Doc, status: str) -> None:
    doc["status"] = status
    doc["updated_at"] = time.time()
    tx.replace("image", doc)


class Action:
    """``/v2/images/{id}/actions/deactivate`` and ``reactivate``."""

    def __init__(self, store: Store, source: str, target: str):
        self._store = store
        self._source = source
        self._target = target

    def on_post(self, req: falcon.Request, resp: falcon.Response, image_id: str) -> None:
        """Move the image from one state to the other; being there already is fine."""
        caller = http.caller(req)
        with self._store.write() as tx:
            doc = records.get_owned(tx, caller, image_id, "modify")
            if doc["status"] not in (self._source, self._target):
                raise Fault(
                    403,
                    f"Not allowed to move an image from {doc['status']} to {self._target}.",
                )
            _set_status(tx, doc, self._target)
        resp.status = 204


class Tag:
    """``/v2/images/{id}/tags/{tag}``."""

    def __init__(self, store: Store):
        self._store = store

    def on_put(self, req: falcon.Request, resp: falcon.Response, image_id: str, tag: str) -> None:
        """Add a tag."""
        caller = http.caller(req)
        with self._store.write() as tx:
            doc = records.get_owned(tx, caller, image_id, "modify")
            records.assign(caller, doc, "tags", [*doc["tags"], tag])
            tx.replace("image", doc)
        resp.status = 204

    def on_delete(
        self, req: falcon.Request, resp: falcon.Response, image_id: str, tag: str
    ) -> None:
        """Take a tag away."""
        with self._store.write() as tx:
            doc = records.get_owned(tx, http.caller(req), image_id, "modify")
            if tag not in doc["tags"]:
                raise Fault(404, f"Image {image_id} has no tag '{tag}'.")
            doc["tags"].remove(tag)
            tx.replace("image", doc)
        resp.status = 204


class Tasks:
    """``/v2/images/{id}/tasks``: the stand-in works without tasks."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response, image_id: str) -> None:
        """List none."""
        with self._store.read() as tx:
            records.get(tx, http.caller(req), image_id)
        http.reply(resp, {"tasks": []})
