# SPDX-License-Identifier: Apache-2.0
"""Filters that look at the metadata of a host's aggregates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects import aggregate
from novalite.objects.aggregate import Aggregate
from novalite.objects.capacity import Resource
from novalite.objects.reason import Reason
from novalite.scheduler import demand, filters
from tests.unit.scheduler import fakes


def joined(*metadata, **changes):
    """A host in one aggregate for each of these metadata."""
    host = fakes.host_state(**changes)
    host.join(tuple(Aggregate(n, f"u{n}", f"a{n}", None, m) for n, m in enumerate(metadata)))
    return host


def examine(name, host, options=None, **wanted):
    (made,) = filters.load([name], options)
    asked = demand.of(fakes.spec(**wanted), made.reads)
    reason = made.examine(host, asked)
    assert made.applies(asked) or reason is None
    return reason


# -- what aggregates say together


def test_equal_aggregates_are_equal_to_a_cache():
    one, two = (Aggregate(1, "u", "a", "z", {"k": "v"}) for _ in range(2))
    assert hash(one) == hash(two)
    assert aggregate.joined((one,)) is aggregate.joined((two,))
    assert aggregate.joined(()) is aggregate.NONE


def test_values_are_gathered_over_aggregates_and_commas():
    said = joined({"k": "a, b", "n": "3"}, {"k": "c", "n": "1.5"}).joined
    assert said.of("k") == {"a", "b", "c"}
    assert said.of("other") == frozenset()
    assert said.least == {"n": 1.5}


@pytest.mark.parametrize("values", [("2", "many"), ("",), ("nan",), ("inf", "1"), ("1,x",)])
def test_values_that_are_not_all_numbers_have_no_least(values):
    assert joined(*({"n": value} for value in values)).joined.least == {}


def test_numbers_beyond_every_use_stay_finite_in_sums():
    least = joined({"n": "1e308", "m": "-" + "9" * 254, "few": "2"}, {"few": "1e300"}).joined.least
    assert least == {"n": 1e15, "m": -1e15, "few": 2.0}


def test_the_zone_is_that_of_an_aggregate_or_the_default():
    host = fakes.host_state(zone="nova")
    host.join((Aggregate(1, "u1", "a"), Aggregate(2, "u2", "b", "left")))
    assert host.zone == "left"
    host.join(default_zone="other")
    assert host.zone == "left" and len(host.aggregates) == 2
    host.join(())
    assert host.zone == "other"


# -- ratios


@pytest.mark.parametrize(
    ("name", "key", "field", "total", "free"),
    [
        ("AggregateRamFilter", "ram_allocation_ratio", "memory_mb", 16384, 2 * 16384 - 512),
        ("AggregateDiskFilter", "disk_allocation_ratio", "root_gb", 200, 400),
        ("AggregateCoreFilter", "cpu_allocation_ratio", "vcpus", 8, 16),
    ],
)
def test_the_least_ratio_of_the_aggregates_counts(name, key, field, total, free):
    host = joined({key: "3"}, {key: "2.0"})
    (made,) = filters.load([name])
    room = made.room(host)
    assert (room.limit, room.usable) == (2 * total, free)
    reason = examine(name, host, **{field: total + 1})
    assert reason.code.startswith("larger_than_host_")
    full = joined({key: "0.01"})
    reason = examine(name, full, **{field: total})
    assert reason.code.startswith("not_enough_")
    assert (reason.need, reason.limit, reason.total) == (total, total * 0.01, total)
    assert reason.ratio == pytest.approx(0.01)
    assert reason.detail == "the ratio is that of an aggregate"
    assert None not in reason[:8]


@pytest.mark.parametrize(
    "metadata", [{}, {"ram_allocation_ratio": "x"}, {"ram_allocation_ratio": "0"}]
)
def test_without_a_ratio_the_hosts_own_stays(metadata):
    host = joined(metadata, memory_mb_used=24000)
    reason = examine("AggregateRamFilter", host, memory_mb=577)
    own = examine("RamFilter", host, memory_mb=577)
    numbers = (577, 576.0, 24576.0, 16384, 1.5, 24000, 512)
    assert reason == own == Reason("not_enough_memory", *numbers, detail=None)


ratios = st.sampled_from(["0.5", "1", "2.5", "1, 3", "0", "-1", "x", "nan"])


@given(
    st.lists(ratios, max_size=3),
    st.integers(0, 40000),
    st.integers(1, 20000),
    st.floats(0.1, 4.0),
)
def test_aggregate_ratios_are_the_plain_sum(values, used, wanted, own):
    """The verdict is that of total x ratio - used, with the ratio worked out by hand."""
    host = joined(
        *({"ram_allocation_ratio": value} for value in values),
        memory_mb_used=used,
        ram_allocation_ratio=own,
    )
    numbers = [part for value in values for part in value.split(",")]
    plain = all(part.strip() not in ("x", "nan") for part in numbers)
    least = min(map(float, numbers)) if numbers and plain else 0.0
    ratio = least if least > 0 else own
    fits = 16384 * ratio - used >= wanted and wanted <= 16384
    assert (examine("AggregateRamFilter", host, memory_mb=wanted) is None) == fits


def test_limits_that_go_with_a_selection_are_the_least_of_the_enabled_filters():
    host = joined({"ram_allocation_ratio": "1.25"})
    both = fakes.pipeline(("RamFilter", "AggregateRamFilter", "ExactDiskFilter"))
    limits = both.selection(host, False, 0.0).limits
    assert limits.as_dict() == {"memory_mb": 20480.0, "disk_gb": 200}
    assert fakes.pipeline(("RamFilter",)).selection(host, False, 0.0).limits.memory_mb == 24576.0
    assert fakes.pipeline(("RamFilter",)).selection(host, True, 0.0).limits.as_dict() == {}
    room = both.rooms(host).memory
    assert (room.resource, room.limit) == (Resource.MEMORY, 20480.0)


# -- isolation


def test_multi_tenancy_isolation():
    name = "AggregateMultiTenancyIsolation"
    assert examine(name, joined()) is None
    assert examine(name, joined({"filter_tenant_id": "other, project"})) is None
    assert (
        examine(name, joined({"filter_tenant_id": "other"}, {"filter_tenant_id": "project"}))
        is None
    )
    assert examine(name, joined({"filter_tenant_id": "other"})).code == "aggregate_wants_project"


@pytest.mark.parametrize(
    ("metadata", "properties", "passes"),
    [
        ({"os_distro": "windows"}, {"os_distro": "windows"}, True),
        ({"os_distro": "windows"}, {"os_distro": "debian"}, False),
        ({"os_distro": "windows, debian"}, {"os_distro": "debian"}, True),
        ({"os_distro": "windows"}, {"other": "x"}, True),
        ({"os_distro": "windows"}, {}, True),
        ({}, {"os_distro": "debian"}, True),
        ({"bits": "64"}, {"bits": 64}, True),
    ],
)
def test_image_properties_isolation(metadata, properties, passes):
    reason = examine("AggregateImagePropertiesIsolation", joined(metadata), properties=properties)
    assert (reason is None) == passes


def test_image_properties_isolation_in_a_namespace():
    host, properties = joined({"os": "a", "iso.os": "b"}), {"os": "x", "iso.os": "c"}
    name, option = "AggregateImagePropertiesIsolation", "aggregate_image_properties_isolation_"
    reason = examine(name, host, {f"{option}namespace": "iso"}, properties=properties)
    assert reason == Reason("aggregate_wants_image", detail="iso.os must be b, is c")
    other = {f"{option}namespace": "iso", f"{option}separator": "_"}
    assert examine(name, host, other, properties=properties) is None


def test_aggregate_type_affinity():
    name = "AggregateTypeAffinityFilter"
    assert examine(name, joined()) is None
    assert examine(name, joined({"instance_type": "g, f"})) is None
    reason = examine(name, joined({"instance_type": "g"}, {"instance_type": "e"}))
    assert reason == Reason("aggregate_wants_flavor", detail="e, g")


# -- extra specs


def specs(**extra_specs):
    request = fakes.spec()
    request.flavor.extra_specs = {key.replace("__", ":"): v for key, v in extra_specs.items()}
    return request


def extra(host, **extra_specs):
    (made,) = filters.load(["AggregateInstanceExtraSpecsFilter"])
    asked = demand.of(specs(**extra_specs))
    reason = made.examine(host, asked)
    assert made.applies(asked) or reason is None
    return reason


def test_aggregate_extra_specs():
    host = joined({"ssd": "true", "speed": "10"}, {"speed": "40"})
    scope = "aggregate_instance_extra_specs__"
    assert extra(host) is None
    assert extra(host, ssd="true") is None
    assert extra(host, **{f"{scope}ssd": "true", "hw__cpu_policy": "shared"}) is None
    assert extra(host, capabilities__ssd="no") is None
    assert extra(host, speed=">= 20") is None, "one of several values is enough"
    reason = extra(host, speed=">= 50")
    assert reason == Reason("aggregate_lacks_extra_spec", detail="speed must be >= 50, is 10, 40")
    reason = extra(joined(), **{f"{scope}ssd": "true"})
    assert reason.detail == "ssd must be true, is not set"


# -- counts


@pytest.mark.parametrize(
    ("name", "option", "code"),
    [
        ("NumInstancesFilter", "max_instances_per_host", "too_many_instances"),
        ("IoOpsFilter", "max_io_ops_per_host", "too_many_io_ops"),
    ],
)
def test_counts_keep_below_the_most(name, option, code):
    def host(count, *metadata):
        return joined(*metadata, running_vms=count, stats={"io_workload": count})

    assert examine(name, host(7), {option: 8}) is None
    reason = examine(name, host(8), {option: 8})
    assert reason == Reason(code, 1, 0, 8, 8, None, 8, 0)
    assert reason.text().endswith(": 1 requested, 0 usable: limit 8 - used 8")
    aggregated = f"Aggregate{name}"
    own = examine(aggregated, host(8), {option: 8})
    assert (own.limit, own.detail) == (8, None)
    assert examine(aggregated, host(8, {option: "9"}), {option: 8}) is None
    least = examine(aggregated, host(8, {option: "9"}, {option: "8"}), {option: 50})
    assert (least.limit, least.detail) == (8, "the most is that of an aggregate")
    assert examine(aggregated, host(8, {option: "many"}), {option: 9}) is None
    assert examine(name, host(8, {option: "9"}), {option: 8}) is not None


def test_what_was_selected_since_counts():
    host = fakes.host_state(running_vms=1, stats={"io_workload": 1})
    host.consume("other", demand.of(fakes.spec()).need)
    most = {"max_instances_per_host": 2, "max_io_ops_per_host": 2}
    assert examine("NumInstancesFilter", host, most).used == 2
    assert examine("IoOpsFilter", host, most).used == 2
    host.release("other")
    assert examine("NumInstancesFilter", host, most) is None
