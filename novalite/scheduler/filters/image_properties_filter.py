# SPDX-License-Identifier: Apache-2.0
"""ImagePropertiesFilter: the host must be able to run what the image is made for. Pure."""

import functools
import operator
import re
from collections.abc import Callable, Sequence

from novalite.objects.reason import Reason
from novalite.scheduler.demand import Demand
from novalite.scheduler.filters import base
from novalite.scheduler.host_state import HostState

Version = tuple[int, ...]

_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_CONDITION = re.compile(r"(<=|>=|==|!=|<|>)\s*(\d+(?:\.\d+){0,2})$")


class ImagePropertiesFilter(base.Filter):
    """Compares architecture, hypervisor type and VM mode of the image with what a host supports.

    An image that asks for nothing runs anywhere; one that asks for something never runs on a host
    that does not say what it supports. ``img_hv_requested_version`` names versions of the
    hypervisor: ``>=4.1,<6.0``.
    """

    reads = ("hypervisor_requires",)

    def applies(self, demand: Demand) -> bool:
        """Only an image that asks for something can be refused."""
        return demand.image is not None or demand.hypervisor_requires is not None

    def examine(self, host: HostState, demand: Demand) -> Reason | None:
        """Return None or ``image_not_supported`` with what was asked for."""
        wanted = demand.image
        if wanted is not None and wanted not in host.platforms:
            return Reason("image_not_supported", detail=" ".join(part or "any" for part in wanted))
        versions = demand.hypervisor_requires
        if versions is None or _meets(host.picture.hypervisor_version, versions):
            return None
        there = ".".join(map(str, _parts(host.picture.hypervisor_version)))
        detail = f"hypervisor {versions}, is {there}"
        return Reason("image_not_supported", detail=detail)

    def refusals(self, hosts: Sequence[HostState], demand: Demand) -> list[Reason | None]:
        """Return what :meth:`examine` says of each of many hosts."""
        if demand.hypervisor_requires is not None:
            return super().refusals(hosts, demand)
        # Many hosts share one set of platforms.
        enough = {kind for kind in {host.platforms for host in hosts} if demand.image in kind}
        return [None if host.platforms in enough else self.examine(host, demand) for host in hosts]


def _parts(number: int) -> Version:
    """Return 9001002 as (9, 1, 2)."""
    return (number // 1_000_000, number // 1_000 % 1_000, number % 1_000)


@functools.lru_cache(maxsize=1024)
def _meets(number: int, conditions: str) -> bool:
    """Tell whether a hypervisor's version meets all conditions; what is none is met by none."""
    for condition in conditions.split(","):
        found = _CONDITION.match(condition.strip())
        if found is None:
            return False
        wanted = [int(part) for part in found[2].split(".")]
        if not _COMPARE[found[1]](_parts(number), (*wanted, 0, 0)[:3]):
            return False
    return True
