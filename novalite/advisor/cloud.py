# SPDX-License-Identifier: Apache-2.0
"""How the command line reaches a cloud: with the credentials of the ``openstack`` client.

clouds.yaml and OS_* variables are read by openstacksdk, as that client does. Nothing here
knows a service of ours but the Compute API.
"""

import importlib
import os
import re
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from novalite import exception

MICROVERSION = "2.53"
INSTALL = "openstacksdk is missing: pip install 'novalite[client]'"
_OWN_CLOUD = "novalite"


class CloudError(exception.NovaliteException):
    """What a user has to know when there is no answer."""


class Compute:
    """The Compute API of one cloud.

    :param state_dir: a development cloud's directory; None to use OS_* and clouds.yaml
    :param cloud: name of the cloud in clouds.yaml; None for OS_CLOUD
    """

    def __init__(self, state_dir: Path | None, cloud: str | None = None):
        self._session = _session(state_dir, cloud)

    def get(self, path: str) -> Any:
        """Return the body of an answer.

        :raises CloudError: no answer, or a status of 400 and above
        """
        status, body = self._ask(path)
        if status >= 400:
            raise CloudError(f"GET {path} answered {status}: {_message(body)}")
        return body

    def _ask(self, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and body of a GET, or of a POST if there is a body to send."""
        from keystoneauth1 import exceptions

        options: dict[str, Any] = {"microversion": MICROVERSION, "raise_exc": False}
        try:
            if body is None:
                answer = self._session.get(path, **options)
            else:
                answer = self._session.post(path, json=body, **options)
        except exceptions.ClientException as error:
            raise CloudError(f"the Compute API cannot be asked: {error}") from None
        try:
            return answer.status_code, answer.json()
        except ValueError:
            return answer.status_code, answer.text

    def explain(self, server: str) -> Any:
        """Return the explanation of a server.

        :param server: name or id; a deleted one, and for administrators another project's too
        :raises CloudError: there is none, or several have this name
        """
        if _is_uuid(server):
            status, body = self._ask(f"/servers/{server}/explain")
            if status == 200:
                return body
            if status != 404:
                raise CloudError(f"explaining {server} answered {status}: {_message(body)}")
        return self.get(f"/servers/{self.find(server)}/explain")

    def why_not(self, server: str, host: str | None) -> Any:
        """Return what the filters say of a host for a server, or of all hosts.

        :param server: name or id, as for :meth:`explain`
        :raises CloudError: there is no such server or host, or no scheduler answers
        """
        query = "" if host is None else f"?host={quote(host, safe='')}"
        if _is_uuid(server):
            return self.get(f"/servers/{server}/why-not{query}")
        return self.get(f"/servers/{self.find(server)}/why-not{query}")

    def capacity(self, flavor: str, asked: dict[str, Any]) -> Any:
        """Return how many servers of a flavor more fit.

        :param flavor: name or id
        :param asked: further fields of the body
        :raises CloudError: there is no such flavor or host, or no scheduler answers
        """
        body = {"capacity": {"flavorRef": self.find_flavor(flavor), **asked}}
        status, answer = self._ask("/novalite/capacity", body)
        if status >= 400:
            raise CloudError(f"POST /novalite/capacity answered {status}: {_message(answer)}")
        return answer

    def find_flavor(self, name: str) -> str:
        """Return the id of the flavor of this name or id.

        :raises CloudError: there is none
        """
        status, _body = self._ask(f"/flavors/{quote(name, safe='')}")
        if status == 200:
            return name
        for path in ("/flavors?is_public=None", "/flavors"):
            status, body = self._ask(path)
            if status == 200:
                found = [str(each["id"]) for each in body["flavors"] if each["name"] == name]
                if found:
                    return found[0]
        raise CloudError(f"No flavor with a name or id of '{name}' exists.")

    def find(self, name: str) -> str:
        """Return the id of the server of this name.

        :raises CloudError: there is none, or there are several
        """
        exact = f"/servers?name={quote(f'^{re.escape(name)}$')}"
        for more in ("", "&all_tenants=1", "&all_tenants=1&deleted=1"):
            status, body = self._ask(exact + more)
            if status == 403:
                continue
            if status != 200:
                raise CloudError(f"looking for {name} answered {status}: {_message(body)}")
            found = [str(each["id"]) for each in body["servers"]]
            if found and "deleted" in more:
                return found[0]
            if len(found) == 1:
                return found[0]
            if found:
                raise CloudError(f"{len(found)} servers are named {name}: {', '.join(found)}")
        raise CloudError(f"No server with a name or id of '{name}' exists.")


def _session(state_dir: Path | None, cloud: str | None) -> Any:
    try:
        config = importlib.import_module("openstack.config")
        from keystoneauth1 import adapter, exceptions
        from openstack import exceptions as sdk_exceptions
    except ImportError:
        raise CloudError(INSTALL) from None
    files = None
    if state_dir is not None:
        file = state_dir / "clouds.yaml"
        if not file.exists():
            raise CloudError(f"there is no {file}: was `novalite up` run with this directory?")
        files, cloud = [str(file)], cloud or _OWN_CLOUD
    try:
        loader = config.OpenStackConfig(config_files=files, load_envvars=state_dir is None)
        region = loader.get_one(cloud=cloud)
        return adapter.Adapter(
            region.get_session(),
            service_type="compute",
            interface=region.get_interface("compute"),
            region_name=region.get_region_name("compute"),
            endpoint_override=region.get_endpoint("compute"),
        )
    except (sdk_exceptions.SDKException, exceptions.ClientException) as error:
        raise CloudError(f"no credentials for a cloud: {error}") from None


def has_credentials() -> bool:
    """Tell whether the environment names a cloud."""
    return any(name in os.environ for name in ("OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE"))


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _message(body: Any) -> str:
    if isinstance(body, dict):
        for value in body.values():
            if isinstance(value, dict) and "message" in value:
                return str(value["message"])
    return str(body)
