# SPDX-License-Identifier: Apache-2.0
"""One node's books: what it has, what is held back, what is claimed.

The resource tracker holds one :class:`Books` a node and its lock; nothing else touches them. Sums
are kept, never computed anew, and every change raises the counter of the picture's generation.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field

from oslo_config import cfg

from novalite import log
from novalite.objects import capacity
from novalite.objects.audit import BookedClaim
from novalite.objects.capacity import Need, Resource
from novalite.objects.compute_node import ComputeNode
from novalite.objects.request_spec import Generation
from novalite.virt import driver as virt_driver

LOG = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the options hold back and promise; ratios with "not set" (0.0) resolved."""

    cpu_ratio: float
    ram_ratio: float
    disk_ratio: float
    reserved_cpus: int
    reserved_memory_mb: int
    reserved_disk_mb: int
    host_ip: str

    @classmethod
    def of(cls, conf: cfg.ConfigOpts) -> "Policy":
        """Read the options as they are now."""
        return cls(
            cpu_ratio=capacity.effective_ratio(Resource.VCPU, conf.cpu_allocation_ratio),
            ram_ratio=capacity.effective_ratio(Resource.MEMORY, conf.ram_allocation_ratio),
            disk_ratio=capacity.effective_ratio(Resource.DISK, conf.disk_allocation_ratio),
            reserved_cpus=conf.reserved_host_cpus,
            reserved_memory_mb=conf.reserved_host_memory_mb,
            reserved_disk_mb=conf.reserved_host_disk_mb,
            host_ip=str(conf.my_ip),
        )

    @property
    def reserved(self) -> Need:
        """What is kept for the host itself, in the units of a need."""
        disk_gb = capacity.whole_gb(self.reserved_disk_mb)
        return Need(self.reserved_memory_mb, disk_gb, self.reserved_cpus)


@dataclass(slots=True)
class Claim:
    attempt: int
    need: Need
    settled: bool = False
    flavorid: str = ""


