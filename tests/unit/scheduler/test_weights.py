# SPDX-License-Identifier: Apache-2.0
"""Nova's normalisation, the weighers and the multipliers of aggregates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects.aggregate import Aggregate
from novalite.objects.request_spec import InstanceGroup
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


# -- counts, groups, failed builds


def only(option, multiplier=1.0):
    return next(one for one in weights.load({option: multiplier}) if one.option == option)


def test_counts_are_weighed():
    quiet = fakes.host_state("quiet", running_vms=3)
    busy = fakes.host_state("busy", running_vms=1, stats={"io_workload": 2, "failed_builds": 4})
    asked, hosts = demand.of(fakes.spec()), [quiet, busy]
    assert only("io_ops_weight_multiplier").column(hosts, asked) == [0, 2]
    assert only("num_instances_weight_multiplier").column(hosts, asked) == [3, 1]
    assert only("build_failure_weight_multiplier").column(hosts, asked) == [0, 4]


def grouped(policy, placed):
    return demand.of(fakes.spec(instance_group=InstanceGroup("g", policy, {}, placed)))


@pytest.mark.parametrize(
    ("policy", "option", "weight"),
    [
        ("soft-affinity", "soft_affinity_weight_multiplier", [2.0, 1.0, 0.0]),
        ("soft-anti-affinity", "soft_anti_affinity_weight_multiplier", [-2.0, -1.0, 0.0]),
    ],
)
def test_soft_policies_count_members(policy, option, weight):
    hosts = [fakes.host_state(name) for name in ("h1", "h2", "h3")]
    made, placed = only(option), {"a": "h1", "b": "h1", "c": "h2"}
    asked = grouped(policy, placed)
    assert made.applies(asked) and made.column(hosts, asked) == weight
    for other in (grouped("affinity", placed), grouped(policy, {}), demand.of(fakes.spec())):
        assert not made.applies(other) and not any(made.column(hosts, other))


def best(hosts, spec=None, **multipliers):
    full = {f"{name}_weight_multiplier": value for name, value in multipliers.items()}
    pipeline = fakes.Pipeline([], weights.load(full))
    return pipeline.schedule(hosts, [spec or fakes.spec()]).hosts[0].host


def test_soft_policies_choose():
    def hosts():
        return [fakes.host_state("h1", memory_mb_used=4096), fakes.host_state("h2")]

    near = InstanceGroup("g", "soft-affinity", {}, {"a": "h1"})
    away = InstanceGroup("g", "soft-anti-affinity", {}, {"a": "h2"})
    assert best(hosts(), ram=0.5, soft_affinity=1.0) == "h2"
    assert best(hosts(), fakes.spec(instance_group=near), ram=0.5, soft_affinity=1.0) == "h1"
    assert best(hosts(), fakes.spec(instance_group=away), ram=0.5, soft_anti_affinity=1.0) == "h1"


def test_v08_a_host_that_failed_a_build_comes_last_and_no_other():
    hosts = [
        fakes.host_state("broken", stats={"failed_builds": 1}),
        fakes.host_state("full", memory_mb_used=16000),
    ]
    assert best(hosts, ram=1.0, build_failure=1000000.0) == "full"
    assert best([hosts[0].copy(), hosts[1].copy()], ram=1.0, build_failure=0.0) == "broken"


# -- multipliers of aggregates


def in_aggregates(name, *values, option="ram_weight_multiplier", **changes):
    host = fakes.host_state(name, **changes)
    host.join(tuple(Aggregate(n, "", "", None, {option: v}) for n, v in enumerate(values)))
    return host


def test_the_least_multiplier_of_the_aggregates_counts():
    made = only("ram_weight_multiplier", 2.0)
    for values, expected in (
        ((), 2.0),
        (("3",), 3.0),
        (("3", "-1.5"), -1.5),
        (("3", "x"), 2.0),
        (("0",), 0.0),
    ):
        assert made.multiplier_on(in_aggregates("h", *values)) == expected
    failed = only("build_failure_weight_multiplier", 5.0)
    host = in_aggregates("h", "7", option="build_failure_weight_multiplier")
    assert (failed.multiplier, failed.multiplier_on(host)) == (-5.0, -7.0)


def test_an_aggregate_turns_stacking_on_for_its_hosts():
    empty = in_aggregates("empty", "-1")
    assert best([empty, in_aggregates("half", "-1", memory_mb_used=8192)], ram=1.0) == "half"
    assert best([empty.copy(), fakes.host_state("half", memory_mb_used=8192)], ram=1.0) == "half"


def test_a_decision_shows_the_multipliers_in_force():
    hosts = [in_aggregates("h1", "-1"), fakes.host_state("h2", memory_mb_used=8192)]
    pipeline = fakes.Pipeline([], weights.load({"ram_weight_multiplier": 2.0}))
    decision = pipeline.schedule(hosts, [fakes.spec()]).decisions[0]
    shown = {row.host: row.multipliers for row in decision.weights}
    assert shown == {"h1": [-1.0], "h2": None}
    for row in decision.admin_view()["weights"]:
        assert row["total"] == sum(each["weighted"] for each in row["weighers"])


def test_a_multiplier_of_0_is_run_where_an_aggregate_gives_it_another():
    option = "num_instances_weight_multiplier"
    loaded = weights.load({"ram_weight_multiplier": 1.0})
    plain, other = fakes.host_state(), in_aggregates("h", "1", option=option)
    assert [one.name for one in weights.running(loaded, [plain])] == ["RAMWeigher"]
    assert [one.name for one in weights.running(loaded, [plain, other])] == [
        "RAMWeigher",
        "NumInstancesWeigher",
    ]
    hosts = [
        fakes.host_state("h1"),
        in_aggregates("h2", "9", option=option, running_vms=2, memory_mb_used=1024),
    ]
    assert best(hosts, ram=1.0, num_instances=0.0) == "h2"


numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@given(
    st.sampled_from(list(weights.WEIGHERS)),
    st.lists(numbers, min_size=1, max_size=20),
)
def test_shares_lie_between_0_and_1(option, raw):
    made = only(option)
    shares = made.normalise(made.clamp(list(raw)))
    assert all(0.0 <= share <= 1.0 for share in shares)
    if made.minval is None and len(set(raw)) > 1:
        assert (min(shares), max(shares)) == (0.0, 1.0)
    assert sorted(shares) == [
        shares[place] for place in sorted(range(len(raw)), key=raw.__getitem__)
    ]


@given(
    st.lists(st.tuples(numbers, st.sampled_from([None, "0", "2.5", "-1", "x"])), max_size=12),
    st.floats(-5, 5),
)
def test_weighted_is_share_times_the_multiplier_in_force(rows, multiplier):
    made = only("ram_weight_multiplier", multiplier)
    hosts = [in_aggregates("h", *([value] if value else [])) for _number, value in rows]
    shares = [number for number, _value in rows]
    plain = [
        share * (multiplier if value in (None, "x") else float(value))
        for share, (_number, value) in zip(shares, rows, strict=True)
    ]
    assert made.weighted(hosts, shares) == plain
