# SPDX-License-Identifier: Apache-2.0
"""The application of block storage v3: its routes, and the few answers that never change."""

import falcon

from novalite.neighbors import http
from novalite.neighbors.endpoints import Endpoints
from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Tokens
from novalite.neighbors.store import Doc, Store
from novalite.neighbors.volume import records, version
from novalite.neighbors.volume.attachments import Attachment, Attachments
from novalite.neighbors.volume.volumes import Action, Volume, Volumes, check_project

_KEYS = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    406: "notAcceptable",
    409: "conflictingRequest",
    413: "overLimit",
}
UNLIMITED = -1
_QUOTAS = (
    *("volumes", "snapshots", "gigabytes", "backups", "backup_gigabytes", "groups"),
    *("per_volume_gigabytes", f"volumes_{records.TYPE}", f"gigabytes_{records.TYPE}"),
    f"snapshots_{records.TYPE}",
)


def volume_error(fault: Fault) -> Doc:
    """Render a fault as block storage does."""
    key = _KEYS.get(fault.status, "computeFault")
    return {key: {"code": fault.status, "message": fault.message}}


class Versions:
    """``/`` (300) and ``/v3/`` (200)."""

    anonymous = ("GET", "HEAD")

    def __init__(self, base: str, status: int):
        self._status = status
        self._body: Doc = {
            "versions": [
                {
                    "id": "v3.0",
                    "status": "CURRENT",
                    "version": f"3.{version.MOST}",
                    "min_version": f"3.{version.LEAST}",
                    "updated": "2022-08-31T00:00:00Z",
                    "links": [{"rel": "self", "href": f"{base}/v3/"}],
                    "media-types": [
                        {
                            "base": "application/json",
                            "type": "application/vnd.openstack.volume+json;version=3",
                        }
                    ],
                }
            ]
        }

    def on_get(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Show the document."""
        http.reply(resp, self._body, self._status)

    on_head = on_get


class Types:
    """``/v3/{project}/types``: there is one type."""

    def __init__(self) -> None:
        self._type: Doc = {
            "id": records.type_id(),
            "name": records.TYPE,
            "description": None,
            "is_public": True,
            "os-volume-type-access:is_public": True,
            "qos_specs_id": None,
            "extra_specs": {},
        }

    def on_get(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """List it."""
        check_project(req, project_id)
        http.reply(resp, {"volume_types": [self._type]})

    def on_get_one(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, type_id: str
    ) -> None:
        """Show it."""
        check_project(req, project_id)
        if type_id not in (self._type["id"], "default"):
            raise Fault(404, f"Volume type {type_id} could not be found.")
        http.reply(resp, {"volume_type": self._type})


class Limits:
    """``/v3/{project}/limits``: there are none, but what is used is told."""

    def __init__(self, store: Store):
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """Show them."""
        check_project(req, project_id)
        with self._store.read() as tx:
            sizes = [doc["size"] for doc in tx.find("volume", owner=project_id)]
        absolute = {
            "maxTotalVolumes": UNLIMITED,
            "maxTotalVolumeGigabytes": UNLIMITED,
            "maxTotalSnapshots": UNLIMITED,
            "maxTotalBackups": UNLIMITED,
            "maxTotalBackupGigabytes": UNLIMITED,
            "totalVolumesUsed": len(sizes),
            "totalGigabytesUsed": sum(sizes),
            "totalSnapshotsUsed": 0,
            "totalBackupsUsed": 0,
            "totalBackupGigabytesUsed": 0,
        }
        http.reply(resp, {"limits": {"rate": [], "absolute": absolute}})


class Quotas:
    """``/v3/{project}/os-quota-sets/{id}`` and ``/defaults``: everything is unlimited."""

    def on_get(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, target: str
    ) -> None:
        """Show the limits of a project."""
        caller = check_project(req, project_id)
        if not caller.is_admin and target != caller.project_id:
            raise Fault(403, "Only administrators see the quota of other projects.")
        usage = http.boolean(http.query(req).get("usage"))
        limit: object = UNLIMITED
        if usage:
            limit = {"limit": UNLIMITED, "in_use": 0, "reserved": 0}
        http.reply(resp, {"quota_set": {"id": target, **dict.fromkeys(_QUOTAS, limit)}})

    on_get_defaults = on_get


class Fixed:
    """A list that is always the same."""

    def __init__(self, key: str, items: list[Doc]):
        self._body: Doc = {key: items}

    def on_get(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """Show it."""
        check_project(req, project_id)
        http.reply(resp, self._body)


def make_app(store: Store, issuer: Tokens, endpoints: Endpoints, seconds: float) -> http.App:
    """Return the WSGI application of block storage v3.

    :param seconds: how long the making of a volume takes
    """
    base, own = endpoints.volume, "/v3/{project_id}"
    volumes = Volumes(store, base, seconds)
    attachments, attachment = Attachments(store), Attachment(store)
    types, quotas = Types(), Quotas()
    zones = [{"zoneName": records.ZONE, "zoneState": {"available": True}}]
    routes: list[tuple[str, object]] = [
        ("/", Versions(base, 300)),
        ("/v3", Versions(base, 200)),
        ("/v3/", Versions(base, 200)),
        (f"{own}/volumes", volumes),
        (f"{own}/volumes/{{volume_id}}", Volume(store, base)),
        (f"{own}/volumes/{{volume_id}}/action", Action(store)),
        (f"{own}/attachments", attachments),
        (f"{own}/attachments/{{attachment_id}}", attachment),
        (f"{own}/types", types),
        (f"{own}/limits", Limits(store)),
        (f"{own}/os-quota-sets/{{target}}", quotas),
        (f"{own}/os-availability-zone", Fixed("availabilityZoneInfo", zones)),
        (f"{own}/snapshots", Fixed("snapshots", [])),
        (f"{own}/snapshots/detail", Fixed("snapshots", [])),
    ]
    app = http.make_app("volume", issuer, routes, volume_error, [version.Echo()])
    app.add_route(f"{own}/volumes/detail", volumes, suffix="detail")
    app.add_route(f"{own}/attachments/detail", attachments, suffix="detail")
    app.add_route(f"{own}/attachments/{{attachment_id}}/action", attachment, suffix="action")
    app.add_route(f"{own}/types/{{type_id}}", types, suffix="one")
    app.add_route(f"{own}/os-quota-sets/{{target}}/defaults", quotas, suffix="defaults")
    return app
