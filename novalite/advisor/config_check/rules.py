# SPDX-License-Identifier: Apache-2.0
"""Values that are allowed one by one and are dangerous all the same: times, amounts, URLs.

Called by the configuration check. A rule speaks only of what a file sets: defaults are never
reported. Those of the scheduler and the CPU are in ``filters.py``.
"""

import math
from collections.abc import Callable, Iterator

from novalite.advisor.config_check import filters
from novalite.advisor.config_check.finding import ERROR, WARNING, Finding, Totals, at, set_at
from novalite.advisor.config_check.settings import Settings
from novalite.conf import urls
from novalite.objects import capacity
from novalite.objects.capacity import Resource

# Fewer reports than this in service_down_time: a late one fences a healthy host.
_REPORTS = 4
# Above these ratios guests get killed, or disks run full, before anybody notices.
_TOO_MUCH = {Resource.MEMORY: 3.0, Resource.DISK: 2.0, Resource.VCPU: 64.0}
# Below so many MB somebody has meant GB.
_GIGABYTES = 64
_DATABASES = ("sqlite", "postgresql", "mysql", "mariadb")


def run(settings: Settings, totals: Totals) -> Iterator[Finding]:
    """Yield what all rules find."""
    yield from _times(settings)
    yield from _leases(settings)
    yield from _ratios(settings)
    yield from _reserved(settings, totals)
    yield from _quotas(settings)
    for rule in RULES:
        yield from rule(settings)


def _times(settings: Settings) -> Iterator[Finding]:
    report = settings.value("DEFAULT", "report_interval")
    down = settings.value("DEFAULT", "service_down_time")
    where = set_at(settings, "DEFAULT", "report_interval", "service_down_time")
    if report is None or down is None:
        return
    pair = f"report_interval = {report} and service_down_time = {down}"
    if report >= down:
        text = f"{pair}: every service would count as down between two reports; none starts"
        yield from at(where, ERROR, "dangerous", text)
    elif report * _REPORTS > down:
        text = (
            f"{pair}: less than {_REPORTS} reports fit; one late report can make a healthy host "
            f"look down; set service_down_time to {report * _REPORTS} or more"
        )
        yield from at(where, WARNING, "dangerous", text)


def _leases(settings: Settings) -> Iterator[Finding]:
    renew = settings.value("conductor", "task_renew_interval")
    lease = settings.value("conductor", "task_lease")
    if renew is not None and lease is not None and renew >= lease:
        where = set_at(settings, "conductor", "task_renew_interval", "task_lease")
        text = (
            f"task_renew_interval = {renew} and task_lease = {lease}: a conductor would lose its "
            "work before it renews the lease; none starts"
        )
        yield from at(where, ERROR, "dangerous", text)


def _ratios(settings: Settings) -> Iterator[Finding]:
    for resource, name in capacity.RATIO_OPTIONS.items():
        entry, value = settings.entry("DEFAULT", name), settings.value("DEFAULT", name)
        if value == 0.0:
            default = capacity.DEFAULT_RATIOS[resource]
            text = (
                f"0.0 means not set: {default} is used; write {default}, or 1.0 for no overcommit"
            )
            yield from at(entry, WARNING, "dangerous", text)
        elif value is not None and value > _TOO_MUCH[resource]:
            text = (
                f"{value:g} times as much {resource} is promised as there is; above "
                f"{_TOO_MUCH[resource]:g} guests suffer before a full host is noticed"
            )
            yield from at(entry, WARNING, "dangerous", text)


def _reserved(settings: Settings, totals: Totals) -> Iterator[Finding]:
    memory = settings.value("DEFAULT", "reserved_host_memory_mb")
    disk = settings.value("DEFAULT", "reserved_host_disk_mb")
    cpus = settings.value("DEFAULT", "reserved_host_cpus")
    has = _host(settings, totals)
    for name, value in (("reserved_host_memory_mb", memory), ("reserved_host_disk_mb", disk)):
        if value is not None and 0 < value < _GIGABYTES:
            text = f"{value} is in MB; if GB are meant, write {value * 1024}"
            yield from at(settings.entry("DEFAULT", name), WARNING, "dangerous", text)
    disk_gb = None if disk is None else capacity.whole_gb(disk)
    for resource, held, total, unit in (
        (Resource.MEMORY, memory, has.memory_mb, "MB"),
        (Resource.DISK, disk_gb, has.local_gb, "GB"),
        (Resource.VCPU, cpus, has.vcpus, "threads"),
    ):
        if held is None or total is None or held < total:
            continue
        promised = settings.value("DEFAULT", capacity.RATIO_OPTIONS[resource])
        limit = total * capacity.effective_ratio(resource, promised or 0.0)
        text = f"{held} {unit} are kept back and the host has {total}: "
        if held >= limit:
            text += "no server fits"
        else:
            text += f"servers live on overcommit alone ({limit - held:g} {unit} of it)"
        where = settings.entry("DEFAULT", capacity.RESERVED_OPTIONS[resource])
        yield from at(where, WARNING, "dangerous", text)


