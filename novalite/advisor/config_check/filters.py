# SPDX-License-Identifier: Apache-2.0
"""Rules about the scheduler's filters and weighers and about the CPU of guests.

Called by ``rules.py``. The names of filters are those that the scheduler has at this moment;
nothing of an operator's own is imported here.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping

from novalite.advisor.config_check.finding import ERROR, WARNING, Finding, at, set_at
from novalite.advisor.config_check.settings import Settings
from novalite.scheduler import filters
from novalite.scheduler import weights as weighers
from novalite.scheduler.loading import bare

_VIRT_TYPES = ("kvm", "qemu")
# What looks at each resource, and the ratio that is without effect when nothing does.
LOOK_AT = {
    "memory": (("RamFilter", "AggregateRamFilter", "ExactRamFilter"), "ram_allocation_ratio"),
    "disk": (("DiskFilter", "AggregateDiskFilter", "ExactDiskFilter"), "disk_allocation_ratio"),
    "vcpus": (("CoreFilter", "AggregateCoreFilter", "ExactCoreFilter"), "cpu_allocation_ratio"),
}
# Weighers that say nothing of most requests.
_SPECIAL = ("soft_affinity", "soft_anti_affinity", "build_failure")


def cpu(settings: Settings) -> Iterator[Finding]:
    """Yield contradictions in the CPU of guests, with which a compute does not start."""
    virt_type, mode = settings.value("libvirt", "virt_type"), settings.value("libvirt", "cpu_mode")
    models = settings.value("libvirt", "cpu_models")
    flags = settings.value("libvirt", "cpu_model_extra_flags")
    if virt_type is None or (mode is None and settings.is_set("libvirt", "cpu_mode")):
        return
    has_cpu = virt_type in _VIRT_TYPES
    if not has_cpu and mode not in (None, "none"):
        text = f"cpu_mode = {mode} cannot be had with virt_type = {virt_type}"
        yield from at(settings.entry("libvirt", "cpu_mode"), ERROR, "dangerous", text)
        return
    effective = mode or ("host-model" if has_cpu else "none")
    if models and effective != "custom":
        text = f"needs cpu_mode = custom, but cpu_mode is {effective}"
        yield from at(settings.entry("libvirt", "cpu_models"), ERROR, "dangerous", text)
    if effective == "custom" and not models:
        text = "custom needs at least one name in cpu_models"
        yield from at(settings.entry("libvirt", "cpu_mode"), ERROR, "dangerous", text)
    if flags and effective != "custom":
        text = f"without effect: flags go with cpu_mode = custom, but cpu_mode is {effective}"
        where = settings.entry("libvirt", "cpu_model_extra_flags")
        yield from at(where, WARNING, "dangerous", text)


def enabled(settings: Settings) -> Iterator[Finding]:
    """Yield filters that do not exist, and a list that lets everything through."""
    where = settings.entry("filter_scheduler", "enabled_filters")
    names = settings.value("filter_scheduler", "enabled_filters")
    if where is None or names is None:
        return
    if not names:
        text = "empty: every host passes, those that are down too"
        yield from at(where, WARNING, "dangerous", text)
        return
    available = settings.value("filter_scheduler", "available_filters") or []
    own = any(path not in filters.ALL for path in available)
    for name in map(bare, names):
        # A class of the operator's own is not looked for: it may be on another machine.
        if name not in filters.FILTERS and not own and ":" not in name and "." not in name:
            text = _no_such("filter", name, filters.FILTERS, filters.LEFT_OUT)
            yield from at(where, ERROR, "wrong-value", text)
    if "ComputeFilter" not in map(bare, names):
        text = "without ComputeFilter servers go to hosts that are down or disabled"
        yield from at(where, WARNING, "dangerous", text)


def _no_such(kind: str, name: str, ours: Iterable[str], left_out: Mapping[str, str]) -> str:
    if name in left_out:
        return f"novalite has no {name} ({left_out[name]}); take it out, or no scheduler starts"
    near = difflib.get_close_matches(name, list(ours), n=1)
    return f"there is no {kind} {name}" + (f"; did you mean {near[0]}?" if near else "")


def weight_classes(settings: Settings) -> Iterator[Finding]:
    """Yield weighers that do not exist."""
    where = settings.entry("filter_scheduler", "weight_classes")
    ours = {made.__name__ for made in weighers.WEIGHERS.values()}
    for name in map(bare, settings.value("filter_scheduler", "weight_classes") or []):
        if name not in ours and name != "all_weighers" and ":" not in name and "." not in name:
            text = _no_such("weigher", name, ours, weighers.LEFT_OUT)
            yield from at(where, ERROR, "wrong-value", text)


def limits(settings: Settings) -> Iterator[Finding]:
    """Yield resources that are not limited although the file reads as if they were."""
    names = list(map(bare, settings.value("filter_scheduler", "enabled_filters") or []))
    if not names:
        return
    where = settings.entry("filter_scheduler", "enabled_filters")
    missing = {what: ratio for what, (able, ratio) in LOOK_AT.items() if not set(able) & set(names)}
    if len(missing) == len(LOOK_AT) and where is not None:
        # As a later Nova has it, where placement keeps the books.
        wanted = ["RamFilter", "DiskFilter", "CoreFilter"]
        wanted += [each for each in ("AvailabilityZoneFilter",) if each not in names]
        text = (
            "no filter looks at memory, disk or vcpus, so hosts are filled without a limit; there "
            f"is no placement service here: add {', '.join(wanted)}"
        )
        yield from at(where, WARNING, "dangerous", text)
        return
    for what, ratio in missing.items():
        able = LOOK_AT[what][0][0]
        text = f"without effect: {able} is not in enabled_filters, so {what} are not limited"
        text = text.replace("memory are", "memory is").replace("disk are", "disk is")
        yield from at(settings.entry("DEFAULT", ratio), WARNING, "dangerous", text)


def weights(settings: Settings) -> Iterator[Finding]:
    """Yield multipliers that leave every host with the same weight."""
    options = general_multipliers()
    if any(settings.value("filter_scheduler", name) != 0 for name in options):
        return
    text = "all multipliers are 0: every host weighs the same, and the first one is always taken"
    yield from at(set_at(settings, "filter_scheduler", *options), WARNING, "dangerous", text)


def general_multipliers() -> list[str]:
    """Return the options of the weighers that tell hosts apart for every request."""
    special = [f"{name}_weight_multiplier" for name in _SPECIAL]
    return [name for name in weighers.WEIGHERS if name not in special]
