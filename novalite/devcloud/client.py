# SPDX-License-Identifier: Apache-2.0
"""A small HTTP client for the cloud's own APIs; for seeding, for showing and for tests."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any

from novalite.devcloud.errors import ClientError

# 127.0.0.1 is never behind a proxy, whatever the environment says.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; ``body`` is parsed JSON, or None.

    The names of ``headers`` are in lower case.
    """

    status: int
    headers: Mapping[str, str]
    body: Any


class Client:
    """Talks JSON to one API.

    :param url: the API with its version, for example ``http://127.0.0.1:8774/v2.1``
    :param headers: sent with each request; the token, a microversion
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, timeout: float = 30.0):
        self.url = url.rstrip("/")
        self.headers = dict(headers or {})
        self.timeout = timeout

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and return the answer, whatever its status.

        :raises ClientError: no answer
        """
        sent = {"Accept": "application/json", **self.headers, **(headers or {})}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with _OPENER.open(request, timeout=self.timeout) as response:
                return Answer(response.status, _headers(response.headers), _parse(response.read()))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _headers(error.headers), _parse(error.read()))
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise ClientError(f"{method} {self.url}{path}: {reason}") from None

    def get(self, path: str) -> Any:
        """Return the body of an answer that must be a success.

        :raises ClientError: no answer, or a status of 400 and above
        """
        return self._success("GET", path, None)

    def post(self, path: str, body: Any) -> Any:
        """Post and return the body of an answer that must be a success.

        :raises ClientError: no answer, or a status of 400 and above
        """
        return self._success("POST", path, body)

    def _success(self, method: str, path: str, body: Any) -> Any:
        answer = self.request(method, path, body)
        if answer.status >= 400:
            raise ClientError(
                f"{method} {self.url}{path} answered {answer.status}: {json.dumps(answer.body)}"
            )
        return answer.body


def password_token(auth_url: str, user: str, password: str, project: str) -> str:
    """Return a token of identity v3 for a user of the domain Default.

    :raises ClientError: identity does not answer or refuses
    """
    domain = {"name": "Default"}
    identity = {
        "methods": ["password"],
        "password": {"user": {"name": user, "domain": domain, "password": password}},
    }
    scope = {"project": {"name": project, "domain": domain}}
    answer = Client(auth_url).request(
        "POST", "/auth/tokens", {"auth": {"identity": identity, "scope": scope}}
    )
    if answer.status != 201:
        raise ClientError(f"{auth_url} gives {user} no token: status {answer.status}")
    return str(answer.headers["x-subject-token"])


def _headers(message: Message) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in message.items()}


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode(errors="replace")
