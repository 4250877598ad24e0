# SPDX-License-Identifier: Apache-2.0
"""The weighers, and how names in ``weight_classes`` become some. Pure."""

from collections.abc import Mapping, Sequence

from novalite.scheduler import guard, loading
from novalite.scheduler.host_state import HostState
from novalite.scheduler.weights.affinity import (
    ServerGroupSoftAffinityWeigher,
    ServerGroupSoftAntiAffinityWeigher,
)
from novalite.scheduler.weights.base import Weigher
from novalite.scheduler.weights.counts import (
    BuildFailureWeigher,
    IoOpsWeigher,
    NumInstancesWeigher,
)
from novalite.scheduler.weights.cpu import CPUWeigher
from novalite.scheduler.weights.disk import DiskWeigher
from novalite.scheduler.weights.ram import RAMWeigher

_OURS: tuple[type[Weigher], ...] = (
    RAMWeigher,
    CPUWeigher,
    DiskWeigher,
    IoOpsWeigher,
    NumInstancesWeigher,
    ServerGroupSoftAffinityWeigher,
    ServerGroupSoftAntiAffinityWeigher,
    BuildFailureWeigher,
)
# Each weigher under the option that holds its multiplier, in the order of adding up.
WEIGHERS: dict[str, type[Weigher]] = {made.option: made for made in _OURS}
# Weighers of Nova's that are left out on purpose, and why.
LEFT_OUT = {
    "MetricsWeigher": "no compute reports metrics",
    "PCIWeigher": "there is no PCI passthrough",
    "HypervisorVersionWeigher": "it has nothing to do with room; use an aggregate",
    "ImagePropertiesWeigher": "it asks for all servers of each host at every boot",
    "CrossCellWeigher": "there is one cell",
}
ALL = (
    "novalite.scheduler.weights.all_weighers",
    "nova.scheduler.weights.all_weighers",
    "all_weighers",
)
_LOADER = loading.Loader(
    kind="weigher",
    base=Weigher,
    ours={made.__name__: made for made in _OURS},
    left_out=LEFT_OUT,
    everything=ALL,
    checks=guard.WEIGHER,
)


def load(multipliers: Mapping[str, float], names: Sequence[str] = ALL[:1]) -> list[Weigher]:
    """Return the weighers of these names in their order.

    :param multipliers: values by option; of ours, one that is not given is 0, and of others 1
    :param names: all_weighers, class names, or ``module:Class`` for one of one's own
    :raises exception.ConfigurationError: naming every name that is wrong and the valid ones
    """
    wanted: list[str] = []
    for name in names:
        wanted += [made.__name__ for made in _OURS] if name in ALL else [name]
    return [
        _LOADER.make(made, {"multiplier": multipliers.get(made.option, float(made not in _OURS))})
        for made in _LOADER.classes(wanted, ALL)
    ]


def running(weighers: Sequence[Weigher], hosts: Sequence[HostState]) -> list[Weigher]:
    """Return the weighers that count on any of these hosts: one of multiplier 0 counts only
    where an aggregate gives it another."""
    idle = {weigher.option for weigher in weighers if not weigher.multiplier}
    if idle:
        for joined in {host.joined for host in hosts}:
            idle -= joined.least.keys()
    return [weigher for weigher in weighers if weigher.multiplier or weigher.option not in idle]
