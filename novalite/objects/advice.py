# SPDX-License-Identifier: Apache-2.0
"""What a decision without a host says in one sentence, and what would change it.

The sentence is of counts only and may be shown to everybody. Advice for administrators names
hosts, options and numbers, computed by the same sums that refused the server; advice for a tenant
is what a tenant can do. Pure.
"""

from novalite.objects import change
from novalite.objects.decision import Decision, Miss, filter_name, where

# What is said of one host and of several hosts that a filter removed with this code.
COUNTED = {
    "host_disabled": ("is disabled", "are disabled"),
    "host_down": ("is down", "are down"),
    "already_tried": ("has failed with it before", "have failed with it before"),
    "wrong_zone": ("is in another availability zone", "are in another availability zone"),
    "not_enough_memory": ("has too little memory left", "have too little memory left"),
    "not_enough_disk": ("has too little disk left", "have too little disk left"),
    "not_enough_vcpu": ("has too few vcpus left", "have too few vcpus left"),
    "larger_than_host_memory": ("has less memory in all", "have less memory in all"),
    "larger_than_host_disk": ("has less disk in all", "have less disk in all"),
    "larger_than_host_vcpu": ("has fewer threads in all", "have fewer threads in all"),
    "not_exact_memory": ("has other free memory", "have other free memory"),
    "not_exact_disk": ("has other free disk", "have other free disk"),
    "not_exact_vcpu": ("has other free vcpus", "have other free vcpus"),
    "too_many_instances": ("has too many servers", "have too many servers"),
    "too_many_io_ops": ("has too much going on", "have too much going on"),
    "image_not_supported": ("cannot run its image", "cannot run its image"),
    "capability_missing": ("lacks a capability", "lack a capability"),
    "aggregate_lacks_extra_spec": (
        "is not in a fitting aggregate",
        "are not in fitting aggregates",
    ),
    "aggregate_wants_flavor": ("is kept for other flavors", "are kept for other flavors"),
    "aggregate_wants_image": ("is kept for other images", "are kept for other images"),
    "aggregate_wants_project": ("is kept for other projects", "are kept for other projects"),
    "other_flavor_on_host": ("runs another flavor", "run another flavor"),
    "host_isolated": ("is kept for isolated images", "are kept for isolated images"),
    "image_isolated": ("is not for its isolated image", "are not for its isolated image"),
    "not_different_host": ("has a server it must avoid", "have a server it must avoid"),
    "not_same_host": ("has no server it must be with", "have no server it must be with"),
    "other_network": ("is in another network", "are in another network"),
    "group_anti_affinity": ("has members of its group", "have members of its group"),
    "group_affinity": ("is not where its group is", "are not where its group is"),
    "not_forced_host": ("is not the one that was named", "are not the one that was named"),
    "not_requested_host": ("is not the one that was named", "are not the one that was named"),
}
_REMOVED = "removed by {filter}"

_NEAREST = 3
_OTHER_HOST = ("not_forced_host", "not_requested_host")

# What a tenant can do where nothing better is known.
ASK_OPERATORS = "ask the operators of the cloud"
_TENANT = {
    "host_disabled": "ask the operators of the cloud when hosts will be enabled again",
    "host_down": "try again later; the operators of the cloud have to bring hosts back",
    "already_tried": "try again later, or ask the operators of the cloud",
    "wrong_zone": "ask for another availability zone, or for none",
    "not_enough": "ask for a smaller flavor, or try again when room is free",
    "larger_than_host": "ask for a smaller flavor: no ratio lets a server have more than a host",
    "not_exact": "ask for a flavor that fills a host, or try again later",
    "too_many_instances": "try again when servers are gone, or ask the operators of the cloud",
    "too_many_io_ops": "try again later, when less is being built",
    "image_not_supported": "use an image for the hardware of this cloud",
    "capability_missing": "ask for another flavor: its extra specs ask for what hosts lack",
    "aggregate_lacks_extra_spec": "ask for another flavor: its extra specs ask for what hosts lack",
    "aggregate_wants_flavor": "ask for another flavor",
    "aggregate_wants_image": "use another image",
    "aggregate_wants_project": "ask the operators of the cloud for hosts that your project may use",
    "other_flavor_on_host": "ask for another flavor, or try again when a host is empty",
    "host_isolated": "use another image",
    "image_isolated": "use another image, or try again when an isolated host is free",
    "not_different_host": "name fewer servers in the hint different_host",
    "not_same_host": "leave out the hint same_host, or name servers that run",
    "other_network": "leave out the hint build_near_host_ip, or name a larger cidr",
    "group_anti_affinity": "make the server outside of its group, or use soft-anti-affinity",
    "group_affinity": "make the server outside of its group, or use soft-affinity",
    "not_forced_host": "do not name the host",
    "not_requested_host": "do not name the host",
}


def counted(decision: Decision) -> str:
    """Return why the hosts were not taken, by counts: "of 3 hosts 2 are disabled and 1 ..."."""
    if not decision.hosts:
        return "there is no compute host at all"
    causes: dict[str, int] = {}
    for count in decision.filters:
        left = count.start - count.end
        for code, hosts in count.codes.items():
            if code in COUNTED:
                causes[code] = causes.get(code, 0) + hosts
                left -= hosts
        if left > 0:
            words = _REMOVED.format(filter=filter_name(count.filter))
            causes[words] = causes.get(words, 0) + left
    if not causes:
        return f"none of {times(decision.hosts, 'host', 'hosts')} was taken"
    if len(causes) == 1:
        [(code, hosts)] = causes.items()
        words = _phrase(code, hosts)
        if decision.hosts == 1:
            return f"the only host {words}"
        if hosts == decision.hosts:
            return f"all {decision.hosts} hosts {words}"
    parts = [f"{hosts} {_phrase(code, hosts)}" for code, hosts in causes.items()]
    return f"of {times(decision.hosts, 'host', 'hosts')} {listed(parts)}"


def _phrase(code: str, hosts: int) -> str:
    if code in COUNTED:
        return COUNTED[code][hosts != 1]
    return f"{'was' if hosts == 1 else 'were'} {code}"


def times(count: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"1 {one}" if count == 1 else f"{count} {many}"


def listed(parts: list[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def for_tenant(decision: Decision) -> list[str]:
    """Return what somebody may do who only asked for a server."""
    found = []
    for count in decision.filters:
        for code in count.codes:
            key = code if code in _TENANT else code.rpartition("_")[0]
            found.append(_TENANT.get(key, ASK_OPERATORS))
    return list(dict.fromkeys(found)) or [ASK_OPERATORS]


def for_admin(decision: Decision) -> list[str]:
    """Return what would let a host take such a server: the nearest hosts first."""
    if not decision.hosts:
        return ["start novalite-compute on a host; `openstack compute service list` shows it"]
    if not decision.misses:
        return [f"make one of the hosts fit: {decision.summary()}"]
    misses = [miss for miss in decision.misses if _code(miss) not in _OTHER_HOST]
    if not misses:
        return ["name a host that exists: `openstack compute service list` shows them"]
    found: dict[str, list[str]] = {}
    for miss in misses[:_NEAREST]:
        place = where(miss.host, miss.node)
        changes = [each.text for each in change.all_of(miss.reasons, miss.host)]
        found.setdefault(listed(changes), []).append(place)
    return [f"on {listed(hosts)}: {text}" for text, hosts in found.items()]


def _code(miss: Miss) -> str:
    return miss.reasons[0][1].code if miss.reasons else ""
