# SPDX-License-Identifier: Apache-2.0
"""What holds for every filter of ours, whatever the host and the request."""

from hypothesis import given, settings
from hypothesis import strategies as st

from novalite.objects.aggregate import Aggregate
from novalite.objects.capacity import Need
from novalite.objects.reason import WORDS
from novalite.objects.request_spec import InstanceGroup
from novalite.scheduler import demand, filters
from tests.unit.scheduler import fakes

OPTIONS = {
    "max_instances_per_host": 2,
    "max_io_ops_per_host": 2,
    "isolated_images": ["iso"],
    "isolated_hosts": ["h1"],
    "aggregate_image_properties_isolation_namespace": None,
}
ALL = filters.load(list(filters.FILTERS), OPTIONS)
READS = sorted({name for made in ALL for name in made.reads})
# Codes of reasons that are about amounts, and so carry the whole arithmetic.
AMOUNTS = ("not_enough_", "larger_than_host_", "not_exact_", "too_many_", "group_anti_affinity")

names = st.sampled_from(["h1", "h2", "h3"])
metadata = st.dictionaries(
    st.sampled_from(
        ["ram_allocation_ratio", "cpu_allocation_ratio", "instance_type", "filter_tenant_id", "ssd"]
        + ["max_instances_per_host", "max_io_ops_per_host", "os_distro"]
    ),
    st.sampled_from(["1", "2.5", "f", "project", "other, f", "x"]),
    max_size=4,
)
places = st.dictionaries(st.sampled_from("abc"), names, max_size=3)


@st.composite
def host_states(draw):
    used = draw(st.integers(0, 30000))
    stats = {
        "io_workload": draw(st.integers(0, 3)),
        "flavorids": draw(st.sampled_from([[], ["f"], ["g"]])),
    }
    host = fakes.host_state(
        draw(names),
        up=draw(st.booleans()),
        zone=draw(st.sampled_from(["nova", "left"])),
        memory_mb_used=used,
        vcpus_used=draw(st.integers(0, 140)),
        disk_available_least=draw(st.none() | st.integers(-20, 200)),
        running_vms=draw(st.integers(0, 3)),
        stats=stats,
    )
    host.disabled = draw(st.booleans())
    found = draw(st.lists(metadata, max_size=3))
    host.join(tuple(Aggregate(n, f"u{n}", "a", None, each) for n, each in enumerate(found)))
    if draw(st.booleans()):
        host.consume("a", Need(512, 1, 1), group="g", flavorid=draw(st.sampled_from("fg")))
    return host


@st.composite
def requests(draw):
    policy = draw(st.sampled_from([None, "affinity", "anti-affinity", "soft-affinity"]))
    hints = draw(
        st.sampled_from(
            [{}, {"same_host": "a"}, {"different_host": ["a", "b"]}]
            + [{"build_near_host_ip": "127.0.0.9"}, {"build_near_host_ip": "10.0.0.1"}]
        )
    )
    spec = fakes.spec(
        vcpus=draw(st.integers(1, 10)),
        memory_mb=draw(st.integers(1, 20000)),
        root_gb=draw(st.integers(0, 250)),
        properties=draw(st.sampled_from([{}, {"os_distro": "x"}, {"hw_architecture": "s390x"}])),
        availability_zone=draw(st.sampled_from([None, "nova", "left"])),
        ignore_hosts=draw(st.lists(names, max_size=2)),
        scheduler_hints=hints,
        hinted_hosts=draw(places),
        instance_group=policy and InstanceGroup("g", policy, {}, draw(places)),
    )
    spec.image.id = draw(st.sampled_from(["iso", "free"]))
    spec.flavor.extra_specs = draw(
        st.sampled_from([{}, {"ssd": "1"}, {"capabilities:vcpus_total": ">= 9"}])
    )
    return spec


def picture(host):
    return repr(host.picture), dict(host.selected), host.rooms, host.num_instances, host.zone


@settings(max_examples=30)
@given(host_states(), requests())
def test_a_verdict_is_pure(host, request):
    """The same host and demand: the same verdict, and neither has changed."""
    asked, again = (demand.of(request, READS) for _ in range(2))
    assert asked == again and hash(asked) == hash(again)
    before = picture(host)
    verdicts = [made.examine(host, asked) for made in ALL]
    assert verdicts == [made.examine(host.copy(), again) for made in ALL]
    assert picture(host) == before


@settings(max_examples=30)
@given(host_states(), requests())
def test_a_filter_that_does_not_apply_refuses_nobody(host, request):
    asked = demand.of(request, READS)
    for made in ALL:
        assert made.applies(asked) or made.examine(host, asked) is None


@settings(max_examples=30)
@given(host_states(), requests())
def test_every_reason_has_words_and_those_of_amounts_their_arithmetic(host, request):
    asked = demand.of(request, READS)
    for made in ALL:
        reason = made.examine(host, asked)
        if reason is None:
            continue
        assert reason.code in WORDS
        assert reason.text().startswith(WORDS[reason.code])
        if reason.code.startswith(AMOUNTS):
            need, have, limit, total, _ratio, used, reserved = reason[1:8]
            assert None not in (need, have, limit, total, used, reserved)
            assert need > have or reason.code.startswith("not_exact_")
            assert have == min(limit - used, total) or reason.code.startswith("not_exact_")


@settings(max_examples=30)
@given(host_states(), requests())
def test_declaring_what_is_read_is_enough(host, request):
    """A filter sees what it declares and nothing else, and says the same as with everything."""
    everything = demand.of(request, READS)
    for made in ALL:
        asked = demand.of(request, made.reads)
        assert made.examine(host, asked) == made.examine(host, everything)
        assert made.applies(asked) == made.applies(everything)
