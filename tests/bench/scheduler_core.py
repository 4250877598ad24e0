# SPDX-License-Identifier: Apache-2.0
"""Decisions per second of the scheduler's core: one thread, no bus, no database.

``python tests/bench/scheduler_core.py [--hosts N ...] [--seconds S]`` prints a table and JSON. The
hosts are half full, no request is like another, all seven filters and three weighers are on and
every request gets its decision. ``plain`` requests name flavor sizes only; ``all filters`` also
name a zone, an image platform and hosts they failed on, so that no filter can be skipped;
``nobody fits`` asks for more than any host has left. What is selected is given back, so that the
hosts stay half full. Both figures are the best of ten rounds: by the clock on the wall, and by the
CPU time of the thread, which a busy machine disturbs less.
"""

import argparse
import gc
import json
import random
import time
from collections.abc import Iterator

from novalite.objects.compute_node import ComputeNode
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import Generation, ImageMeta, RequestSpec
from novalite.scheduler import filters, weights
from novalite.scheduler.host_state import HostState
from novalite.scheduler.pipeline import Pipeline

GOALS = {1000: (500, 300), 10000: (40, 25)}
STREAMS = ("plain", "all filters", "nobody fits")


def hosts(count: int, rng: random.Random) -> list[HostState]:
    """Return so many hosts of three sizes, each about half full."""
    made = []
    for number in range(count):
        size = rng.choice((1, 2, 4))
        picture = ComputeNode(
            host=f"compute{number:05d}",
            hypervisor_hostname=f"compute{number:05d}.example.org",
            vcpus=16 * size,
            memory_mb=65536 * size,
            local_gb=500 * size,
            vcpus_used=int(16 * 16 * size * rng.uniform(0.3, 0.7)),
            memory_mb_used=int(65536 * 1.5 * size * rng.uniform(0.3, 0.7)),
            local_gb_used=int(500 * size * rng.uniform(0.3, 0.7)),
            supported_instances=[["x86_64", "qemu", "hvm"], ["x86_64", "kvm", "hvm"]],
            generation=Generation(1, number),
        )
        host = HostState(picture)
        host.up = rng.random() > 0.02
        made.append(host)
    return made


def requests(stream: str, rng: random.Random) -> Iterator[RequestSpec]:
    """Yield requests without end, all different."""
    number = 0
    while True:
        number += 1
        memory_mb = rng.randrange(512, 65536) if stream != "nobody fits" else 400000 + number
        spec = RequestSpec(
            instance_uuid=f"00000000-0000-0000-0000-{number:012d}",
            project_id="p",
            user_id="u",
            flavor=Flavor(
                "f", "f", rng.randrange(1, 16), memory_mb, rng.randrange(1, 400), number % 7
            ),
        )
        if stream == "all filters":
            spec.availability_zone = "nova"
            spec.image = ImageMeta(properties={"hw_architecture": "x86_64"})
            spec.ignore_hosts = [f"compute{rng.randrange(1000):05d}"]
        yield spec


def measure(count: int, stream: str, seconds: float) -> tuple[float, float]:
    """Return decisions per second by the wall and by CPU time, each the best of ten rounds."""
    rng = random.Random(7)
    fleet = hosts(count, rng)
    pipeline = Pipeline(
        filters.load(filters.DEFAULT),
        weights.load(dict.fromkeys(weights.WEIGHERS, 1.0)),
        rng=rng,
    )
    stream_of = requests(stream, rng)
    wall = cpu = 0.0
    for _ in range(10):
        done, start, used = 0, time.perf_counter(), time.thread_time()
        while time.perf_counter() - start < seconds / 10:
            spec = next(stream_of)
            outcome = pipeline.schedule(fleet, [spec], 0.01)
            for host in outcome.hosts:
                host.release(spec.instance_uuid)
            done += 1
        wall = max(wall, done / (time.perf_counter() - start))
        cpu = max(cpu, done / (time.thread_time() - used))
    return wall, cpu


def main() -> None:
    """Measure, print the table and the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--seconds", type=float, default=6.0, help="for each figure")
    args = parser.parse_args()
    # As novalite-scheduler does at its start.
    gc.set_threshold(200_000, 20, 50)
    results = []
    print(f"{'hosts':>6}  {'requests':<12} {'per s':>7} {'per CPU s':>10}  {'aim':>5} {'must':>5}")
    for count in args.hosts:
        goal, must = GOALS.get(count, ("-", "-"))
        for stream in STREAMS:
            wall, cpu = measure(count, stream, args.seconds)
            figures = {"decisions_per_s": round(wall, 1), "decisions_per_cpu_s": round(cpu, 1)}
            results.append({"hosts": count, "requests": stream, **figures})
            print(f"{count:>6}  {stream:<12} {wall:>7.1f} {cpu:>10.1f}  {goal:>5} {must:>5}")
    print(json.dumps({"benchmark": "scheduler_core", "results": results}))


if __name__ == "__main__":
    main()
