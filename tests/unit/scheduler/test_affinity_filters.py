# SPDX-License-Identifier: Apache-2.0
"""Near to or away from other servers: hints, server groups, other flavors, isolated hosts."""

import pytest

from novalite.objects.reason import Reason
from novalite.objects.request_spec import InstanceGroup
from novalite.scheduler import demand, filters
from tests.unit.scheduler import fakes


def examine(name, host, options=None, **wanted):
    (made,) = filters.load([name], options)
    asked = demand.of(fakes.spec(**wanted), made.reads)
    reason = made.examine(host, asked)
    assert made.applies(asked) or reason is None
    return reason


def hinted(name, hint, servers, host=None, places=None):
    host = host or fakes.host_state("h1")
    hints, places = {hint: servers}, places or {"a": "h1", "b": "h2"}
    return examine(name, host, scheduler_hints=hints, hinted_hosts=places)


def test_different_host():
    assert examine("DifferentHostFilter", fakes.host_state()) is None
    assert hinted("DifferentHostFilter", "different_host", "b") is None
    assert hinted("DifferentHostFilter", "different_host", ["b", "unknown"]) is None
    reason = hinted("DifferentHostFilter", "different_host", ["b", "a"])
    assert reason == Reason("not_different_host", detail="a")


def test_same_host():
    assert examine("SameHostFilter", fakes.host_state()) is None
    assert hinted("SameHostFilter", "same_host", ["b", "a"]) is None
    assert hinted("SameHostFilter", "same_host", "b") == Reason("not_same_host")
    assert hinted("SameHostFilter", "same_host", ["unknown"]).code == "not_same_host"


def test_hints_see_a_server_that_was_selected_a_moment_ago():
    host = fakes.host_state("h1")
    host.consume("c", demand.of(fakes.spec()).need)
    assert hinted("DifferentHostFilter", "different_host", "c", host).detail == "c"
    assert hinted("SameHostFilter", "same_host", "c", host) is None


@pytest.mark.parametrize(
    ("hints", "address", "passes"),
    [
        ({}, "10.1.2.3", True),
        ({"build_near_host_ip": "10.1.2.9"}, "10.1.2.3", True),
        ({"build_near_host_ip": "10.1.3.9"}, "10.1.2.3", False),
        ({"build_near_host_ip": "10.1.3.9", "cidr": "/16"}, "10.1.2.3", True),
        ({"build_near_host_ip": "10.1.3.9", "cidr": "/255.255.0.0"}, "10.1.2.3", True),
        ({"build_near_host_ip": "10.1.3.9", "cidr": "/99"}, "10.1.3.9", False),
        ({"build_near_host_ip": "fd00::1", "cidr": "/64"}, "fd00::2", True),
        ({"build_near_host_ip": "10.1.3.9"}, "a name", False),
    ],
)
def test_simple_cidr_affinity(hints, address, passes):
    host = fakes.host_state(host_ip=address)
    reason = examine("SimpleCIDRAffinityFilter", host, scheduler_hints=hints)
    assert (reason is None) == passes
    if reason is not None:
        assert reason.code == "other_network" and address in reason.detail


# -- server groups


def group(policy, placed=None, **rules):
    return InstanceGroup("g", policy, rules, placed or {})


def test_anti_affinity():
    name, host = "ServerGroupAntiAffinityFilter", fakes.host_state("h1")
    there = {"a": "h1", "b": "h1", "c": "h2"}
    assert examine(name, host) is None
    assert examine(name, host, instance_group=group("anti-affinity", {"c": "h2"})) is None
    reason = examine(name, host, instance_group=group("anti-affinity", there))
    assert reason == Reason("group_anti_affinity", 1, -1, 1, 1, None, 2, 0)
    for policy in ("affinity", "soft-anti-affinity", "soft-affinity"):
        assert examine(name, host, instance_group=group(policy, there)) is None
    three = group("anti-affinity", there, max_server_per_host=3)
    assert examine(name, host, instance_group=three) is None
    two = group("anti-affinity", there, max_server_per_host=2)
    assert examine(name, host, instance_group=two).have == 0


