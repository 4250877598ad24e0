# SPDX-License-Identifier: Apache-2.0
"""Decisions per second of the scheduler's core: one thread, no bus, no database.

``python -m tests.bench.scheduler_core [--hosts N ...] [--seconds S] [--nova-python PATH]`` prints a
table and JSON. The hosts are half full and all that the options' defaults enable is on; every
request gets its decision. Requests of stream ``same`` are all equal, those of ``20 flavors`` have
one of 20 flavors, of ``all different`` no two are equal, and ``nobody fits`` are all different and
ask for more memory than any host has left. ``whole lists`` are all different and name a zone, hosts
they failed on, extra specs and a server group, so that no default filter can be skipped.

A selected server is given back after a hundred further decisions: so hosts change all the time, and
stay half full. Each figure is the best of ten rounds by CPU time of the thread, which a busy
machine disturbs least; what a stream keeps is there before the first one. ``plain`` is the plainest
possible loop with the same filters, weighers and decisions, and ``Nova`` the core of Nova's own
FilterScheduler, in the environment of the Python that is given.
"""

import argparse
import gc
import json
import random
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from oslo_config import cfg

from novalite import conf as conf_module
from novalite import log
from novalite.objects.compute_node import ComputeNode
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import Generation, ImageMeta, InstanceGroup, RequestSpec
from novalite.scheduler import manager, weights
from novalite.scheduler.fleet import Fleet
from novalite.scheduler.host_state import HostState
from novalite.scheduler.pipeline import Pipeline
from tests.unit.scheduler import plain

HOSTS = (1000, 5000, 10000)
STREAMS = ("same", "20 flavors", "all different", "whole lists", "nobody fits")
# Decisions a second that must be, and that are the goal.
GOALS = {
    (1000, "20 flavors"): (1500, 3000),
    (1000, "all different"): (300, 500),
    (1000, "nobody fits"): (300, 700),
    (5000, "same"): (1500, 3750),
    (10000, "20 flavors"): (250, 800),
    (10000, "all different"): (25, 40),
    (10000, "nobody fits"): (25, 60),
}
# After so many further decisions a server is given back.
HELD = 100


def pipeline() -> Pipeline:
    """Return the pipeline of the options' defaults."""
    conf = cfg.ConfigOpts()
    log.register_opts(conf)
    conf_module.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return manager.make_pipeline(conf)


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
            running_vms=rng.randrange(40),
            supported_instances=[["x86_64", "qemu", "hvm"], ["x86_64", "kvm", "hvm"]],
            generation=Generation(1, number),
        )
        host = HostState(picture)
        host.up = rng.random() > 0.02
        made.append(host)
    return made


def requests(stream: str, rng: random.Random) -> Iterator[RequestSpec]:
    """Yield requests without end."""
    flavors = [flavor(number, rng) for number in range(20)]
    number = 0
    while True:
        number += 1
        if stream == "same":
            wanted = flavors[0]
        elif stream == "20 flavors":
            wanted = rng.choice(flavors)
        else:
            wanted = flavor(number, rng)
        if stream == "nobody fits":
            wanted.memory_mb = 400000 + number
        spec = RequestSpec(
            instance_uuid=f"00000000-0000-0000-0000-{number:012d}",
            project_id="p",
            user_id="u",
            flavor=wanted,
            image=ImageMeta(properties={"hw_architecture": "x86_64"}),
        )
        if stream == "whole lists":
            spec.availability_zone = "nova"
            spec.ignore_hosts = [f"compute{rng.randrange(1000):05d}"]
            wanted.extra_specs = {"capabilities:hypervisor_type": "s== QEMU"}
            placed = {f"m{n}": f"compute{rng.randrange(1000):05d}" for n in range(3)}
            spec.instance_group = InstanceGroup(f"g{number}", "anti-affinity", {}, placed)
        yield spec


def flavor(number: int, rng: random.Random) -> Flavor:
    """Return a flavor of random size; the disk tells two of them apart."""
    name = f"flavor{number}"
    size = rng.randrange(512, 65536)
    return Flavor(name, name, rng.randrange(1, 16), size, rng.randrange(1, 400), number % 7)


