# SPDX-License-Identifier: Apache-2.0
"""/os-simple-tenant-usage: how many hours the servers of a project existed, and how large."""

import datetime
import time
from dataclasses import dataclass
from typing import Any

import falcon

from novalite import exception
from novalite.api import http, links, paging
from novalite.api.parts import Resource
from novalite.api.views import simple_tenant_usage as view
from novalite.db import usage

COLLECTION = "os-simple-tenant-usage"

# Nova's three forms; nothing else is a time here, above all no offset.
_FORMS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f")
# Servers that are read in one go when no page is asked for.
_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class _Span:
    """From when until when, seconds since the epoch; never beyond ``now``."""

    start: float
    stop: float
    now: float


class _Usages(Resource):
    """What list and show have in common."""

    def _report(
        self, req: http.Request, query: dict[str, list[str]], project_id: str | None, detailed: bool
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Return the usage of projects, and the marker of the next page if there is one.

        There are pages from 2.40 on; before, everything is summed up.
        """
        span = _span(query)
        report = view.Report(span.start, span.stop, span.now, detailed=detailed)
        page = paging.page(self.conf, query) if req.state.version >= 40 else None
        marker = page.marker if page else None
        while True:
            servers, more = self.database.read(
                lambda conn, marker=marker: usage.page(  # type: ignore[misc]
                    conn,
                    start=span.start,
                    stop=span.stop,
                    project_id=project_id,
                    marker=marker,
                    limit=page.limit if page else _CHUNK,
                )
            )
            report.add(servers)
            marker = servers[-1].uuid if more else None
            if page is not None or marker is None:
                return report.projects(), marker


class TenantUsagesResource(_Usages):
    """/os-simple-tenant-usage"""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List the usage of every project that had a server."""
        self.policy.check(req.state.context, "os-simple-tenant-usage:list")
        query = paging.values(req)
        known = ("start", "end", "detailed", "limit", "marker")
        paging.refuse_unknown(query, req.state.version, *known)
        detailed = (query.get("detailed") or ["0"])[0] == "1"
        projects, marker = self._report(req, query, None, detailed)
        body: dict[str, Any] = {"tenant_usages": projects}
        if marker is not None:
            urls = links.Links(self.conf, req)
            body["tenant_usages_links"] = urls.next_page(req, COLLECTION, marker)
        http.send(resp, body)


class TenantUsageResource(_Usages):
    """/os-simple-tenant-usage/{tenant_id}"""

    def on_get(self, req: http.Request, resp: falcon.Response, tenant_id: str) -> None:
        """Show the usage of a project with all its servers; without any it is empty."""
        self.policy.check(req.state.context, "os-simple-tenant-usage:show", tenant_id)
        query = paging.values(req)
        paging.refuse_unknown(query, req.state.version, "start", "end", "limit", "marker")
        projects, marker = self._report(req, query, tenant_id, True)
        body: dict[str, Any] = {"tenant_usage": projects[0] if projects else {}}
        if marker is not None:
            urls = links.Links(self.conf, req)
            collection = f"{COLLECTION}/{tenant_id}"
            body["tenant_usage_links"] = urls.next_page(req, collection, marker)
        http.send(resp, body)


def _span(query: dict[str, list[str]]) -> _Span:
    """Read start and end; what is not given is now.

    :raises exception.InvalidInput: one of them is no time, or the start is not before the end
    """
    now = time.time()
    given = [_moment(query, "start"), _moment(query, "end")]
    start, stop = (now if moment is None else moment for moment in given)
    if start >= stop and given != [None, None]:
        raise exception.InvalidInput(
            "Invalid start time. The start time cannot occur after the end time."
        )
    return _Span(start, min(stop, now), now)


def _moment(query: dict[str, list[str]], name: str) -> float | None:
    text = (query.get(name) or [""])[0]
    if not text:
        return None
    for form in _FORMS:
        try:
            stamp = datetime.datetime.strptime(text, form)
        except ValueError:
            continue
        return stamp.replace(tzinfo=datetime.UTC).timestamp()
    raise exception.InvalidInput("Datetime is in invalid format")