def test_affinity():
    name, host = "ServerGroupAffinityFilter", fakes.host_state("h1")
    assert examine(name, host) is None
    assert examine(name, host, instance_group=group("affinity")) is None
    assert examine(name, host, instance_group=group("affinity", {"a": "h1"})) is None
    reason = examine(name, host, instance_group=group("affinity", {"a": "h2", "b": "h3"}))
    assert reason == Reason("group_affinity", detail="h2, h3")
    other = group("soft-affinity", {"a": "h2"})
    assert examine(name, host, instance_group=other) is None


def test_the_server_itself_is_no_other_member():
    made = group("anti-affinity", {"i1": "h1"})
    name = "ServerGroupAntiAffinityFilter"
    assert examine(name, fakes.host_state("h1"), instance_group=made) is None


NAMES = ("ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter")


def schedule(hosts, policy, uuids, **rules):
    requests = [fakes.spec(uuid, instance_group=group(policy, **rules)) for uuid in uuids]
    return fakes.pipeline(NAMES).schedule(hosts, requests)


def test_members_of_one_request_keep_apart():
    hosts = [fakes.host_state(f"h{n}") for n in range(3)]
    outcome = schedule(hosts, "anti-affinity", "abc")
    assert sorted(host.host for host in outcome.hosts) == ["h0", "h1", "h2"]


def test_v08_the_fourth_member_on_three_hosts_has_no_host():
    hosts = [fakes.host_state(f"h{n}") for n in range(3)]
    for uuid in "abc":
        assert schedule(hosts, "anti-affinity", uuid).found
    outcome = schedule(hosts, "anti-affinity", "d")
    assert not outcome.found
    assert outcome.decisions[0].filters[0].codes == {"group_anti_affinity": 3}
    assert schedule(hosts, "anti-affinity", "d", max_server_per_host=2).found


def test_members_of_separate_requests_keep_together():
    hosts = [fakes.host_state(f"h{n}") for n in range(3)]
    places = {schedule(hosts, "affinity", uuid).hosts[0].host for uuid in "abc"}
    assert len(places) == 1


def test_other_groups_do_not_count():
    hosts = [fakes.host_state("h1")]
    assert schedule(hosts, "anti-affinity", "a").found
    other = fakes.spec("b", instance_group=InstanceGroup("other", "anti-affinity"))
    assert fakes.pipeline(NAMES).schedule(hosts, [other]).found


def test_a_member_whose_selection_is_over_does_not_count():
    hosts = [fakes.host_state("h1")]
    assert schedule(hosts, "anti-affinity", "a").found
    hosts[0].release("a")
    assert schedule(hosts, "anti-affinity", "b").found


# -- flavors and isolated hosts


def test_type_affinity():
    name = "TypeAffinityFilter"
    assert examine(name, fakes.host_state()) is None
    assert examine(name, fakes.host_state(stats={"flavorids": ["f"]})) is None
    host = fakes.host_state(stats={"flavorids": ["f"]})
    host.consume("other", demand.of(fakes.spec()).need, flavorid="g")
    assert examine(name, host) == Reason("other_flavor_on_host", detail="g")
    host.release("other")
    assert examine(name, host) is None


@pytest.mark.parametrize(
    ("image", "host", "restrict", "code"),
    [
        ("iso", "h1", True, None),
        ("iso", "h2", True, "image_isolated"),
        ("iso", "h2", False, "image_isolated"),
        ("free", "h1", True, "host_isolated"),
        ("free", "h1", False, None),
        ("free", "h2", True, None),
    ],
)
def test_isolated_hosts(image, host, restrict, code):
    options = {
        "isolated_images": ["iso"],
        "isolated_hosts": ["h1"],
        "restrict_isolated_hosts_to_isolated_images": restrict,
    }
    (made,) = filters.load(["IsolatedHostsFilter"], options)
    request = fakes.spec()
    request.image.id = image
    reason = made.examine(fakes.host_state(host), demand.of(request, made.reads))
    assert (reason and reason.code) == code


def test_nothing_isolated_isolates_nothing():
    assert examine("IsolatedHostsFilter", fakes.host_state()) is None
