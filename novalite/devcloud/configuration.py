# SPDX-License-Identifier: Apache-2.0
"""The text of every file that a development cloud needs. Pure: nothing here touches the disk."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

Sections = dict[str, dict[str, object]]

REGION = "RegionOne"
CONDUCTOR = "novalite-conductor"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Ports on 127.0.0.1."""

    api: int
    identity: int
    image: int
    network: int
    volume: int = 0

    @property
    def compute_url(self) -> str:
        """The Compute API."""
        return f"http://127.0.0.1:{self.api}/v2.1"

    @property
    def auth_url(self) -> str:
        """Identity v3."""
        return f"http://127.0.0.1:{self.identity}/v3"

    @property
    def image_url(self) -> str:
        """Image v2, without its version, as the catalogue has it."""
        return f"http://127.0.0.1:{self.image}"

    @property
    def network_url(self) -> str:
        """Network v2.0, without its version."""
        return f"http://127.0.0.1:{self.network}"

    @property
    def volume_url(self) -> str:
        """Block storage v3, without version and project."""
        return f"http://127.0.0.1:{self.volume}"


@dataclass(frozen=True, slots=True)
class Service:
    """One process of the cloud.

    :param name: in ``ps``, in the names of its files and as an argument of ``logs``
    :param binary: its name in the services table; empty if it has no record there
    :param http: URLs that must answer before it counts as ready
    :param after: program that it registers with at its start, and so is better started after
    :param own: what stands in its own file, over the common one
    """

    name: str
    program: str
    binary: str = ""
    host: str = ""
    http: tuple[str, ...] = ()
    after: str = ""
    own: Sections = field(default_factory=dict)


def render(sections: Mapping[str, Mapping[str, object]]) -> str:
    """Return the sections as an oslo.config file; None leaves an option out."""
    lines: list[str] = []
    for section, options in sections.items():
        lines.append(f"[{section}]")
        for name, value in options.items():
            if value is None:
                continue
            # A dollar sign would begin the name of another option.
            lines.append(f"{name} = {str(value).replace('$', '$$')}")
        lines.append("")
    return "\n".join(lines)


def merge(*layers: Mapping[str, Mapping[str, object]]) -> Sections:
    """Return one set of sections; later layers win option by option."""
    merged: Sections = {}
    for layer in layers:
        for section, options in layer.items():
            merged.setdefault(section, {}).update(options)
    return merged


def common(
    endpoints: Endpoints,
    *,
    transport_url: str,
    database_url: str,
    state_path: str,
    service_password: str | None,
) -> Sections:
    """Return novalite.conf: what all services of the cloud share.

    :param service_password: of novalite's own account; None for a cloud without neighbours
    """
    account: dict[str, object] = {
        "auth_url": endpoints.auth_url,
        "username": "nova",
        "password": service_password,
        "project_name": "service",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "region_name": REGION,
    }
    alone: Sections = {
        "DEFAULT": {
            "transport_url": transport_url,
            "state_path": state_path,
            "graceful_shutdown_timeout": 10,
        },
        "api": {"auth_strategy": "noauth2" if service_password is None else "keystone"},
        "database": {"connection": database_url},
    }
    if service_password is None:
        return alone
    return {
        **alone,
        "keystone_authtoken": {
            "auth_type": "password",
            "www_authenticate_uri": endpoints.auth_url,
            **account,
        },
        "service_user": account,
    }


def services(
    endpoints: Endpoints,
    *,
    state_path: str,
    computes: int,
    conductors: int = 1,
    schedulers: int = 1,
    api_workers: int = 1,
) -> list[Service]:
    """Return the services of Nova itself, in the order in which they are shown."""
    return [
        *_control(CONDUCTOR, conductors),
        *_control("novalite-scheduler", schedulers),
        *[compute(number, state_path) for number in range(1, computes + 1)],
        Service(
            name="api",
            program="novalite-api",
            host="controller",
            http=(f"http://127.0.0.1:{endpoints.api}/",),
            own={
                "DEFAULT": {
                    "host": "controller",
                    "osapi_compute_listen": "127.0.0.1",
                    "osapi_compute_listen_port": endpoints.api,
                    "osapi_compute_workers": api_workers,
                }
            },
        ),
    ]


def compute(number: int, state_path: str) -> Service:
    """Return the compute host *number*; it has a name and a state_path of its own."""
    name = f"compute{number}"
    return Service(
        name=name,
        program="novalite-compute",
        binary="nova-compute",
        host=name,
        after=CONDUCTOR,
        own={"DEFAULT": {"host": name, "state_path": f"{state_path}/{name}"}},
    )


def _control(program: str, count: int) -> list[Service]:
    name = program.removeprefix("novalite-")
    made = []
    for number in range(1, count + 1):
        suffix = "" if count == 1 else str(number)
        host = f"controller{suffix}"
        made.append(
            Service(
                name=name + suffix,
                program=program,
                binary=f"nova-{name}",
                host=host,
                after="" if program == CONDUCTOR else CONDUCTOR,
                own={"DEFAULT": {"host": host}},
            )
        )
    return made


def neighbors(endpoints: Endpoints, *, state_path: str, passwords: Mapping[str, str]) -> Service:
    """Return the stand-ins for identity, image, network and block storage.

    :param passwords: of the accounts ``admin``, ``demo`` and ``service``
    """
    return Service(
        name="neighbors",
        program="novalite-neighbors",
        http=(
            endpoints.auth_url,
            *(
                f"{url}/"
                for url in (endpoints.image_url, endpoints.network_url, endpoints.volume_url)
            ),
        ),
        own={
            "DEFAULT": {"state_path": f"{state_path}/neighbors"},
            "neighbors": {
                "listen": "127.0.0.1",
                "identity_port": endpoints.identity,
                "image_port": endpoints.image,
                "network_port": endpoints.network,
                "volume_port": endpoints.volume,
                "region": REGION,
                "compute_endpoint": endpoints.compute_url,
                **{f"{account}_password": word for account, word in passwords.items()},
            },
        },
    )


def clouds_yaml(endpoints: Endpoints, accounts: Mapping[str, tuple[str, str, str]]) -> str:
    """Return clouds.yaml.

    :param accounts: name of the cloud: (user, project, password)
    """
    clouds = {
        cloud: {
            "auth": {
                "auth_url": endpoints.auth_url,
                "username": user,
                "password": password,
                "project_name": project,
                "user_domain_name": "Default",
                "project_domain_name": "Default",
            },
            "region_name": REGION,
            "identity_api_version": "3",
        }
        for cloud, (user, project, password) in accounts.items()
    }
    return yaml.safe_dump({"clouds": clouds}, sort_keys=False)


def openrc(endpoints: Endpoints, password: str) -> str:
    """Return a shell file that makes its reader the cloud's administrator."""
    values = {
        "OS_AUTH_TYPE": "password",
        "OS_AUTH_URL": endpoints.auth_url,
        "OS_USERNAME": "admin",
        "OS_PASSWORD": password,
        "OS_PROJECT_NAME": "admin",
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": REGION,
        "OS_IDENTITY_API_VERSION": "3",
    }
    # A cloud named in the environment would win over all of these.
    lines = ["unset OS_CLOUD", *(f"export {name}='{value}'" for name, value in values.items())]
    return "\n".join(lines) + "\n"
