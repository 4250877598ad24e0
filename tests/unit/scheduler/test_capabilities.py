# SPDX-License-Identifier: Apache-2.0
"""What flavors ask of hosts in their extra specs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novalite.objects.reason import Reason
from novalite.scheduler import demand, filters
from novalite.scheduler.filters import extra_specs_ops
from novalite.scheduler.filters.compute_capabilities_filter import CAPABILITIES
from tests.unit.scheduler import fakes

CPU = {"arch": "x86_64", "vendor": "Intel", "features": ["aes", "avx2"], "topology": {"cores": 4}}


def examine(extra_specs, **changes):
    request = fakes.spec()
    request.flavor.extra_specs = extra_specs
    (made,) = filters.load(["ComputeCapabilitiesFilter"])
    asked = demand.of(request)
    host = fakes.host_state(cpu_info=CPU, stats={"io_workload": 0, "rack": "r7"}, **changes)
    reason = made.examine(host, asked)
    assert made.applies(asked) or reason is None
    return reason


@pytest.mark.parametrize(
    ("value", "wanted", "meets"),
    [
        ("4", "4", True),
        ("4", "5", False),
        ("4.0", "4", False),
        ("", "", True),
        # numbers
        ("8", "= 4", True),
        ("3", "= 4", False),
        ("4.0", "== 4", True),
        ("4", "!= 4", False),
        ("4", ">= 4", True),
        ("5", "<= 4", False),
        ("many", ">= 4", False),
        ("4", ">= few", False),
        ("4", ">=4", False),
        # text
        ("b", "s== b", True),
        ("b", "s!= b", False),
        ("b", "s< c", True),
        ("b", "s<= b", True),
        ("b", "s> a", True),
        ("b", "s>= c", False),
        ("10", "s< 9", True),
        # parts
        ("aes avx2", "<in> avx", True),
        ("aes", "<in> avx", False),
        ("['aes', 'avx2']", "<all-in> aes avx2", True),
        ("['aes', 'avx2']", "<all-in> aes sse", False),
        ("b", "<or> a <or> b", True),
        ("ab", "<or> a <or> b", False),
        ("b", "<or>", False),
        ("b", "s==", False),
        ("<or>", "<in>", False),
        # an operator that there is not is a text
        ("=> 4", "=> 4", True),
        ("4", "=> 4", False),
    ],
)
def test_operators(value, wanted, meets):
    assert extra_specs_ops.match(value, wanted) == meets


@given(st.text(max_size=8), st.text(alphabet="=<>!s orinal-4. ", max_size=20))
def test_any_text_can_be_a_requirement(value, wanted):
    assert extra_specs_ops.match(value, wanted) in (True, False)


@pytest.mark.parametrize(
    ("extra_specs", "passes"),
    [
        ({}, True),
        ({"hw:cpu_policy": "shared", "quota:vif_inbound": "9"}, True),
        ({"aggregate_instance_extra_specs:ssd": "true"}, True),
        ({"capabilities:cpu_info:vendor": "Intel"}, True),
        ({"capabilities:cpu_info:vendor": "<or> AMD <or> Intel"}, True),
        ({"capabilities:cpu_info:vendor": "AMD"}, False),
        ({"capabilities:cpu_info:features": "<in> avx2"}, True),
        ({"capabilities:cpu_info:features": "<in> avx512"}, False),
        ({"capabilities:cpu_info:topology:cores": ">= 4"}, True),
        ({"capabilities:cpu_info:topology:cores": ">= 5"}, False),
        ({"capabilities:cpu_info:vendor:deeper": "Intel"}, False),
        ({"capabilities:hypervisor_type": "s== QEMU"}, True),
        ({"capabilities:free_ram_mb": ">= 15872"}, True),
        ({"capabilities:free_ram_mb": ">= 15873"}, False),
        ({"capabilities:rack": "r7"}, True),
        ({"capabilities:stats:rack": "r7"}, True),
        ({"capabilities:unheard_of": "x"}, False),
        ({"unheard_of": "x"}, True),
        ({"rack": "r8"}, False),
        ({"hypervisor_type": "QEMU"}, True),
        ({"vcpus_total": "= 9"}, False),
    ],
)
def test_capabilities(extra_specs, passes):
    reason = examine(extra_specs)
    assert (reason is None) == passes
    if reason is not None:
        assert reason.code == "capability_missing"


def test_the_reason_says_what_there_is():
    reason = examine({"capabilities:vcpus_total": ">= 12"})
    detail = "capabilities:vcpus_total must be >= 12, is 8"
    assert reason == Reason("capability_missing", need=12.0, have=8.0, total=8.0, detail=detail)
    reason = examine({"capabilities:nothing": "x"})
    assert reason.detail == "capabilities:nothing must be x, is nothing"


def test_every_capability_can_be_asked_for():
    host = fakes.host_state(cpu_info=CPU)
    assert all(look(host) is not None for look in CAPABILITIES.values())


def test_other_scopes_make_no_other_demand():
    one, two = fakes.spec(), fakes.spec()
    two.flavor.extra_specs = {"hw:cpu_policy": "shared"}
    assert demand.of(one) == demand.of(two)
    two.flavor.extra_specs["capabilities:rack"] = "r7"
    assert demand.of(one) != demand.of(two)
