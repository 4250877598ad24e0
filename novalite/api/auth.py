# SPDX-License-Identifier: Apache-2.0
"""Who asks: keystone tokens through keystonemiddleware, or noauth2 for tests and benchmarks.

Called by the middleware for every request but the version documents. An authenticator turns the
WSGI environment into a RequestContext or raises; it writes no answer.
"""

import logging
import threading
import time
from collections import OrderedDict
from typing import Any, Protocol

from keystoneauth1 import exceptions as keystone_exceptions
from oslo_config import cfg

from novalite import context as context_module
from novalite import exception

LOG = logging.getLogger(__name__)

# Where keystonemiddleware finds the cache, see [keystone_authtoken] cache.
CACHE_KEY = "novalite.token_cache"
CACHE_SIZE = 2000
CACHE_TIME = 60


class Unauthenticated(exception.NovaliteException):
    """No token, or not a valid one. ``challenge`` is the WWW-Authenticate header."""

    msg_fmt = "The request you have made requires authentication."
    challenge = "Keystone"


class Authenticator(Protocol):
    """One strategy."""

    def authenticate(
        self, environ: dict[str, Any], request_id: str, global_request_id: str | None
    ) -> context_module.RequestContext:
        """Return the context of the request.

        :raises Unauthenticated: no token, or it is not valid
        :raises exception.NeighborUnavailable: the token cannot be checked now
        """


class NoAuth:
    """``noauth2``: believes the token USER:PROJECT; the user ``admin`` is an administrator."""

    def authenticate(
        self, environ: dict[str, Any], request_id: str, global_request_id: str | None
    ) -> context_module.RequestContext:
        """See :class:`Authenticator`."""
        token = environ.get("HTTP_X_AUTH_TOKEN", "")
        user, _, project = token.partition(":")
        if not user:
            raise Unauthenticated()
        roles = ["member", "reader"]
        if user == "admin":
            roles.insert(0, "admin")
        return context_module.RequestContext(
            user_id=user,
            project_id=project or user,
            user_name=user,
            project_name=project or user,
            user_domain_id="default",
            project_domain_id="default",
            roles=roles,
            request_id=request_id,
            global_request_id=global_request_id,
        )


class TokenCache:
    """What keystonemiddleware wants of a cache, in this process, bounded in number and time."""

    def __init__(self, size: int = CACHE_SIZE, clock: Any = time.monotonic):
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[float, Any]] = OrderedDict()

    def get(self, key: str) -> Any:
        """Return what was stored, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if entry[0] <= self._clock():
                del self._entries[key]
                return None
            return entry[1]

    def set(self, key: str, value: Any, time: float = CACHE_TIME) -> None:
        """Store for *time* seconds; the oldest entry goes when there are too many."""
        with self._lock:
            self._entries[key] = (self._clock() + time, value)
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)


class Keystone:
    """``keystone``: validates tokens by keystonemiddleware's auth_token.

    A token is checked once a minute at most ([keystone_authtoken] token_cache_time), from then on
    a request costs no call. With memcached_servers set, all API processes share that cache.
    """

    def __init__(self, conf: cfg.ConfigOpts):
        from keystonemiddleware import auth_token, opts

        for group, options in opts.list_auth_token_opts():
            conf.register_opts(options, group=group)
        conf.set_default("token_cache_time", CACHE_TIME, group="keystone_authtoken")
        section = conf.keystone_authtoken
        overrides: dict[str, Any] = {
            "oslo_config_config": conf,
            "include_service_catalog": False,
        }
        self._cache: TokenCache | None = None
        if not section.memcached_servers:
            self._cache = TokenCache()
            overrides["cache"] = CACHE_KEY
        self._protocol = auth_token.AuthProtocol(_inner, overrides)
        self._challenge = f'Keystone uri="{section.www_authenticate_uri or ""}"'

    def authenticate(
        self, environ: dict[str, Any], request_id: str, global_request_id: str | None
    ) -> context_module.RequestContext:
        """See :class:`Authenticator`."""
        status = self._check(environ)
        if status.startswith("503"):
            raise exception.NeighborUnavailable(service="identity")
        if not status.startswith("200"):
            error = Unauthenticated()
            error.challenge = self._challenge
            raise error
        return context_module.RequestContext.from_environ(
            environ,
            request_id=request_id,
            global_request_id=global_request_id,
            auth_token=None,
        )

    def _check(self, environ: dict[str, Any]) -> str:
        """Let auth_token judge the token; on 200 the X-User-Id family is in *environ*."""
        seen: list[str] = []
        if self._cache is not None:
            environ[CACHE_KEY] = self._cache

        def start_response(status: str, _headers: Any, _exc: Any = None) -> Any:
            seen.append(status)
            return lambda _data: None

        try:
            for _chunk in self._protocol(environ, start_response):
                pass
        except keystone_exceptions.ClientException as error:
            # auth_token lets some troubles with the identity service through as they are.
            LOG.warning("A token cannot be checked: %s", error)
            return "503"
        finally:
            environ.pop(CACHE_KEY, None)
        return seen[0] if seen else "503"


def _inner(_environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "0")])
    return []


def make(conf: cfg.ConfigOpts) -> Authenticator:
    """Return the authenticator for ``[api] auth_strategy``."""
    return NoAuth() if conf.api.auth_strategy == "noauth2" else Keystone(conf)
