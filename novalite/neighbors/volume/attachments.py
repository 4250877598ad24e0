# SPDX-License-Identifier: Apache-2.0
"""Resources of block storage v3: which server on which host has which volume.

An attachment is *reserved* without a connector, *attaching* with one, *attached* once the host has
said that it is complete.
"""

import time
import uuid
from typing import Any

import falcon

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.store import Doc, Store, Tx
from novalite.neighbors.volume import records, version
from novalite.neighbors.volume.volumes import check_project

_VOLUME_STATES = {"reserved": "reserved", "attaching": "attaching", "attached": "in-use"}


def _view(doc: Doc, *, detail: bool = True) -> Doc:
    shown = {
        "id": doc["id"],
        "status": doc["status"],
        "instance": doc["instance"],
        "volume_id": doc["volume_id"],
    }
    if not detail:
        return shown
    return {
        **shown,
        "attached_at": records.moment(doc["attached_at"]),
        "detached_at": None,
        "attach_mode": "rw",
        "connection_info": _connection(doc),
    }


def _connection(doc: Doc) -> Doc:
    if not doc["connector"]:
        return {}
    return {
        "driver_volume_type": "local",
        "device_path": f"/dev/stack-volumes/volume-{doc['volume_id']}",
        "volume_id": doc["volume_id"],
        "attachment_id": doc["id"],
        "access_mode": "rw",
        "encrypted": False,
    }


def _get(tx: Tx, caller: Caller, attachment_id: str) -> Doc:
    doc = tx.get("attachment", attachment_id)
    if doc is None or not (caller.is_admin or doc["project_id"] == caller.project_id):
        raise Fault(404, f"Volume attachment could not be found with filter: {attachment_id}.")
    return doc


def _connector(asked: Any) -> Doc:
    if asked is None:
        return {}
    if not isinstance(asked, dict):
        raise Fault(400, "Invalid input for field/attribute connector: it must be an object.")
    return {key: asked.get(key) for key in ("host", "mountpoint") if asked.get(key)}


def _set_status(tx: Tx, attachment: Doc, status: str) -> None:
    attachment["status"] = status
    volume = tx.get("volume", attachment["volume_id"])
    if volume is not None:
        volume["status"] = _VOLUME_STATES[status]
        volume["updated_at"] = time.time()
        tx.replace("volume", volume)


class Attachments:
    """``/v3/{project}/attachments`` and ``/attachments/detail``."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """List attachments."""
        self._list(req, resp, project_id, detail=False)

    def on_get_detail(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """List attachments with everything about them."""
        self._list(req, resp, project_id, detail=True)

    def _list(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, *, detail: bool
    ) -> None:
        version.need(req, 27)
        caller, params = check_project(req, project_id), http.query(req)
        wanted: dict[str, str | list[str]] = {}
        if not (caller.is_admin and http.boolean(params.get("all_tenants"))):
            wanted["owner"] = project_id
        for parameter, column in (("instance_id", "attached"), ("volume_id", "parent")):
            if params.get(parameter):
                wanted[column] = params[parameter][-1]
        with self._store.read() as tx:
            found = tx.find("attachment", **wanted)
        http.reply(resp, {"attachments": [_view(doc, detail=detail) for doc in found]})

    def on_post(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """Reserve a volume for a server, and with a connector begin to attach it."""
        version.need(req, 27)
        caller, asked = check_project(req, project_id), http.body_object(req, "attachment")
        instance = asked.get("instance_uuid")
        if not isinstance(instance, str) or not instance:
            raise Fault(400, "Invalid input for field/attribute instance_uuid: it is required.")
        with self._store.write() as tx:
            volume = records.get(tx, caller, str(asked.get("volume_uuid")))
            status = records.status(volume)
            if status != "available":
                raise records.invalid(
                    f"Volume {volume['id']} status must be available or downloading to reserve, "
                    f"but the current status is {status}."
                )
            connector = _connector(asked.get("connector"))
            doc: Doc = {
                "id": str(uuid.uuid4()),
                "volume_id": volume["id"],
                "project_id": volume["project_id"],
                "instance": instance,
                "connector": connector,
                "status": "",
                "attached_at": time.time() if connector else None,
            }
            _set_status(tx, doc, "attaching" if connector else "reserved")
            tx.insert("attachment", doc)
        http.reply(resp, {"attachment": _view(doc)})


class Attachment:
    """``/v3/{project}/attachments/{id}`` and its action."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, attachment_id: str
    ) -> None:
        """Show an attachment."""
        version.need(req, 27)
        caller = check_project(req, project_id)
        with self._store.read() as tx:
            doc = _get(tx, caller, attachment_id)
        http.reply(resp, {"attachment": _view(doc)})

    def on_put(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, attachment_id: str
    ) -> None:
        """Give a reserved attachment its connector."""
        version.need(req, 27)
        caller, asked = check_project(req, project_id), http.body_object(req, "attachment")
        connector = _connector(asked.get("connector"))
        if not connector:
            raise Fault(400, "Invalid input for field/attribute connector: it is required.")
        with self._store.write() as tx:
            doc = _get(tx, caller, attachment_id)
            doc["connector"] = connector
            doc["attached_at"] = time.time()
            if doc["status"] == "reserved":
                _set_status(tx, doc, "attaching")
            tx.replace("attachment", doc)
        http.reply(resp, {"attachment": _view(doc)})

    def on_delete(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, attachment_id: str
    ) -> None:
        """Take a volume off its server."""
        version.need(req, 27)
        caller = check_project(req, project_id)
        with self._store.write() as tx:
            doc = _get(tx, caller, attachment_id)
            tx.remove("attachment", attachment_id)
            left = tx.find("attachment", parent=doc["volume_id"])
            volume = tx.get("volume", doc["volume_id"])
            if volume is not None and not left:
                volume["status"] = "available"
                volume["updated_at"] = time.time()
                tx.replace("volume", volume)
        http.reply(resp, {"attachments": [_view(each) for each in left]})

    def on_post_action(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, attachment_id: str
    ) -> None:
        """Hear from the host that the volume is attached."""
        version.need(req, 44)
        caller, body = check_project(req, project_id), http.body(req)
        if not isinstance(body, dict) or list(body) != ["os-complete"]:
            raise Fault(400, "The body must be an object with the key 'os-complete'.")
        with self._store.write() as tx:
            doc = _get(tx, caller, attachment_id)
            if not doc["connector"]:
                raise records.invalid(f"attachment {attachment_id} has no connector.")
            _set_status(tx, doc, "attached")
            tx.replace("attachment", doc)
        resp.status = 204
