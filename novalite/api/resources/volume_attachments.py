# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/os-volume_attachments: the volumes of a server."""

import falcon

from novalite import exception
from novalite.api import http
from novalite.api.parts import Resource
from novalite.api.resources import servers
from novalite.api.views import volume_attachments as view


class VolumeAttachmentsResource(Resource):
    """/servers/{server_id}/os-volume_attachments"""

    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """List the volumes."""
        row = servers.find(self.parts, req, server_id, "os-volumes-attachments:index")
        shown = [view.attachment(row, each, req.state.version) for each in view.attached(row)]
        http.send(resp, {"volumeAttachments": shown})


class VolumeAttachmentResource(Resource):
    """/servers/{server_id}/os-volume_attachments/{volume_id}"""

    def on_get(
        self, req: http.Request, resp: falcon.Response, server_id: str, volume_id: str
    ) -> None:
        """Show one volume."""
        row = servers.find(self.parts, req, server_id, "os-volumes-attachments:show")
        for each in view.attached(row):
            if each["volume_id"] == volume_id:
                shown = view.attachment(row, each, req.state.version)
                http.send(resp, {"volumeAttachment": shown})
                return
        raise exception.NotFound(f"Instance {row.uuid} is not attached to volume {volume_id}")
