# SPDX-License-Identifier: Apache-2.0
"""Members of shared images: the projects that the owner lets see one."""

import time
from typing import Any

import falcon

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.image import records
from novalite.neighbors.store import Doc, Store, Tx

STATUSES = ("pending", "accepted", "rejected")


def _view(row: tuple[Any, ...]) -> Doc:
    image_id, member_id, status, created_at, updated_at = row
    return {
        "image_id": image_id,
        "member_id": member_id,
        "status": status,
        "created_at": http.isotime(created_at),
        "updated_at": http.isotime(updated_at),
        "schema": "/v2/schemas/member",
    }


def _one(tx: Tx, image_id: str, member_id: str) -> Doc:
    row = tx.one("SELECT * FROM members WHERE image_id = ? AND member_id = ?", image_id, member_id)
    if row is None:
        raise Fault(404, f"Image {image_id} has no member {member_id}.")
    return _view(row)


class Members:
    """``/v2/images/{id}/members[/{member}]``."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response, image_id: str) -> None:
        """List the members: all for the owner, itself for a member."""
        caller = http.caller(req)
        with self._store.read() as tx:
            doc = records.get(tx, caller, image_id)
            rows = tx.run("SELECT * FROM members WHERE image_id = ?", image_id).fetchall()
        whole = records.owned(caller, doc)
        found = [_view(row) for row in rows if whole or row[1] == caller.project_id]
        http.reply(resp, {"members": found, "schema": "/v2/schemas/members"})

    def on_post(self, req: falcon.Request, resp: falcon.Response, image_id: str) -> None:
        """Add a member, which then has to accept."""
        asked, now = http.body(req), time.time()
        member = asked.get("member") if isinstance(asked, dict) else None
        if not isinstance(member, str) or not member:
            raise Fault(400, "The body must be an object with the key 'member', a project's id.")
        with self._store.write() as tx:
            doc = records.get_owned(tx, http.caller(req), image_id, "share")
            if doc["visibility"] != "shared":
                raise Fault(403, "Only images of the visibility 'shared' have members.")
            if records.membership(tx, image_id, member) is not None:
                raise Fault(409, f"Image {image_id} has the member {member} already.")
            tx.run("INSERT INTO members VALUES (?, ?, 'pending', ?, ?)", image_id, member, now, now)
            found = _one(tx, image_id, member)
        http.reply(resp, found)

    def on_get_one(
        self, req: falcon.Request, resp: falcon.Response, image_id: str, member_id: str
    ) -> None:
        """Show one member."""
        caller = http.caller(req)
        with self._store.read() as tx:
            doc = records.get(tx, caller, image_id)
            if not records.owned(caller, doc) and member_id != caller.project_id:
                raise Fault(404, f"Image {image_id} has no member {member_id}.")
            http.reply(resp, _one(tx, image_id, member_id))

    def on_put_one(
        self, req: falcon.Request, resp: falcon.Response, image_id: str, member_id: str
    ) -> None:
        """Accept or reject, which only the member itself may do."""
        asked, caller = http.body(req), http.caller(req)
        status = asked.get("status") if isinstance(asked, dict) else None
        if status not in STATUSES:
            raise Fault(400, f"'status' must be one of {', '.join(STATUSES)}.")
        with self._store.write() as tx:
            records.get(tx, caller, image_id)
            found = _one(tx, image_id, member_id)
            if member_id != caller.project_id and not caller.is_admin:
                raise Fault(403, "Only the member itself may change its status.")
            found.update(status=status)
            tx.run(
                "UPDATE members SET status = ?, updated_at = ? "
                "WHERE image_id = ? AND member_id = ?",
                status,
                time.time(),
                image_id,
                member_id,
            )
        http.reply(resp, found)

    def on_delete_one(
        self, req: falcon.Request, resp: falcon.Response, image_id: str, member_id: str
    ) -> None:
        """Take a member away."""
        with self._store.write() as tx:
            records.get_owned(tx, http.caller(req), image_id, "share")
            _one(tx, image_id, member_id)
            tx.run("DELETE FROM members WHERE image_id = ? AND member_id = ?", image_id, member_id)
        resp.status = 204
