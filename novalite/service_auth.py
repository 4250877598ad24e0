# SPDX-License-Identifier: Apache-2.0
"""novalite's own account and its HTTP session to image, network and block storage.

Used by the clients in ``image``, ``network`` and ``volume``, whoever provides the services. All
clients of a process share one session, and so one token and one pool of connections. Requests are
made with the account of [service_user], an administrator: what a user may see is decided by the
clients, not here. Never logs a password or token.
"""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib import parse

import requests
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import session as ks_session
from keystoneauth1.identity import v3
from oslo_config import cfg

from novalite import context, exception

LOG = logging.getLogger(__name__)

POOL_SIZE = 64
# These may be sent again without harm when a kept connection turns out to be dead.
_REPEATABLE = ("GET", "PUT", "DELETE")

_lock = threading.Lock()
_shared: tuple[cfg.ConfigOpts, ks_session.Session] | None = None


def session(conf: cfg.ConfigOpts) -> ks_session.Session:
    """Return the session of this process, made at the first call.

    Without [service_user] auth_url it sends no tokens.
    """
    global _shared
    with _lock:
        if _shared is None or _shared[0] is not conf:
            _shared = (conf, _make(conf))
        return _shared[1]


def _make(conf: cfg.ConfigOpts) -> ks_session.Session:
    account = conf.service_user
    auth = None
    if account.auth_url:
        auth = v3.Password(
            auth_url=account.auth_url,
            username=account.username,
            password=account.password,
            project_name=account.project_name,
            user_domain_name=account.user_domain_name,
            project_domain_name=account.project_domain_name,
        )
    pool = requests.Session()
    # Proxies and netrc of the environment are for users, and reading them costs every request.
    pool.trust_env = False
    for scheme in ("http://", "https://"):
        pool.mount(scheme, ks_session.TCPKeepAliveAdapter(pool_maxsize=POOL_SIZE))
    return ks_session.Session(
        auth=auth,
        session=pool,
        verify=account.cafile or True,
        timeout=max(conf.glance.timeout, conf.neutron.timeout),
        user_agent="novalite",
    )


@dataclass(slots=True)
class Answer:
    """Status and JSON body of an answer that is no failure of the service itself."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    text: str = ""


class Neighbor:
    """One service over HTTP.

    ``group`` is the section with ``endpoint_override`` and ``timeout``; ``version`` is the path
    that is put after the URL when the URL does not end with it already.
    """

    # Sent with every request.
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, conf: cfg.ConfigOpts, service: str, group: str, version: str):
        self._conf = conf
        self.service = service
        self._group = group
        self._version = version

    @property
    def absent(self) -> bool:
        """Whether there is no such service: a benchmark with noauth2 and nothing configured."""
        return not self._override and not self._has_account and self._noauth

    @property
    def _override(self) -> str | None:
        found: str | None = self._conf[self._group].endpoint_override
        return found

    @property
    def _retries(self) -> int:
        """How often a request that does no harm is repeated after a failed connection."""
        return 1

    @property
    def _has_account(self) -> bool:
        return bool(self._conf.service_user.auth_url)

    @property
    def _noauth(self) -> bool:
        return bool(self._conf.api.auth_strategy == "noauth2")

    def request(
        self,
        ctxt: context.RequestContext,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        json: dict[str, Any] | None = None,
    ) -> Answer:
        """Make a request; ``path`` begins after the version.

        :raises exception.NeighborUnavailable: no connection, no answer in time, an error of the
            service, or our account is refused
        """
        if not self._has_account and not self._noauth:
            LOG.error("[service_user] auth_url is not set: %s cannot be reached", self.service)
            raise self.unavailable()
        tries = 1 + self._retries if method in _REPEATABLE else 1
        while True:
            tries -= 1
            try:
                response = self._send(ctxt, method, path, params, json)
                break
            except ks_exc.ConnectFailure as error:
                if not tries:
                    raise self._failed(method, path, error) from error
            except ks_exc.ClientException as error:
                raise self._failed(method, path, error) from error
        return self._answer(response, method, path)

    def _send(
        self,
        ctxt: context.RequestContext,
        method: str,
        path: str,
        params: dict[str, Any] | None,
        json: dict[str, Any] | None,
    ) -> Any:
        found = session(self._conf)
        return found.request(
            self._base(found) + path,
            method,
            params=params,
            json=json,
            headers=dict(self.headers),
            authenticated=self._has_account,
            raise_exc=False,
            timeout=self._conf[self._group].timeout,
            global_request_id=ctxt.request_id,
        )

    def _base(self, found: ks_session.Session) -> str:
        url = self._override or found.get_endpoint(
            service_type=self.service,
            interface=["internal", "public"],
            region_name=self._conf.service_user.region_name,
        )
        if not url:
            raise ks_exc.EndpointNotFound(
                f"the catalogue has no {self.service} service in region "
                f"{self._conf.service_user.region_name}"
            )
        url = str(url).rstrip("/")
        return url if url.endswith(self._version) else url + self._version

    def _failed(self, method: str, path: str, error: Exception) -> exception.NeighborUnavailable:
        LOG.warning("%s %s of the %s service failed: %s", method, path, self.service, error)
        return self.unavailable()

    def _answer(self, response: Any, method: str, path: str) -> Answer:
        status = int(response.status_code)
        if status >= 500 or status in (401, 429):
            reason = "refuses our account" if status == 401 else response.text[:200]
            LOG.warning(
                "%s %s: the %s service answered %d: %s", method, path, self.service, status, reason
            )
            raise self.unavailable()
        try:
            body = response.json() if response.content else {}
        except ValueError:
            body = {}
        if not isinstance(body, dict):
            body = {}
        return Answer(status, body, str(response.text[:500]))

    def unavailable(self) -> exception.NeighborUnavailable:
        """Return the error for a service that cannot be used now."""
        return exception.NeighborUnavailable(service=self.service)

    def refused(self, answer: Answer) -> exception.NeighborError:
        """Return the error for an answer that nobody expects."""
        return exception.NeighborError(
            service=self.service, status=answer.status, reason=_reason(answer)
        )


def quote(record_id: str) -> str:
    """Return an id as one segment of a path."""
    return parse.quote(record_id, safe="")


def _reason(answer: Answer) -> str:
    """Return the message inside an error body, whichever wrapper it has."""
    for value in answer.body.values():
        if isinstance(value, dict) and value.get("message"):
            return str(value["message"])
        if isinstance(value, str) and value:
            return value
    return answer.text or "no reason given"
