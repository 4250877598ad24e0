# SPDX-License-Identifier: Apache-2.0
"""What filters may know of a request, as one frozen value.

Filters and weighers get a HostState and a Demand and nothing else. So the verdict on a host holds
until the host changes, whoever asks: two requests with equal demands have equal verdicts. That is
why no uuid and no user is in it unless a filter declares that it reads them. Pure.
"""

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from novalite.objects import capacity
from novalite.objects.capacity import Need
from novalite.objects.request_spec import RequestSpec

_ARCHITECTURES = {
    "amd64": "x86_64",
    "i386": "i686",
    "i486": "i686",
    "i586": "i686",
    "x86": "i686",
}
_VM_MODES = {"pv": "xen", "hv": "hvm", "baremetal": "hvm"}


class FrozenDict(dict[str, Any]):
    """A dict in a demand: nobody changes it, so it may be hashed."""

    def __hash__(self) -> int:  # type: ignore[override]
        """Return a hash that does not depend on the order of the keys."""
        return hash(frozenset(self.items()))


class Platform(NamedTuple):
    """On what a guest runs: architecture, hypervisor type, VM mode; None is "any"."""

    architecture: str | None
    hypervisor_type: str | None
    vm_mode: str | None


@dataclass(frozen=True, slots=True)
class Demand:
    """One request as filters and weighers see it: memory in MB, disk in GB.

    ``image`` is what the image asks of the host, or None. ``extra`` are the fields of the
    RequestSpec that third-party filters declare in ``reads``; they are read as attributes, and
    reading one that no filter declared is an error.
    """

    memory_mb: int
    disk_gb: int
    vcpus: int
    availability_zone: str | None = None
    ignore_hosts: frozenset[str] = frozenset()
    image: Platform | None = None
    extra: tuple[tuple[str, Any], ...] = ()

    @property
    def need(self) -> Need:
        """The three amounts in the order of claiming."""
        return Need(self.memory_mb, self.disk_gb, self.vcpus)

    def __getattr__(self, name: str) -> Any:
        """Return a declared field of the request."""
        for known, value in object.__getattribute__(self, "extra"):
            if known == name:
                return value
        raise AttributeError(f"{name}: a filter must declare it in `reads` to see it")


def of(spec: RequestSpec, reads: Iterable[str] = ()) -> Demand:
    """Return the demand of one request.

    :param reads: names of further RequestSpec fields that filters declared
    """
    wanted = capacity.need(spec.flavor, spec.volume_backed)
    return Demand(
        memory_mb=wanted.memory_mb,
        disk_gb=wanted.disk_gb,
        vcpus=wanted.vcpus,
        availability_zone=spec.availability_zone,
        ignore_hosts=frozenset(spec.ignore_hosts),
        image=_image_platform(spec.image.properties),
        extra=tuple((name, _frozen(getattr(spec, name))) for name in reads),
    )


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


def _frozen(value: Any) -> Any:
    """Return a value that can be hashed: lists as tuples, dicts as frozen ones."""
    if isinstance(value, dict):
        return FrozenDict((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    return value
