# SPDX-License-Identifier: Apache-2.0
"""The few calls of block storage v3 that novalite makes, with the answers turned into errors.

Used inside this package only.
"""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from keystoneauth1 import exceptions as ks_exc
from oslo_config import cfg

from novalite import context, service_auth
from novalite.volume import errors

Record = dict[str, Any]

# The least version that has complete attachments.
VERSION = "3.44"
# Stands for the project of our own account, which is known once there is a token.
_OWN = "/~"
_REFUSED = (400, 403, 404, 409, 413)


class _Neighbor(service_auth.Neighbor):
    """Block storage as [cinder] says it is found; a project stands before each path."""

    headers: Mapping[str, str] = MappingProxyType({"OpenStack-API-Version": f"volume {VERSION}"})

    def __init__(self, conf: cfg.ConfigOpts):
        super().__init__(conf, "block storage", "cinder", "/v3")

    @property
    def _override(self) -> str | None:
        found: str | None = self._conf.cinder.endpoint_template
        return found

    @property
    def _retries(self) -> int:
        return int(self._conf.cinder.http_retries)

    def _send(
        self,
        ctxt: context.RequestContext,
        method: str,
        path: str,
        params: dict[str, Any] | None,
        json: dict[str, Any] | None,
    ) -> Any:
        if path.startswith(_OWN):
            own = service_auth.session(self._conf).get_project_id() if self._has_account else None
            path = f"/{own or ctxt.project_id}{path.removeprefix(_OWN)}"
        return super()._send(ctxt, method, path, params, json)

    def _base(self, found: Any) -> str:
        """Return the URL up to the version; the catalogue's has our own project behind it."""
        url = self._override
        if not url:
            kind, name, interface = self._conf.cinder.catalog_info.split(":", 2)
            region = self._conf.cinder.os_region_name or self._conf.service_user.region_name
            url = found.get_endpoint(
                service_type=kind,
                service_name=name or None,
                interface=interface,
                region_name=region,
            )
        if not url:
            raise ks_exc.EndpointNotFound(f"the catalogue has no {self._conf.cinder.catalog_info}")
        root = re.sub(r"/v3(/[^/]*)?/?$", "", str(url).rstrip("/"))
        return f"{root}{self._version}"


class Cinder:
    """Volumes and attachments. Everything may raise NeighborUnavailable and NeighborError."""

    def __init__(self, conf: cfg.ConfigOpts):
        self._neighbor = _Neighbor(conf)

    @property
    def absent(self) -> bool:
        """Whether there is no block storage at all."""
        return self._neighbor.absent

    def show(self, ctxt: context.RequestContext, volume_id: str) -> Record | None:
        """Return a volume, None if there is none."""
        answer = self._call(ctxt, "GET", f"{_OWN}/volumes/{service_auth.quote(volume_id)}")
        if answer.status in (400, 404):
            return None
        found: Record = self._good(answer, 200).body.get("volume", {})
        return found

    def with_metadata(self, ctxt: context.RequestContext, metadata: dict[str, str]) -> list[Record]:
        """Return the volumes of all projects that have these metadata."""
        params = {"all_tenants": 1, "metadata": json.dumps(metadata)}
        answer = self._call(ctxt, "GET", f"{_OWN}/volumes/detail", params=params)
        found: list[Record] = self._good(answer, 200).body.get("volumes", [])
        # An older block storage may not know the filter.
        return [each for each in found if metadata.items() <= (each.get("metadata") or {}).items()]

    def create(self, ctxt: context.RequestContext, values: Record) -> Record:
        """Make a volume in the project of the context.

        :raises errors.InvalidVolume: block storage refuses it
        """
        project = service_auth.quote(str(ctxt.project_id))
        answer = self._call(ctxt, "POST", f"/{project}/volumes", body={"volume": values})
        if answer.status in _REFUSED:
            raise errors.InvalidVolume(reason=self._neighbor.refused(answer).message())
        found: Record = self._good(answer, 202, 200).body.get("volume", {})
        return found

    def delete(self, ctxt: context.RequestContext, volume_id: str) -> None:
        """Delete a volume; one that is gone already is fine."""
        path = f"{_OWN}/volumes/{service_auth.quote(volume_id)}"
        self._good(self._call(ctxt, "DELETE", path), 202, 204, 404)

    def force_delete(self, ctxt: context.RequestContext, volume_id: str) -> None:
        """Delete a volume even while it is being made; one that is gone already is fine."""
        path = f"{_OWN}/volumes/{service_auth.quote(volume_id)}/action"
        self._good(self._call(ctxt, "POST", path, body={"os-force_delete": {}}), 202, 204, 404)

    def types(self, ctxt: context.RequestContext) -> list[Record]:
        """Return the volume types."""
        answer = self._call(ctxt, "GET", f"{_OWN}/types")
        found: list[Record] = self._good(answer, 200).body.get("volume_types", [])
        return found

    def attachments(self, ctxt: context.RequestContext, instance_uuid: str) -> list[Record]:
        """Return the attachments of a server, whatever their state."""
        params = {"all_tenants": 1, "instance_id": instance_uuid}
        answer = self._call(ctxt, "GET", f"{_OWN}/attachments", params=params)
        found: list[Record] = self._good(answer, 200).body.get("attachments", [])
        return found

    def attach(
        self, ctxt: context.RequestContext, volume_id: str, instance_uuid: str, connector: Record
    ) -> Record:
        """Attach a volume to a server on a host and return the attachment.

        :raises errors.InvalidVolume: the volume cannot be attached now
        """
        asked = {
            "volume_uuid": volume_id,
            "instance_uuid": instance_uuid,
            "connector": connector,
        }
        answer = self._call(ctxt, "POST", f"{_OWN}/attachments", body={"attachment": asked})
        if answer.status in _REFUSED:
            raise errors.InvalidVolume(reason=self._neighbor.refused(answer).message())
        made: Record = self._good(answer, 200, 202).body.get("attachment", {})
        path = f"{_OWN}/attachments/{made['id']}/action"
        self._good(self._call(ctxt, "POST", path, body={"os-complete": None}), 204, 202)
        return made

    def detach(self, ctxt: context.RequestContext, attachment_id: str) -> None:
        """Delete an attachment; one that is gone already is fine."""
        path = f"{_OWN}/attachments/{service_auth.quote(attachment_id)}"
        self._good(self._call(ctxt, "DELETE", path), 200, 202, 204, 404)

    def _call(
        self,
        ctxt: context.RequestContext,
        method: str,
        path: str,
        params: dict[str, Any] | None = None,
        body: Record | None = None,
    ) -> service_auth.Answer:
        return self._neighbor.request(ctxt, method, path, params=params, json=body)

    def _good(self, answer: service_auth.Answer, *statuses: int) -> service_auth.Answer:
        if answer.status not in statuses:
            raise self._neighbor.refused(answer)
        return answer