class Core:
    """The fleet under the pipeline, with the servers that are not given back yet."""

    def __init__(self, count: int, rng: random.Random):
        self.fleet = Fleet(hosts(count, rng))
        self.pipeline = pipeline()
        self._indexes = {id(host): index for index, host in enumerate(self.fleet)}
        self._held: deque[tuple[int, str]] = deque()

    def decide(self, spec: RequestSpec) -> None:
        """Decide as the scheduler does."""
        for host in self.pipeline.schedule(self.fleet, [spec], 0.01).hosts:
            self._hold(self._indexes[id(host)], spec)

    def decide_plainly(self, spec: RequestSpec) -> None:
        """Decide with the plainest loop."""
        made = self.pipeline
        demand = made.demand(spec, self.fleet)
        order, decision = plain.decide(
            self.fleet.hosts, demand, made.filters, self.weighers(), rooms=made.rooms
        )
        decision.bound()
        if order:
            picked = made.alternates(order, self.fleet.hosts)
            _selections = [made.selection(host, False, 0.01) for host in picked]
            self.fleet.consume(order[0], spec.instance_uuid, demand.need)
            self._hold(order[0], spec)

    def weighers(self) -> list[weights.Weigher]:
        """Return the weighers that run."""
        return weights.running(self.pipeline.weighers, self.fleet.kinds)

    def _hold(self, index: int, spec: RequestSpec) -> None:
        self._held.append((index, spec.instance_uuid))
        if len(self._held) > HELD:
            self.fleet.release(*self._held.popleft())


def measure(count: int, stream: str, seconds: float, *, plainly: bool = False) -> float:
    """Return decisions per second of CPU time, the best of ten rounds of so long in all."""
    rng = random.Random(7)
    core = Core(count, rng)
    stream_of = requests(stream, rng)
    decide = core.decide_plainly if plainly else core.decide
    if not plainly and stream in ("same", "20 flavors"):
        # Each flavor a few times, and as many changes as there will be between two requests.
        for _ in range(HELD + 20):
            decide(next(stream_of))
    gc.collect()
    return max(_rate(lambda: decide(next(stream_of)), seconds / 10) for _ in range(10))


def _rate(decide: Callable[[], None], seconds: float) -> float:
    done, start, used = 0, time.perf_counter(), time.thread_time()
    while time.perf_counter() - start < seconds or not done:
        decide()
        done += 1
    return done / (time.thread_time() - used)


def nova(python: Path, count: int, stream: str, seconds: float) -> float | None:
    """Return what Nova's core does on the same kind of hosts; None if it has no such stream."""
    if stream not in ("same", "20 flavors", "all different"):
        return None
    script = Path(__file__).parent / "nova_core.py"
    command = [str(python), str(script), str(count), stream, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    """Measure, print the table and the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS)
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=STREAMS)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each figure")
    parser.add_argument("--nova-python", type=Path, help="a Python that has the nova package")
    args = parser.parse_args()
    # As novalite-scheduler does at its start.
    gc.set_threshold(200_000, 20, 50)
    results = []
    line = "{:>6}  {:<14} {:>9} {:>9} {:>7} {:>7} {:>6}".format
    print("decisions per second of CPU time")
    print(line("hosts", "requests", "novalite", "plain", "Nova", "must", "goal"))
    for count in args.hosts:
        for stream in args.streams:
            must, goal = GOALS.get((count, stream), ("-", "-"))
            found: dict[str, float | None] = {
                "novalite": measure(count, stream, args.seconds),
                "plain": measure(count, stream, args.seconds / 2, plainly=True),
                "nova": None,
            }
            if args.nova_python:
                found["nova"] = nova(args.nova_python, count, stream, args.seconds)
            texts = ["-" if rate is None else f"{rate:.1f}" for rate in found.values()]
            print(line(count, stream, *texts, must, goal), flush=True)
            rounded = {name: rate and round(rate, 1) for name, rate in found.items()}
            results.append({"hosts": count, "requests": stream, **rounded})
    print(json.dumps({"benchmark": "scheduler_core", "decisions_per_cpu_s": results}))


if __name__ == "__main__":
    main()
