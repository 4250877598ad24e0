# SPDX-License-Identifier: Apache-2.0
"""Decisions per second of the core of Nova's FilterScheduler; needs the nova package, nothing else.

``python nova_core.py HOSTS STREAM SECONDS`` is run by :mod:`tests.bench.scheduler_core` in another
environment. The hosts and requests are of the same kind; Nova's own default filters and weighers
run, and its sorting. What placement would do before (memory, disk and vcpus) is not in it, so there
is no stream ``nobody fits``. The figure is the best of ten rounds by CPU time of the thread.
"""

import datetime
import logging
import random
import sys
import time
import types
from typing import Any

from nova import conf, objects
from nova.scheduler import host_manager, manager
from oslo_utils import timeutils


class HostManager(host_manager.HostManager):
    """Nova's host manager with its hosts given, without a database."""

    def refresh_cells_caches(self) -> None:
        """There are no cells."""

    def _init_aggregates(self) -> None:
        """There are no aggregates."""


def hosts(count: int, rng: random.Random) -> list[host_manager.HostState]:
    """Return so many hosts of three sizes, each about half full."""
    made = []
    for number in range(count):
        size = rng.choice((1, 2, 4))
        name = f"compute{number:05d}"
        host = host_manager.HostState(name, f"{name}.example.org", None)
        host.vcpus_total = 16 * size
        host.vcpus_used = int(16 * 16 * size * rng.uniform(0.3, 0.7))
        host.total_usable_ram_mb = 65536 * size
        host.free_ram_mb = host.total_usable_ram_mb - int(98304 * size * rng.uniform(0.3, 0.7))
        host.total_usable_disk_gb = 500 * size
        host.free_disk_mb = int(500 * 1024 * size * rng.uniform(0.3, 0.7))
        host.num_instances = rng.randrange(40)
        host.ram_allocation_ratio, host.cpu_allocation_ratio = 1.5, 16.0
        host.disk_allocation_ratio = 1.0
        host.supported_instances = [["x86_64", "qemu", "hvm"], ["x86_64", "kvm", "hvm"]]
        host.hypervisor_type, host.hypervisor_version = "QEMU", 6002001
        host.updated = timeutils.utcnow(with_timezone=True)
        seen = timeutils.utcnow()
        if rng.random() < 0.02:
            seen -= datetime.timedelta(days=2)
        host.service = {"disabled": False, "host": name, "topic": "compute", "last_seen_up": seen}
        made.append(host)
    return made


def requests(stream: str, rng: random.Random) -> Any:
    """Yield requests without end."""
    flavors = [flavor(number, rng) for number in range(20)]
    number = 0
    while True:
        number += 1
        wanted = flavor(number, rng)
        if stream == "same":
            wanted = flavors[0]
        elif stream == "20 flavors":
            wanted = rng.choice(flavors)
        image = objects.ImageMeta.from_dict({"properties": {"hw_architecture": "x86_64"}})
        yield objects.RequestSpec(
            context=None,
            instance_uuid=f"00000000-0000-0000-0000-{number:012d}",
            project_id="p",
            user_id="u",
            num_instances=1,
            flavor=wanted,
            image=image,
            instance_group=None,
            ignore_hosts=None,
            force_hosts=None,
            force_nodes=None,
            requested_destination=None,
            scheduler_hints={},
            retry=None,
            numa_topology=None,
            pci_requests=None,
            limits=objects.SchedulerLimits(),
            is_bfv=False,
        )


def flavor(number: int, rng: random.Random) -> Any:
    """Return a flavor of random size."""
    return objects.Flavor(
        flavorid=f"flavor{number}",
        name=f"flavor{number}",
        memory_mb=rng.randrange(512, 65536),
        vcpus=rng.randrange(1, 16),
        root_gb=rng.randrange(1, 400),
        ephemeral_gb=0,
        swap=0,
        extra_specs={},
    )


def main() -> None:
    """Measure one stream and print the figure."""
    count, stream, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    logging.disable(logging.WARNING)
    conf.CONF([], project="nova", default_config_files=[])
    conf.CONF.set_override("track_instance_changes", False, "filter_scheduler")
    # However long it takes, hosts that are up stay up.
    conf.CONF.set_override("service_down_time", 86400)
    objects.register_all()
    rng = random.Random(7)
    fleet, wanted = hosts(count, rng), requests(stream, rng)
    scheduler = types.SimpleNamespace(host_manager=HostManager())
    best = 0.0
    for _ in range(10):
        done, start, used = 0, time.perf_counter(), time.thread_time()
        while time.perf_counter() - start < seconds / 10 or not done:
            spec = next(wanted)
            manager.SchedulerManager._get_sorted_hosts(scheduler, spec, list(fleet), 0)
            done += 1
        best = max(best, done / (time.thread_time() - used))
    print(best)


if __name__ == "__main__":
    main()