def _host(settings: Settings, totals: Totals) -> Totals:
    """Return the host's totals: as given, else those that the fake hypervisor is told."""
    found: dict[str, int | None] = {}
    for name in ("memory_mb", "vcpus", "local_gb"):
        found[name] = getattr(totals, name)
        if found[name] is None and settings.is_set("fake_libvirt", name):
            found[name] = settings.value("fake_libvirt", name)
    return Totals(**found)


def _quotas(settings: Settings) -> Iterator[Finding]:
    for name in ("instances", "cores", "ram"):
        if settings.value("quota", name) == 0:
            text = "0: no project without limits of its own can make a server; -1 is unlimited"
            yield from at(settings.entry("quota", name), WARNING, "dangerous", text)
    ram = settings.value("quota", "ram")
    if ram is not None and 0 < ram < _GIGABYTES:
        text = f"{ram} is in MB; if GB are meant, write {ram * 1024}"
        yield from at(settings.entry("quota", "ram"), WARNING, "dangerous", text)


def _bus(settings: Settings) -> Iterator[Finding]:
    url = settings.value("DEFAULT", "transport_url")
    where = settings.entry("DEFAULT", "transport_url")
    if url is None or where is None:
        return
    scheme = url.partition("://")[0]
    if not urls.is_clear(url):
        text = "cannot be read in one way only; percent-encode special characters of the password"
        yield from at(where, ERROR, "wrong-value", text)
    elif scheme not in ("rabbit", "kombu"):
        text = f"{scheme}:// is not supported; allowed: rabbit://"
        yield from at(where, ERROR, "wrong-value", text)


def _database(settings: Settings) -> Iterator[Finding]:
    url = settings.value("database", "connection")
    where = settings.entry("database", "connection")
    if not url or where is None:
        return
    scheme, separator, _ = url.partition("://")
    if separator and scheme.partition("+")[0] not in _DATABASES:
        text = f"{scheme}:// is not supported; allowed: {', '.join(_DATABASES)}"
        yield from at(where, ERROR, "wrong-value", text)
    elif not url.startswith("sqlite") and not urls.is_clear(url):
        text = "cannot be read in one way only; percent-encode special characters of the password"
        yield from at(where, ERROR, "wrong-value", text)


def _threads(settings: Settings) -> Iterator[Finding]:
    pool = settings.value("oslo_messaging_rabbit", "rpc_conn_pool_size")
    threads = settings.value("DEFAULT", "executor_thread_pool_size")
    if pool is None or threads is None or pool >= threads:
        return
    where = settings.entry("DEFAULT", "executor_thread_pool_size") or settings.entry(
        "oslo_messaging_rabbit", "rpc_conn_pool_size"
    )
    text = (
        f"executor_thread_pool_size = {threads} threads would share rpc_conn_pool_size = {pool} "
        "connections; no service starts"
    )
    yield from at(where, ERROR, "dangerous", text)


def _policy(settings: Settings) -> Iterator[Finding]:
    where = settings.entry("oslo_policy", "policy_file")
    if where is not None and where.value.endswith(".json"):
        text = "the file must be YAML; convert it with oslopolicy-convert-json-to-yaml"
        yield from at(where, ERROR, "wrong-value", text)


def _audits(settings: Settings) -> Iterator[Finding]:
    for section, name, text in (
        ("DEFAULT", "update_resources_interval", "a host is measured at its start only"),
        ("DEFAULT", "audit_interval", "nothing compares a host's claims with its guests"),
        ("conductor", "audit_interval", "nothing compares servers with allocations"),
    ):
        value = settings.value(section, name)
        # 0 is "every minute" to computes and "never" to conductors.
        if value is not None and (value < 0 or (value == 0 and section == "conductor")):
            yield from at(settings.entry(section, name), WARNING, "dangerous", text)
    attempts = settings.value("scheduler", "max_attempts")
    if attempts == 1:
        text = "a build that fails on its first host is tried nowhere else"
        where = settings.entry("scheduler", "max_attempts")
        yield from at(where, WARNING, "dangerous", text)


def _testing(settings: Settings) -> Iterator[Finding]:
    for own in settings.known.options():
        if own.section != "testing" and own.opt.dest not in ("fail_spawn", "fail_destroy"):
            continue
        value = settings.value(own.section, own.opt.dest)
        if value and not (isinstance(value, float) and math.isclose(value, 0.0)):
            text = "plays faults on purpose; never on a real cloud"
            where = settings.entry(own.section, own.opt.dest)
            yield from at(where, WARNING, "dangerous", text)


RULES: tuple[Callable[[Settings], Iterator[Finding]], ...] = (
    _bus,
    _database,
    _threads,
    _policy,
    _audits,
    _testing,
    filters.cpu,
    filters.enabled,
    filters.weight_classes,
    filters.limits,
    filters.weights,
)
