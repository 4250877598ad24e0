# SPDX-License-Identifier: Apache-2.0
"""Absolute URLs in answers, built from the request's Host header or from compute_link_prefix."""

import urllib.parse

from oslo_config import cfg

from novalite.api import http


def base(conf: cfg.ConfigOpts, req: http.Request) -> str:
    """Return scheme and host, without a trailing slash."""
    prefix = conf.api.compute_link_prefix
    if prefix:
        return str(prefix).rstrip("/")
    return f"{req.scheme}://{req.netloc}"


class Links:
    """The links of one request; the project stands in them when it stood in the URL."""

    def __init__(self, conf: cfg.ConfigOpts, req: http.Request):
        root = base(conf, req)
        project = f"/{req.state.url_project}" if req.state.url_project else ""
        self._self = f"{root}/v2.1{project}/"
        self._bookmark = f"{root}{project}/"

    def href(self, collection: str, key: str) -> str:
        """Return the URL of one thing."""
        return f"{self._self}{collection}/{key}"

    def pair(self, collection: str, key: str) -> list[dict[str, str]]:
        """Return the ``self`` and ``bookmark`` links of one thing."""
        return [
            {"rel": "self", "href": f"{self._self}{collection}/{key}"},
            {"rel": "bookmark", "href": f"{self._bookmark}{collection}/{key}"},
        ]

    def bookmark(self, collection: str, key: str) -> list[dict[str, str]]:
        """Return the ``bookmark`` link of one thing, alone in a list."""
        return [{"rel": "bookmark", "href": f"{self._bookmark}{collection}/{key}"}]

    def next_page(self, req: http.Request, collection: str, marker: str) -> list[dict[str, str]]:
        """Return the ``next`` link: the same query from *marker* on."""
        query = urllib.parse.parse_qsl(req.query_string, keep_blank_values=True)
        kept = [(name, value) for name, value in query if name != "marker"]
        text = urllib.parse.urlencode([*kept, ("marker", marker)])
        return [{"rel": "next", "href": f"{self._self}{collection}?{text}"}]
