# SPDX-License-Identifier: Apache-2.0
"""The version documents, which every client reads first and without a token."""

from typing import Any

from novalite.api import microversion

Json = dict[str, Any]

_UPDATED_V20 = "2011-01-21T11:33:21Z"
_UPDATED_V21 = "2013-07-23T11:33:21Z"


def _v20(base: str) -> Json:
    return {
        "id": "v2.0",
        "status": "SUPPORTED",
        "version": "",
        "min_version": "",
        "updated": _UPDATED_V20,
        "links": [{"rel": "self", "href": f"{base}/v2/"}],
    }


def _v21(base: str) -> Json:
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": microversion.text(microversion.MAX),
        "min_version": microversion.text(microversion.MIN),
        "updated": _UPDATED_V21,
        "links": [{"rel": "self", "href": f"{base}/v2.1/"}],
    }


def everything(base: str) -> Json:
    """Return the list at the root."""
    return {"versions": [_v20(base), _v21(base)]}


def one(base: str, *, legacy: bool) -> Json:
    """Return the document of v2.1, or of its *legacy* form v2.0."""
    version = _v20(base) if legacy else _v21(base)
    number = "2" if legacy else "2.1"
    version["links"].append(
        {"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"}
    )
    version["media-types"] = [
        {
            "base": "application/json",
            "type": f"application/vnd.openstack.compute+json;version={number}",
        }
    ]
    return {"version": version}
