# SPDX-License-Identifier: Apache-2.0
"""Nova's normalisation and the three weighers."""

import pytest

from novalite.scheduler import demand, weights
from novalite.scheduler.weights import base
from tests.unit.scheduler import fakes


class Open(base.Weigher):
    """Both ends of the scale are the hosts' own."""


class Fixed(base.Weigher):
    minval = 0
    maxval = 100


def test_open_scale_goes_from_least_to_greatest():
    assert Open().normalise([2.0, 6.0, 4.0]) == [0.0, 1.0, 0.5]


def test_equal_weights_count_nothing():
    assert Open().normalise([5, 5, 5]) == [0.0, 0.0, 0.0]
    assert Open().normalise([-3]) == [0.0]


def test_fixed_ends_clamp():
    clamped = Fixed().clamp([-50, 25, 150])
    assert clamped == [0, 25, 100]
    assert Fixed().normalise(clamped) == [0.0, 0.25, 1.0]


def test_least_value_zero_is_the_foot_of_the_scale():
    weigher = weights.load({"ram_weight_multiplier": 1.0})[0]
    assert weigher.normalise(weigher.clamp([-1000, 500, 1000])) == [0.0, 0.5, 1.0]
    assert weigher.normalise(weigher.clamp([-1000, -500])) == [0.0, 0.0]


def test_a_multiplier_of_zero_is_not_run():
    loaded = weights.load(
        {"disk_weight_multiplier": -2.0, "ram_weight_multiplier": 0.0, "cpu_weight_multiplier": 3.0}
    )
    assert [(made.name, made.multiplier) for made in weights.running(loaded, [])] == [
        ("CPUWeigher", 3.0),
        ("DiskWeigher", -2.0),
    ]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("ram_weight_multiplier", [15872, -4096]),
        ("cpu_weight_multiplier", [128.0, 28.0]),
        ("disk_weight_multiplier", [204800, 20480]),
    ],
)
def test_raw_weights(option, expected):
    hosts = [
        fakes.host_state("h1"),
        fakes.host_state(
            "h2", memory_mb_used=20480, vcpus_used=100, local_gb_used=20, disk_available_least=20
        ),
    ]
    (made,) = weights.running(weights.load({option: 1.0}), [])
    assert made.column(hosts, demand.of(fakes.spec())) == expected


def test_a_weigher_of_ones_own_weighs_host_by_host():
    class Names(base.Weigher):
        def weigh(self, host, demand):
            return float(len(host.host)) * demand.vcpus

    hosts = [fakes.host_state("h1"), fakes.host_state("long")]
    assert Names().column(hosts, demand.of(fakes.spec(vcpus=2))) == [4.0, 8.0]
