# SPDX-License-Identifier: Apache-2.0
"""What filters may know of a request, as one frozen value.

Filters and weighers get a HostState and a Demand and nothing else. So the verdict on a host holds
until the host changes, whoever asks: two requests with equal demands have equal verdicts. That is
why no uuid and no user is in it unless a filter declares that it reads them. Pure.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from novalite.objects import capacity
from novalite.objects.capacity import Need, Resource
from novalite.objects.frozen import FrozenDict, freeze
from novalite.objects.request_spec import InstanceGroup, RequestSpec

_ARCHITECTURES = {
    "amd64": "x86_64",
    "i386": "i686",
    "i486": "i686",
    "i586": "i686",
    "x86": "i686",
}
# Where a resource stands in a Need and in Rooms.
ORDER = {resource: place for place, resource in enumerate(Resource)}
_VM_MODES = {"pv": "xen", "hv": "hvm", "baremetal": "hvm"}


class Platform(NamedTuple):
    """On what a guest runs: architecture, hypervisor type, VM mode; None is "any"."""

    architecture: str | None
    hypervisor_type: str | None
    vm_mode: str | None


class Group(NamedTuple):
    """The server group of the request: its policy and how many other members are on each host.

    ``placed`` counts members that are claimed on a service host and members selected for it.
    """

    uuid: str
    policy: str
    max_per_host: int
    placed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Demand:
    """One request as filters and weighers see it: memory in MB, disk in GB.

    ``image`` is what the image asks of the host, or None. ``extra_specs`` are those of the flavor
    that speak of hosts, by their names. ``extra`` is what filters and weighers declare in
    ``reads``: fields of the RequestSpec, or what DERIVED names; they are read as attributes, and
    reading one that nobody declared is an error.
    """

    memory_mb: int
    disk_gb: int
    vcpus: int
    availability_zone: str | None = None
    ignore_hosts: frozenset[str] = frozenset()
    image: Platform | None = None
    extra_specs: tuple[tuple[str, str], ...] = ()
    group: Group | None = None
    extra: tuple[tuple[str, Any], ...] = ()

    @property
    def need(self) -> Need:
        """The three amounts in the order of claiming."""
        return Need(self.memory_mb, self.disk_gb, self.vcpus)

    def amount(self, resource: Resource) -> int:
        """Return what is needed of one resource."""
        return self.need[ORDER[resource]]

    def __getattr__(self, name: str) -> Any:
        """Return a declared field of the request."""
        for known, value in object.__getattribute__(self, "extra"):
            if known == name:
                return value
        raise AttributeError(f"{name}: a filter must declare it in `reads` to see it")


def of(
    spec: RequestSpec, reads: Iterable[str] = (), selected: Mapping[str, str] | None = None
) -> Demand:
    """Return the demand of one request.

    :param reads: names of further RequestSpec fields, or of DERIVED, that filters declared
    :param selected: members of its group (uuid) that were selected for a service host since
    """
    wanted = capacity.need(spec.flavor, spec.volume_backed)
    return Demand(
        memory_mb=wanted.memory_mb,
        disk_gb=wanted.disk_gb,
        vcpus=wanted.vcpus,
        availability_zone=spec.availability_zone,
        ignore_hosts=frozenset(spec.ignore_hosts),
        image=_image_platform(spec.image.properties),
        extra_specs=_host_specs(spec.flavor.extra_specs),
        group=_group(spec.instance_group, spec.instance_uuid, selected or {}),
        extra=tuple((name, _read(spec, name)) for name in reads),
    )


def _host_specs(extra_specs: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Leave out the extra specs of other scopes: they ask nothing of a host's picture."""
    if not extra_specs:
        return ()
    return tuple(
        sorted(
            (name, str(value))
            for name, value in extra_specs.items()
            if ":" not in name or name.partition(":")[0] in HOST_SCOPES
        )
    )


def _group(
    group: InstanceGroup | None, instance_uuid: str, selected: Mapping[str, str]
) -> Group | None:
    if group is None:
        return None
    members = {**group.placed, **selected}
    members.pop(instance_uuid, None)
    most = int(group.rules.get("max_server_per_host", 1))
    return Group(group.uuid, group.policy, most, FrozenDict(Counter(members.values())))


def _read(spec: RequestSpec, name: str) -> Any:
    derive = DERIVED.get(name)
    return freeze(getattr(spec, name) if derive is None else derive(spec))


# Scopes of flavor extra specs that ask something of the host.
HOST_SCOPES = ("capabilities", "aggregate_instance_extra_specs")


def _hinted(spec: RequestSpec, hint: str) -> tuple[tuple[str, str | None], ...]:
    """Return the servers that a hint names, each with its service host if it has one."""
    named = spec.scheduler_hints.get(hint) or []
    servers = [named] if isinstance(named, str) else named
    return tuple((server, spec.hinted_hosts.get(server)) for server in sorted(set(servers)))


def _near(spec: RequestSpec) -> str | None:
    """Return the network near which the hints want the server."""
    address = spec.scheduler_hints.get("build_near_host_ip")
    return f"{address}{spec.scheduler_hints.get('cidr', '/24')}" if address else None


def _hypervisor_requires(properties: dict[str, Any]) -> str | None:
    """Return the versions of the hypervisor that the image is made for."""
    versions = properties.get("img_hv_requested_version")
    versions = versions or properties.get("hypervisor_version_requires")
    return str(versions) if versions else None


# What filters may declare in ``reads`` besides the fields of the RequestSpec.
DERIVED: dict[str, Callable[[RequestSpec], Any]] = {
    "flavorid": lambda spec: spec.flavor.flavorid,
    "flavor_name": lambda spec: spec.flavor.name,
    "image_id": lambda spec: spec.image.id,
    "image_properties": lambda spec: spec.image.properties,
    "different_host": lambda spec: _hinted(spec, "different_host"),
    "same_host": lambda spec: _hinted(spec, "same_host"),
    "near": _near,
    "hypervisor_requires": lambda spec: _hypervisor_requires(spec.image.properties),
}
READABLE = frozenset(DERIVED) | {each.name for each in fields(RequestSpec)}


def platform(architecture: Any, hypervisor_type: Any, vm_mode: Any) -> Platform:
    """Return a platform under the canonical names: amd64 is x86_64, x86 is i686, hv is hvm."""
    arch, kind, mode = (
        str(value).strip().lower() if value else None
        for value in (architecture, hypervisor_type, vm_mode)
    )
    return Platform(
        _ARCHITECTURES.get(arch or "", arch),
        "xen" if kind == "xapi" else kind,
        _VM_MODES.get(mode or "", mode),
    )


@functools.lru_cache(maxsize=256)
def wishes_met(supported: tuple[tuple[str, ...], ...]) -> frozenset[Platform]:
    """Return every wish that a host with these supported_instances meets.

    Each part of a wish may be None for "any", so that one look-up answers for a host. Most hosts
    of a cloud share one set.
    """
    met: set[Platform] = set()
    for entry in supported:
        parts = [(part, None) for part in platform(*entry[:3])]
        met.update(Platform(*choice) for choice in itertools.product(*parts))
    return frozenset(met)


def _image_platform(properties: dict[str, Any]) -> Platform | None:
    """Read the image's wishes under their present names or those before Liberty."""
    if not properties:
        return None
    wanted = platform(
        properties.get("hw_architecture") or properties.get("architecture"),
        properties.get("img_hv_type") or properties.get("hypervisor_type"),
        properties.get("hw_vm_mode") or properties.get("vm_mode"),
    )
    return wanted if any(wanted) else None
