# SPDX-License-Identifier: Apache-2.0
"""What an option does, in numbers: with the value in force and with the default.

Called by ``novalite-status config explain``. The sums of capacity are those of
:mod:`novalite.objects.capacity`, which filters and claims use, so that none can differ.
"""

from collections.abc import Callable
from typing import Any

from novalite.advisor.config_check.filters import LOOK_AT, general_multipliers
from novalite.advisor.config_check.finding import Totals
from novalite.advisor.config_check.settings import Settings
from novalite.objects import capacity
from novalite.objects.capacity import Need, Resource, Room
from novalite.objects.compute_node import ComputeNode
from novalite.scheduler import weights
from novalite.scheduler.loading import bare

# The host and the server of an example, where nobody said what the host has.
EXAMPLE = Totals(memory_mb=65536, vcpus=16, local_gb=500)
SERVER = Need(memory_mb=4096, disk_gb=40, vcpus=2)
# Seconds until a conductor has certainly seen that a host is silent, and left it.
_GRACE = 10
# What an interval of 0 means.
_AUDIT = 60

# The resource that an option is about.
_RESOURCE_OF = {
    name: resource
    for options in (capacity.RATIO_OPTIONS, capacity.RESERVED_OPTIONS)
    for resource, name in options.items()
}
_WORDS = {Resource.MEMORY: "memory", Resource.DISK: "disk", Resource.VCPU: "vcpus"}
Effect = Callable[[Settings, str, Totals], list[str]]


def effects(settings: Settings, section: str, name: str, totals: Totals) -> list[str]:
    """Return what the option does, one fact a line; empty if there is no number to tell.

    :param totals: what the host has, as far as it is known
    """
    if settings.value(section, name) is None and settings.is_set(section, name):
        return []
    effect = _EFFECTS.get((section, name))
    return [] if effect is None else effect(settings, name, totals)


def _capacity(settings: Settings, name: str, totals: Totals) -> list[str]:
    resource = _RESOURCE_OF[name]
    said = totals.memory_mb, totals.local_gb, totals.vcpus
    known = said[list(Resource).index(resource)] is not None
    now = _room(settings, resource, totals, {})
    default = settings.own("DEFAULT", name).default
    before = _room(settings, resource, totals, {name: default})
    unit = capacity.UNITS[resource]
    wanted = SERVER[list(Resource).index(resource)]
    host = "the host" if known else "for example a host"
    of = f" of {resource}" if resource is not Resource.VCPU else ""
    lines = [
        f"{host} with {now.total:g} {unit}{of}: limit {now.limit:g} {unit}, {now.used:g} {unit} "
        f"kept back, {now.usable:g} {unit} for servers; one server at most "
        f"{max(now.largest, 0):g} {unit}",
        f"it takes {now.how_many(wanted)} servers of {wanted} {unit}",
    ]
    if before != now:
        lines[1] += f" by its {resource}; with the default ({default}) {before.how_many(wanted)}"
    names = map(bare, settings.value("filter_scheduler", "enabled_filters") or [])
    able, _ratio_option = LOOK_AT[_WORDS[resource]]
    if not set(able) & set(names):
        lines.append(f"but without {able[0]} in enabled_filters {resource} has no limit at all")
    return lines


def _room(settings: Settings, resource: Resource, totals: Totals, instead: dict[str, Any]) -> Room:
    """Return the room of an empty host; *instead* holds values to be taken in place of the
    files'."""

    def value(name: str) -> Any:
        return instead[name] if name in instead else settings.value("DEFAULT", name) or 0

    node = ComputeNode(
        "host",
        "host",
        memory_mb=totals.memory_mb or EXAMPLE.memory_mb or 0,
        vcpus=totals.vcpus or EXAMPLE.vcpus or 0,
        local_gb=totals.local_gb or EXAMPLE.local_gb or 0,
        memory_mb_used=value("reserved_host_memory_mb"),
        local_gb_used=capacity.whole_gb(value("reserved_host_disk_mb")),
        vcpus_used=value("reserved_host_cpus"),
        ram_allocation_ratio=_ratio(Resource.MEMORY, value("ram_allocation_ratio")),
        cpu_allocation_ratio=_ratio(Resource.VCPU, value("cpu_allocation_ratio")),
        disk_allocation_ratio=_ratio(Resource.DISK, value("disk_allocation_ratio")),
    )
    return {room.resource: room for room in capacity.own_rooms(node)}[resource]


def _ratio(resource: Resource, configured: float) -> float:
    return capacity.effective_ratio(resource, float(configured))


