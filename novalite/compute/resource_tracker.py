# SPDX-License-Identifier: Apache-2.0
"""The books of a host's nodes; authoritative for what is claimed on them.

One lock a node. A claim costs the same however many servers are on the node: sums are kept, never
computed anew. Every change of the books raises the counter of the picture's generation, and only
whole pictures leave this module, never differences. It does not talk to the conductor: callers
put the pictures into what they report.
"""

from oslo_config import cfg

from novalite import context as context_module
from novalite import exception, log
from novalite.compute import claims
from novalite.compute.books import Books, Claim, Policy, warn_of_reservations
from novalite.objects import capacity
from novalite.objects.audit import BookedClaim
from novalite.objects.build import Kept
from novalite.objects.capacity import Need
from novalite.objects.compute_node import ComputeNode
from novalite.objects.request_spec import Limits
from novalite.virt import driver as virt_driver

LOG = log.get(__name__)

KEPT = "kept"


class ResourceTracker:
    """The books of all nodes of one service host."""

    def __init__(self, conf: cfg.ConfigOpts, driver: virt_driver.ComputeDriver):
        self.conf = conf
        self._driver = driver
        self._books: dict[str, Books] = {}

    def start(self, epoch: int, node_uuids: dict[str, str], kept: list[Kept]) -> None:
        """Open the books of all nodes for this start of the service, with what is kept in them.

        Claims of builds that are in hand (a second registration of a running service) stay.

        :raises exception.HypervisorError: the hypervisor cannot tell what it has
        """
        policy = Policy.of(self.conf)
        books: dict[str, Books] = {}
        for node in self._driver.nodes():
            book = Books(
                host=str(self.conf.host),
                node=node,
                uuid=node_uuids.get(node, ""),
                resources=self._driver.host_resources(node),
                policy=policy,
                epoch=epoch,
            )
            former = self._books.get(node)
            if former is not None:
                book.take_over(former)
            warn_of_reservations(book)
            books[node] = book
        for each in kept:
            self._keep(books, each)
        self._books = books
        self._warn_of_unset_ratios()

    def _keep(self, books: dict[str, Books], kept: Kept) -> None:
        instance = kept.instance
        book = books.get(instance.node or "")
        if book is None:
            LOG.warning(
                "It is kept on node %s, which this host does not have any more",
                instance.node,
                instance=instance.uuid,
            )
            return
        if instance.uuid not in book.servers:
            book.put(instance.uuid, KEPT, _settled(kept))

    def _warn_of_unset_ratios(self) -> None:
        for resource, name in capacity.RATIO_OPTIONS.items():
            if not getattr(self.conf, name):
                LOG.info("%s is 0.0 (not set): %s is used", name, capacity.DEFAULT_RATIOS[resource])

    def nodes(self) -> list[str]:
        """Return the names of the nodes."""
        return list(self._books)

    def picture(self, node: str) -> ComputeNode:
        """Return the present picture of *node*; of any node of this host if it is not known."""
        book = self._books.get(node) or next(iter(self._books.values()))
        with book.lock:
            return book.picture()

    def pictures(self) -> list[ComputeNode]:
        """Return the present picture of every node."""
        return [self.picture(node) for node in self._books]

    # Claims

    def claim(
        self,
        node: str,
        instance_uuid: str,
        need: Need,
        limits: Limits | None,
        *,
        token: str,
        attempt: int,
        flavorid: str = "",
    ) -> claims.Verdict:
        """Test a claim and, if it fits, enter it. What the server itself holds is not counted.

        :param token: names the claim; :meth:`release` and :meth:`settle` want it
        :raises exception.ComputeHostNotFound: there is no such node here
        """
        book = self._books.get(node)
        if book is None:
            raise exception.ComputeHostNotFound(host=node)
        with book.lock:
            before = book.picture()
            own = book.counted(instance_uuid)
            before.memory_mb_used -= own.memory_mb
            if instance_uuid in book.servers:
                before.memory_mb_used -= before.guest_overhead_mb
            before.local_gb_used -= own.disk_gb
            before.vcpus_used -= own.vcpus
            if before.disk_available_least is not None:
                before.disk_available_least += own.disk_gb
            rooms, reason = claims.test(before, need, limits, book.totals_generation)
            limits = limits or Limits()
            if reason is not None:
                checked = not self.conf.testing.ignore_generations
                stale = checked and book.generation.newer_than(limits.generation)
                return claims.Verdict(need, rooms, limits, book.picture(), reason, stale)
            book.put(instance_uuid, token, Claim(attempt, need, flavorid=flavorid))
            return claims.Verdict(need, rooms, limits, book.picture())

    def settle(self, node: str, instance_uuid: str, token: str) -> None:
        """Let the claim of a finished build stand as that of a server; it is no workload now.

        The node has shown that it can build.
        """
        book = self._books.get(node)
        if book is None:
            return
        with book.lock:
            claim = book.servers.get(instance_uuid, {}).get(token)
            if claim is not None and not claim.settled:
                claim.settled = True
                book.building -= 1
                book.failed_builds = 0
                book.counter += 1

    def note_failure(self, node: str) -> None:
        """Count a build that failed through the node's own fault."""
        book = self._books.get(node)
        if book is None:
            return
        with book.lock:
            book.failed_builds += 1
            book.counter += 1

    def release(self, node: str, instance_uuid: str, token: str) -> bool:
        """Give a claim back; False if there is none."""
        book = self._books.get(node)
        if book is None:
            return False
        with book.lock:
            if token not in book.servers.get(instance_uuid, {}):
                return False
            book.remove(instance_uuid, [token])
            return True

    def release_up_to(self, instance_uuid: str, bound: int | None) -> bool:
        """Give back the claims of a server's attempts up to *bound* (None: all) on every node."""
        released = False
        for book in list(self._books.values()):
            with book.lock:
                found = book.servers.get(instance_uuid, {})
                tokens = [t for t, c in found.items() if bound is None or c.attempt <= bound]
                if tokens:
                    book.remove(instance_uuid, tokens)
                    released = True
        return released

    # Audits

    def books(self) -> tuple[list[ComputeNode], list[BookedClaim]]:
        """Return every node's picture and claims; those of one node belong together."""
        pictures: list[ComputeNode] = []
        claims: list[BookedClaim] = []
        for book in list(self._books.values()):
            with book.lock:
                pictures.append(book.picture())
                claims += book.claims()
        return pictures, claims

    def correct(self, instance_uuid: str, kept: Kept | None) -> bool:
        """Let a server's settled claims be what *kept* says, or none; tell whether they were not.

        The claims of builds stay. The caller holds the server's lock and knows that *kept* is true.
        """
        changed = False
        for book in list(self._books.values()):
            wanted = kept if kept is not None and kept.instance.node == book.node else None
            with book.lock:
                changed |= _correct(book, instance_uuid, wanted)
        return changed

    def recount(self) -> list[str]:
        """Sum the claims of all nodes up anew and return the nodes whose sums were wrong."""
        wrong = []
        for book in list(self._books.values()):
            with book.lock:
                if book.recount():
                    wrong.append(book.node)
        return wrong

    def renew(self) -> None:
        """Give every picture a new generation, so that the database takes it whatever it has."""
        for book in list(self._books.values()):
            with book.lock:
                book.counter += 1

    def update_available_resource(self, context: context_module.RequestContext) -> None:
        """Measure all nodes anew and say what the books hold now."""
        self.measure()
        for picture in self.pictures():
            _tell_view(context, picture)

    def measure(self) -> None:
        """Take over what hypervisor and options say now; after a reload too."""
        policy = Policy.of(self.conf)
        for book in list(self._books.values()):
            resources = self._driver.host_resources(book.node)
            with book.lock:
                book.measure(resources, policy)

    def warn_of_reservations(self) -> None:
        """Warn again where more is held back than a node has."""
        for book in list(self._books.values()):
            warn_of_reservations(book)


