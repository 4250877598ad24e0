# SPDX-License-Identifier: Apache-2.0
"""Client of image v2 (Glance, or the stand-in): looks up the image of a request.

Used by the API when a server is asked for. It asks with novalite's own account, so it decides here
what the user's project may see. Never downloads anything.
"""

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from novalite import context, exception, service_auth
from novalite.objects.request_spec import ImageMeta

CACHE_SIZE = 1000
# Everything else in an image's document is a free property.
_OWN_KEYS = frozenset(
    (
        *("id", "name", "status", "visibility", "owner", "protected", "tags", "locations"),
        *("container_format", "disk_format", "size", "virtual_size", "checksum", "direct_url"),
        *("min_disk", "min_ram", "created_at", "updated_at", "os_hidden", "os_hash_algo"),
        *("os_hash_value", "file", "schema", "self", "stores"),
    )
)

_Key = tuple[str | None, bool, str]


class ImageClient:
    """Looks images up and remembers the active ones for [glance] image_cache_time seconds."""

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], float] = time.monotonic):
        self._conf = conf
        self._clock = clock
        self._glance = service_auth.Neighbor(conf, "image", "glance", "/v2")
        self._lock = threading.Lock()
        self._cache: OrderedDict[_Key, tuple[float, ImageMeta]] = OrderedDict()

    def get(self, ctxt: context.RequestContext, image_id: str) -> ImageMeta:
        """Return the image, if the context's project may boot from it.

        Without any image service (noauth2, nothing configured: a benchmark) any UUID is believed.

        :raises exception.ImageInBodyNotFound: there is none that the project can see, or it is not
            active (:class:`exception.ImageNotActive`)
        :raises exception.NeighborUnavailable: the image service cannot be asked
        """
        if self._glance.absent:
            return _unverified(image_id)
        key = (ctxt.project_id, bool(ctxt.is_admin), image_id)
        found = self._remembered(key)
        if found is None:
            found = self._look_up(ctxt, image_id)
            self._remember(key, found)
        return _copy(found)

    def _look_up(self, ctxt: context.RequestContext, image_id: str) -> ImageMeta:
        path = f"/images/{service_auth.quote(image_id)}"
        answer = self._glance.request(ctxt, "GET", path)
        if answer.status in (400, 403, 404):
            raise exception.ImageInBodyNotFound(image_id=image_id)
        if answer.status != 200:
            raise self._glance.refused(answer)
        doc = answer.body
        if not self._visible(ctxt, doc, path):
            raise exception.ImageInBodyNotFound(image_id=image_id)
        if doc.get("status") != "active":
            raise exception.ImageNotActive(image_id=image_id)
        return _meta(doc)

    def _visible(self, ctxt: context.RequestContext, doc: dict[str, Any], path: str) -> bool:
        visibility = doc.get("visibility")
        if ctxt.is_admin or visibility in ("public", "community"):
            return True
        if not ctxt.project_id:
            return False
        if doc.get("owner") == ctxt.project_id:
            return True
        if visibility != "shared":
            return False
        member = f"{path}/members/{service_auth.quote(ctxt.project_id)}"
        return self._glance.request(ctxt, "GET", member).status == 200

    def _remembered(self, key: _Key) -> ImageMeta | None:
        with self._lock:
            expires, found = self._cache.get(key, (0.0, None))
            if found is not None and expires > self._clock():
                self._cache.move_to_end(key)
                return found
            self._cache.pop(key, None)
        return None

    def _remember(self, key: _Key, found: ImageMeta) -> None:
        seconds = float(self._conf.glance.image_cache_time)
        if seconds <= 0:
            return
        with self._lock:
            self._cache[key] = (self._clock() + seconds, found)
            self._cache.move_to_end(key)
            while len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)


def _unverified(image_id: str) -> ImageMeta:
    try:
        uuid.UUID(image_id)
    except ValueError as error:
        raise exception.ImageInBodyNotFound(image_id=image_id) from error
    return ImageMeta(id=image_id)


def _meta(doc: dict[str, Any]) -> ImageMeta:
    return ImageMeta(
        id=str(doc["id"]),
        name=doc.get("name") or "",
        min_ram=int(doc.get("min_ram") or 0),
        min_disk=int(doc.get("min_disk") or 0),
        size=int(doc.get("size") or 0),
        disk_format=doc.get("disk_format") or "",
        container_format=doc.get("container_format") or "",
        properties={key: value for key, value in doc.items() if key not in _OWN_KEYS},
    )


def _copy(found: ImageMeta) -> ImageMeta:
    """Return a copy, so that nobody changes what is remembered."""
    return ImageMeta(
        id=found.id,
        name=found.name,
        min_ram=found.min_ram,
        min_disk=found.min_disk,
        size=found.size,
        disk_format=found.disk_format,
        container_format=found.container_format,
        properties=dict(found.properties),
    )
