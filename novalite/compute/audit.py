# SPDX-License-Identifier: Apache-2.0
"""Do this host's books agree with the database and with its guests?

Runs now and then, and when ``novalite-manage audit`` asks. The tracker's claims are put right
here, since it alone writes them: under the server's lock, with nothing of it in hand, and after
the conductor has been asked once more. A guest is never touched here; one that nobody wants is told
and goes when a conductor says so, or at the next registration.
"""

from novalite import context as context_module
from novalite import exception, log
from novalite.compute.host import ComputeHost
from novalite.compute.reporter import Conductor
from novalite.compute.resource_tracker import need_of
from novalite.objects import agreement, audit
from novalite.objects.build import Kept, Registration

LOG = log.get(__name__)

# Seconds that the conductor may take, and that are waited for a server to which something is done.
TIMEOUT = 10.0
LOCK_WAIT = 1.0


class Audit:
    """The audit of one host."""

    def __init__(self, host: ComputeHost, conductor: Conductor):
        self.host = host
        self._conductor = conductor

    def books(self) -> audit.HostBooks:
        """Return what this host says of itself now."""
        host = self.host
        # Before and after: what was in hand at one of the moments between may have changed books.
        busy = host.hand.busy()
        pictures, claims = host.tracker.books()
        guests = [
            audit.FoundGuest(guest.instance_uuid, guest.node, guest.metadata.attempt)
            for guest in host.driver.list_guests()
        ]
        busy |= host.hand.busy()
        return audit.HostBooks(host.name, pictures, claims, guests, sorted(busy))

    def run(self) -> list[str]:
        """Put the claims right and return in words what was wrong with them.

        :raises exception.BusUnavailable: no conductor answers; nothing was changed
        :raises exception.HypervisorError: the guests cannot be listed
        """
        corrected = [
            f"the sums of node {node} were not those of its claims"
            for node in self.host.tracker.recount()
        ]
        books, registration = self.books(), self._ask()
        books.busy += registration.open
        for found in agreement.compare_host(books, _facts(registration)):
            if found.owner is audit.Owner.COMPUTE and found.instance_uuid is not None:
                if self._correct(found.instance_uuid):
                    corrected.append(found.text)
            elif found.instance_uuid is not None:
                LOG.warning("%s", found.text, instance=found.instance_uuid)
        for text in corrected:
            LOG.warning("Put right: %s", text)
        if corrected:
            for node in self.host.tracker.nodes():
                self.host.tell_picture(node)
        return corrected

    def repair(self) -> audit.HostBooks:
        """Put the claims right, send every picture anew, and return the books after that."""
        corrected = self.run()
        self.host.tracker.renew()
        for node in self.host.tracker.nodes():
            self.host.tell_picture(node)
        books = self.books()
        books.corrected = corrected
        return books

    def _correct(self, instance_uuid: str) -> bool:
        """Look once more with the server's lock held: then nothing can end on this host."""
        hand = self.host.hand
        with hand.instance_lock(instance_uuid, LOCK_WAIT) as held:
            if not held or instance_uuid in hand.busy():
                return False
            registration = self._ask()
            if instance_uuid in registration.open:
                return False
            kept = _kept(registration).get(instance_uuid)
            if kept is not None and kept.instance.action_id is not None:
                return False
            if kept is None and self.host.driver.get_guest(instance_uuid) is not None:
                # It takes what it takes; the claim goes when the guest has gone.
                return False
            return self.host.tracker.correct(instance_uuid, kept)

    def _ask(self) -> Registration:
        context = context_module.service_context()
        return self._conductor.get_kept(context, host=self.host.name, timeout=TIMEOUT)


def run(auditor: Audit) -> None:
    """Run an audit that nobody has asked for: what is away now is there the next time."""
    try:
        auditor.run()
    except exception.NovaliteException as error:
        LOG.warning("The audit of the books is put off: %s", error.message())


def _kept(registration: Registration) -> dict[str, Kept]:
    return {kept.instance.uuid: kept for kept in registration.kept}


def _facts(registration: Registration) -> audit.Facts:
    """Return what the conductor says as far as a host needs it: of no other servers."""
    servers = {}
    for uuid, kept in _kept(registration).items():
        instance = kept.instance
        size = (instance.flavor.vcpus, instance.flavor.memory_mb)
        servers[uuid] = audit.Server(
            uuid=uuid,
            host=instance.host,
            node=instance.node,
            vm_state=instance.vm_state.value,
            busy=instance.action_id is not None or uuid in registration.open,
            need=need_of(kept),
            flavor=size,
            counted=size,
            attempt=kept.attempt or None,
        )
    return audit.Facts(servers, {}, {})
