# SPDX-License-Identifier: Apache-2.0
"""The weighers in the order in which their weights are added up. Pure."""

from novalite.scheduler.weights.base import Weigher
from novalite.scheduler.weights.cpu import CPUWeigher
from novalite.scheduler.weights.disk import DiskWeigher
from novalite.scheduler.weights.ram import RAMWeigher

# Each weigher under the option that holds its multiplier.
WEIGHERS: dict[str, type[Weigher]] = {
    "ram_weight_multiplier": RAMWeigher,
    "cpu_weight_multiplier": CPUWeigher,
    "disk_weight_multiplier": DiskWeigher,
}


def load(multipliers: dict[str, float]) -> list[Weigher]:
    """Return the weighers whose multiplier is not 0; a multiplier that is not given is 0."""
    return [
        weigher(multipliers[option])
        for option, weigher in WEIGHERS.items()
        if multipliers.get(option)
    ]