def _times(settings: Settings, _name: str, _totals: Totals) -> list[str]:
    report = settings.value("DEFAULT", "report_interval")
    down = settings.value("DEFAULT", "service_down_time")
    if report is None or down is None:
        return []
    return [
        f"a service reports every {report} s and counts as down after {down} s: "
        f"{down // report} reports fit in",
        f"a compute that is not heard fences itself after {down - report} s",
        f"builds leave a silent host after {down} + {_GRACE} = {down + _GRACE} s",
    ]


def _attempts(settings: Settings, name: str, _totals: Totals) -> list[str]:
    value = settings.value("scheduler", name)
    return [
        f"a build may fail on {value} hosts before its server is in ERROR",
        f"each decision names a host and up to {value - 1} alternates",
    ]


def _subset(settings: Settings, name: str, _totals: Totals) -> list[str]:
    value = settings.value("filter_scheduler", name)
    if value == 1:
        return ["the best host is always taken"]
    return [
        f"one of the {value} best hosts is drawn: the best one gets {100 / value:.1f} % of builds"
    ]


def _multiplier(settings: Settings, name: str, _totals: Totals) -> list[str]:
    names = general_multipliers()
    values = {each: settings.value("filter_scheduler", each) or 0.0 for each in names}
    value = settings.value("filter_scheduler", name)
    if not value:
        return ["0: this weigher is off"]
    best = "most" if value > 0 else "least"
    lines = [f"the host with the {best} gets {abs(value):g} more than the one at the other end"]
    if name in values:
        everything = sum(abs(each) for each in values.values())
        share = 100 * abs(value) / everything
        lines.append(f"that is {share:.1f} % of what {', '.join(_on(values))} decide together")
    return lines


def _on(values: dict[str, float]) -> list[str]:
    return [name.removesuffix("_weight_multiplier") for name, value in values.items() if value]


def _filters(settings: Settings, name: str, _totals: Totals) -> list[str]:
    names = list(map(bare, settings.value("filter_scheduler", name) or []))
    default = settings.own("filter_scheduler", name).default
    lines = [f"{len(names)} filters in this order: {', '.join(names) or 'none'}"]
    added = [each for each in names if each not in default]
    missing = [each for each in default if each not in names]
    if added:
        lines.append(f"besides the default: {', '.join(added)}")
    if missing:
        lines.append(f"of the default are missing: {', '.join(missing)}")
    for what, (able, ratio) in LOOK_AT.items():
        if not set(able) & set(names):
            lines.append(f"{what}: without a limit, and {ratio} has no effect")
    return lines


def _quota(settings: Settings, name: str, _totals: Totals) -> list[str]:
    value = settings.value("quota", name)
    if value < 0:
        return ["unlimited"]
    each = {"instances": 1, "cores": SERVER.vcpus, "ram": SERVER.memory_mb}[name]
    size = f"{SERVER.vcpus} vcpus and {SERVER.memory_mb} MB"
    return [f"a project may have {value // each} servers of {size} by this limit alone"]


def _lease(settings: Settings, _name: str, _totals: Totals) -> list[str]:
    renew = settings.value("conductor", "task_renew_interval")
    lease = settings.value("conductor", "task_lease")
    look = settings.value("conductor", "recovery_interval")
    if renew is None or lease is None or look is None:
        return []
    return [
        f"a conductor renews its work every {renew:g} s; it holds for {lease:g} s",
        f"what a dead conductor had in hand goes on after {lease:g} + {look:g} s at most",
    ]


def _audit(settings: Settings, name: str, _totals: Totals) -> list[str]:
    value = settings.value("DEFAULT", name)
    if value < 0:
        return ["never: a host is measured at its start only"]
    every = value or _AUDIT
    return [f"a host is measured every {every} s, {3600 // every} times an hour"]


def _builds(settings: Settings, name: str, _totals: Totals) -> list[str]:
    value = settings.value("DEFAULT", name)
    if value == 0:
        return ["no limit: as many builds at one time as come"]
    return [f"{value} builds at one time: {value * 6} a minute when a spawn takes 10 s"]


_EFFECTS: dict[tuple[str, str], Effect] = {
    **{("DEFAULT", name): _capacity for name in _RESOURCE_OF},
    **{("filter_scheduler", name): _multiplier for name in weights.WEIGHERS},
    **{("quota", name): _quota for name in ("instances", "cores", "ram")},
    ("DEFAULT", "report_interval"): _times,
    ("DEFAULT", "service_down_time"): _times,
    ("DEFAULT", "update_resources_interval"): _audit,
    ("DEFAULT", "max_concurrent_builds"): _builds,
    ("conductor", "recovery_interval"): _lease,
    ("conductor", "task_lease"): _lease,
    ("conductor", "task_renew_interval"): _lease,
    ("filter_scheduler", "enabled_filters"): _filters,
    ("filter_scheduler", "host_subset_size"): _subset,
    ("scheduler", "max_attempts"): _attempts,
}