@dataclass(slots=True, eq=False)
class Books:
    """One node. ``servers`` holds the claims of each server by their tokens: a handling that
    starts an attempt over stands beside the one it replaces, and counts only once."""

    host: str
    node: str
    uuid: str
    resources: virt_driver.HostResources
    policy: Policy
    epoch: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    counter: int = 1
    totals_counter: int = 1
    used: Need = Need(0, 0, 0)
    building: int = 0
    # Disk claimed and freed since the driver last said what the file system can still take.
    disk_since: int = 0
    servers: dict[str, dict[str, Claim]] = field(default_factory=dict)
    # Claims of each flavor.
    flavors: Counter[str] = field(default_factory=Counter)
    # Builds that failed through the host's own fault since one succeeded.
    failed_builds: int = 0

    # Everything below needs the lock.

    def picture(self) -> ComputeNode:
        """Return the absolute picture of the node as it is now."""
        resources, policy, reserved = self.resources, self.policy, self.policy.reserved
        least = resources.disk_available_least
        count, beside = len(self.servers), resources.guest_overhead_mb
        return ComputeNode(
            host=self.host,
            hypervisor_hostname=self.node,
            uuid=self.uuid,
            vcpus=resources.vcpus,
            memory_mb=resources.memory_mb,
            local_gb=resources.local_gb,
            vcpus_used=reserved.vcpus + self.used.vcpus,
            memory_mb_used=reserved.memory_mb + self.used.memory_mb + count * beside,
            local_gb_used=reserved.disk_gb + self.used.disk_gb,
            disk_available_least=None if least is None else least - self.disk_since,
            running_vms=count,
            current_workload=self.building,
            cpu_allocation_ratio=policy.cpu_ratio,
            ram_allocation_ratio=policy.ram_ratio,
            disk_allocation_ratio=policy.disk_ratio,
            reserved_host_cpus=policy.reserved_cpus,
            reserved_host_memory_mb=policy.reserved_memory_mb,
            reserved_host_disk_mb=policy.reserved_disk_mb,
            hypervisor_type=resources.hypervisor_type,
            hypervisor_version=resources.hypervisor_version,
            host_ip=policy.host_ip,
            cpu_info=resources.cpu_info,
            supported_instances=resources.supported_instances,
            stats={
                "num_instances": count,
                "io_workload": self.building,
                "failed_builds": self.failed_builds,
                "flavorids": sorted(filter(None, self.flavors)),
            },
            generation=self.generation,
            guest_overhead_mb=beside,
        )

    @property
    def generation(self) -> Generation:
        """The generation of the present picture."""
        return Generation(self.epoch, self.counter)

    @property
    def totals_generation(self) -> Generation:
        """The generation of the first picture that had the present totals and ratios."""
        return Generation(self.epoch, self.totals_counter)

    def counted(self, instance_uuid: str) -> Need:
        """Return what a server counts for: its largest claim, resource by resource."""
        found = self.servers.get(instance_uuid)
        if not found:
            return Need(0, 0, 0)
        needs = [claim.need for claim in found.values()]
        return needs[0] if len(needs) == 1 else Need(*map(max, *needs))

    def put(self, instance_uuid: str, token: str, claim: Claim) -> None:
        """Add a claim."""
        before = self.counted(instance_uuid)
        self.servers.setdefault(instance_uuid, {})[token] = claim
        self.building += not claim.settled
        self.flavors[claim.flavorid] += 1
        self._recount(before, self.counted(instance_uuid))

    def remove(self, instance_uuid: str, tokens: list[str]) -> None:
        """Remove claims that are there."""
        before = self.counted(instance_uuid)
        found = self.servers[instance_uuid]
        for token in tokens:
            claim = found.pop(token)
            self.building -= not claim.settled
            self.flavors[claim.flavorid] -= 1
            if not self.flavors[claim.flavorid]:
                del self.flavors[claim.flavorid]
        if not found:
            del self.servers[instance_uuid]
        self._recount(before, self.counted(instance_uuid))

    def _recount(self, before: Need, after: Need) -> None:
        self.used = Need(*(u - b + a for u, b, a in zip(self.used, before, after, strict=True)))
        self.disk_since += after.disk_gb - before.disk_gb
        self.counter += 1

    def claims(self) -> list[BookedClaim]:
        """Return what each server counts for."""
        found = []
        for instance_uuid, claims in self.servers.items():
            need = self.counted(instance_uuid)
            found.append(
                BookedClaim(
                    instance_uuid=instance_uuid,
                    node=self.node,
                    attempt=max(claim.attempt for claim in claims.values()),
                    vcpus=need.vcpus,
                    memory_mb=need.memory_mb,
                    disk_gb=need.disk_gb,
                    settled=all(claim.settled for claim in claims.values()),
                )
            )
        return found

    def recount(self) -> bool:
        """Sum all claims up anew; tell whether the kept sums were wrong."""
        needs = [self.counted(instance_uuid) for instance_uuid in self.servers]
        used = (
            Need(*(sum(amounts) for amounts in zip(*needs, strict=True)))
            if needs
            else Need(0, 0, 0)
        )
        claims = [claim for found in self.servers.values() for claim in found.values()]
        building = sum(not claim.settled for claim in claims)
        if (used, building) == (self.used, self.building):
            return False
        self.used, self.building = used, building
        self.counter += 1
        return True

    def measure(self, resources: virt_driver.HostResources, policy: Policy) -> None:
        """Take over what hypervisor and options say now."""
        changed = _totals(resources, policy) != _totals(self.resources, self.policy)
        moved = resources != self.resources or policy != self.policy or bool(self.disk_since)
        self.resources, self.policy, self.disk_since = resources, policy, 0
        if moved:
            self.counter += 1
        if changed:
            self.totals_counter = self.counter

    def take_over(self, former: "Books") -> None:
        """Take the claims of the books of a former registration; its lock is taken here."""
        with former.lock:
            for instance_uuid, found in former.servers.items():
                for token, claim in found.items():
                    self.put(instance_uuid, token, claim)
            self.disk_since = former.disk_since
            self.failed_builds = former.failed_builds


def _totals(resources: virt_driver.HostResources, policy: Policy) -> tuple[object, ...]:
    """Return what limits are computed from."""
    return (
        resources.vcpus,
        resources.memory_mb,
        resources.local_gb,
        policy.cpu_ratio,
        policy.ram_ratio,
        policy.disk_ratio,
    )


def warn_of_reservations(book: Books) -> None:
    """Warn when more is held back than there is: nothing will fit, or only by overcommit."""
    policy, resources = book.policy, book.resources
    for name, held, total, unit in (
        ("reserved_host_memory_mb", policy.reserved_memory_mb, resources.memory_mb, "MB"),
        ("reserved_host_disk_mb", policy.reserved_disk_mb, resources.local_gb * 1024, "MB"),
        ("reserved_host_cpus", policy.reserved_cpus, resources.vcpus, "vcpus"),
    ):
        if held > total:
            LOG.warning(
                "%s = %d is more than the %d %s that node %s has in all",
                name,
                held,
                total,
                unit,
                book.node,
            )