def need_of(kept: Kept) -> Need:
    """Return what a server that is kept here takes."""
    instance = kept.instance
    return capacity.need(instance.flavor, volume_backed=not instance.image_ref)


def _correct(book: Books, instance_uuid: str, kept: Kept | None) -> bool:
    claims = book.servers.get(instance_uuid, {})
    settled = [token for token, claim in claims.items() if claim.settled]
    if kept is not None:
        if settled and all(claims[token].need == need_of(kept) for token in settled):
            return False
        if not settled and claims:
            return False
    elif not settled:
        return False
    if settled:
        book.remove(instance_uuid, settled)
    if kept is not None:
        book.put(instance_uuid, KEPT, _settled(kept))
    return True


def _settled(kept: Kept) -> Claim:
    flavorid = kept.instance.flavor.flavorid
    return Claim(kept.attempt, need_of(kept), settled=True, flavorid=flavorid)


def _tell_view(context: context_module.RequestContext, picture: ComputeNode) -> None:
    LOG.info(
        "Total usable vcpus: %d, total allocated vcpus: %d",
        picture.vcpus,
        picture.vcpus_used,
        context=context,
    )
    LOG.info(
        "Final resource view: name=%s phys_ram=%dMB used_ram=%dMB phys_disk=%dGB used_disk=%dGB "
        "total_vcpus=%d used_vcpus=%d pci_stats=[]",
        picture.hypervisor_hostname,
        picture.memory_mb,
        picture.memory_mb_used,
        picture.local_gb,
        picture.local_gb_used,
        picture.vcpus,
        picture.vcpus_used,
        context=context,
    )
    LOG.info(
        "Compute_service record updated for %s:%s",
        picture.host,
        picture.hypervisor_hostname,
        context=context,
    )
